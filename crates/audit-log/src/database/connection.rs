//! The connection to the audit's database.

use super::error::DatabaseError;
use super::schema;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// The time that one statement may take.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A database, and the connection to it unless the last statement failed.
#[derive(Debug)]
pub struct AuditDatabase(pub(super) DatabaseEngine);

/// The kind of database, with its options.
#[derive(Debug)]
pub(super) enum DatabaseEngine {
    Sqlite(Box<SqliteConnectOptions>, Option<SqliteConnection>),
    Postgres(Box<PgConnectOptions>, Option<PgConnection>),
}

impl AuditDatabase {
    /// Opens the database at `location`, `sqlite:PATH` or `postgres://…`, to write to it. Makes the table if it is
    /// missing, and brings a table of version 0.1.0 to the present format.
    ///
    /// # Errors
    /// The database cannot be used, or a newer program made its table.
    pub async fn open(location: &str) -> Result<Self, DatabaseError> {
        let mut database = Self(DatabaseEngine::parse(location)?);
        if let Some(path) = location.strip_prefix("sqlite:") {
            let path = Path::new(path);
            // SQLite would create the file readable as the umask says, and its rows name callers.
            private(path).map_err(|source| DatabaseError::File { path: path.to_owned(), source })?;
        }
        tokio::time::timeout(STATEMENT_TIMEOUT, database.connect())
            .await
            .map_err(|_| DatabaseError::Timeout)??;
        Ok(database)
    }

    /// Opens the database at `location` to read from it. Nothing is made or changed.
    ///
    /// # Errors
    /// The location names no database.
    pub fn open_to_read(location: &str) -> Result<Self, DatabaseError> {
        Ok(Self(match DatabaseEngine::parse(location)? {
            // The journal mode stays what it is: to set it would write to the file.
            DatabaseEngine::Sqlite(..) => {
                let path = location.strip_prefix("sqlite:").unwrap_or(location);
                let options = SqliteConnectOptions::new().filename(path).read_only(true);
                DatabaseEngine::Sqlite(Box::new(options.disable_statement_logging()), None)
            }
            postgres @ DatabaseEngine::Postgres(..) => postgres,
        }))
    }

    /// Connects if there is no connection, and makes the table if it is missing.
    pub(super) async fn connect(&mut self) -> Result<(), DatabaseError> {
        match &mut self.0 {
            DatabaseEngine::Sqlite(options, connection @ None) => {
                let mut new = options.connect().await.map_err(DatabaseError::Database)?;
                schema::prepare_sqlite(&mut new).await?;
                *connection = Some(new);
            }
            DatabaseEngine::Postgres(options, connection @ None) => {
                let mut new = options.connect().await.map_err(DatabaseError::Database)?;
                schema::prepare_postgres(&mut new).await?;
                *connection = Some(new);
            }
            DatabaseEngine::Sqlite(..) | DatabaseEngine::Postgres(..) => {}
        }
        Ok(())
    }

    /// Closes the connection. SQLite then has everything in one file.
    pub async fn close(self) {
        // A database that is gone has nothing to be closed.
        match self.0 {
            DatabaseEngine::Sqlite(_, Some(connection)) => drop(connection.close().await),
            DatabaseEngine::Postgres(_, Some(connection)) => drop(connection.close().await),
            DatabaseEngine::Sqlite(_, None) | DatabaseEngine::Postgres(_, None) => {}
        }
    }

    pub(super) fn disconnect(&mut self) {
        match &mut self.0 {
            DatabaseEngine::Sqlite(_, connection) => *connection = None,
            DatabaseEngine::Postgres(_, connection) => *connection = None,
        }
    }
}

impl DatabaseEngine {
    fn parse(location: &str) -> Result<Self, DatabaseError> {
        if let Some(path) = location.strip_prefix("sqlite:") {
            let options = SqliteConnectOptions::new()
                .filename(path)
                // In WAL mode the operator can read the table while rows are written.
                .journal_mode(SqliteJournalMode::Wal)
                // A power cut may lose the last moments, and nothing else.
                .synchronous(SqliteSynchronous::Normal)
                .busy_timeout(Duration::from_secs(5))
                .disable_statement_logging();
            return Ok(Self::Sqlite(Box::new(options), None));
        }
        if location.starts_with("postgres://") || location.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(location).map_err(DatabaseError::Database)?;
            return Ok(Self::Postgres(Box::new(options.disable_statement_logging()), None));
        }
        Err(DatabaseError::Location)
    }
}

/// Makes the file where it is missing, for its owner alone.
fn private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
