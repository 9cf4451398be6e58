//! The errors of the audit's database. No message contains a password.

use std::path::PathBuf;

/// The reason why the database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
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
    /// The table is of a newer program.
    #[error(
        "the table coretools_audit has format {found}, and this program knows {known}: a newer version wrote it. Use that \
         version, or another database"
    )]
    Newer {
        /// The format of the table.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The table is of an older program, and this user may not change it.
    #[error(
        "the table coretools_audit has format {found} and needs format {needed}, and this user may not change it ({source}). \
         Start the server once as the owner of the table, or run as the owner: {statements}"
    )]
    CannotUpgrade {
        /// The format of the table.
        found: i64,
        /// The format that is needed.
        needed: i64,
        /// The statements that bring it there.
        statements: String,
        /// The refusal.
        source: sqlx::Error,
    },
    /// There is no table.
    #[error("the database has no table coretools_audit: no server has written its audit there")]
    NoTable,
    /// The database did not answer in time.
    #[error("the database does not answer")]
    Timeout,
}

/// The reason why a batch was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The database cannot be opened any more.
    #[error(transparent)]
    Open(DatabaseError),
    /// The database refuses the statement.
    #[error(transparent)]
    Database(sqlx::Error),
    /// The database did not answer in time.
    #[error("it does not answer")]
    Timeout,
}
