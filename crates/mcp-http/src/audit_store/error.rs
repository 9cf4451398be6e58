//! The errors of opening the audit's database.

/// The reason why the database cannot be used. No message contains a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditStoreError {
    #[cfg(feature = "audit-database")]
    #[error("http.audit_database")]
    Database(#[from] audit_log::DatabaseError),
    #[cfg(feature = "audit-database")]
    #[error("the system has no random numbers: {0}")]
    Random(getrandom::Error),
    #[cfg(not(feature = "audit-database"))]
    #[error("http.audit_database: this build has no databases (feature `audit-database`)")]
    NotBuilt,
}
