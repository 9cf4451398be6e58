//! The errors of the database of leases. No message contains a password.

use std::path::PathBuf;

/// The reason why the database of leases cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseDatabaseError {
    /// The location names no database.
    #[error("expected sqlite:PATH or postgres://…")]
    Location,
    /// The file of SQLite cannot be made or opened.
    #[error("{}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The database refuses a statement or the connection. Its message has its own causes, so it is no source.
    #[error("{0}")]
    Database(sqlx::Error),
    /// The database did not answer in time.
    #[error("the database does not answer")]
    Timeout,
}
