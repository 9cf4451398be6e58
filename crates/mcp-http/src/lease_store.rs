//! The leases of remotes in the database of the audit, where every server that uses the database finds them.

use server_setup::settings::Settings;

/// The reason why the leases cannot be in a database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseStoreError {
    #[error("http.lease_database: there is no database; set http.audit_database")]
    NoDatabase,
    #[cfg(not(all(feature = "audit-database", feature = "remotes")))]
    #[error(
        "http.lease_database: this build has no databases or no remotes (features `audit-database`, `remotes`)"
    )]
    NotBuilt,
    #[cfg(all(feature = "audit-database", feature = "remotes"))]
    #[error("http.lease_database")]
    Open(#[from] remotes::Error),
}

/// Has the remotes of `settings` write their leases into the database at `location`, if `http.lease_database` says so.
///
/// # Errors
/// There is no database, or it cannot be used.
pub(crate) async fn open(settings: &Settings, location: Option<&str>) -> Result<(), LeaseStoreError> {
    if !*settings.config.http.lease_database {
        return Ok(());
    }
    let location = location.ok_or(LeaseStoreError::NoDatabase)?;
    open_at(settings, location).await
}

#[cfg(all(feature = "audit-database", feature = "remotes"))]
async fn open_at(settings: &Settings, location: &str) -> Result<(), LeaseStoreError> {
    let silence = std::time::Duration::from_millis(*settings.config.http.lease_silence_ms);
    let database = remotes::LeaseDatabase::open(location, silence).await?;
    // Set once: a server opens its database at its start.
    let _ = settings.leases.set(database.into());
    Ok(())
}

#[cfg(not(all(feature = "audit-database", feature = "remotes")))]
#[allow(clippy::unused_async, reason = "the one with databases waits")]
async fn open_at(_: &Settings, _: &str) -> Result<(), LeaseStoreError> {
    Err(LeaseStoreError::NotBuilt)
}
