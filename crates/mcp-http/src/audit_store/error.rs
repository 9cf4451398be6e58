//! The errors of opening the audit's database.

/// The reason why the database cannot be used. No message contains a password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditStoreError {
    #[cfg(feature = "audit-database")]
    #[error("http.audit_database: expected sqlite:PATH, postgres://… or $VARIABLE")]
    Location,
    #[cfg(feature = "audit-database")]
    #[error("http.audit_database: {}", .path.display())]
    File { path: std::path::PathBuf, source: std::io::Error },
    /// The database refuses a statement or the connection. Its message has its own causes, so it is no source.
    #[cfg(feature = "audit-database")]
    #[error("http.audit_database: {0}")]
    Database(sqlx::Error),
    #[cfg(feature = "audit-database")]
    #[error("http.audit_database: the database does not answer")]
    Timeout,
    #[cfg(feature = "audit-database")]
    #[error("the system has no random numbers: {0}")]
    Random(getrandom::Error),
    #[cfg(not(feature = "audit-database"))]
    #[error("http.audit_database: this build has no databases (feature `audit-database`)")]
    NotBuilt,
}
