//! The database: its table, and the statements that write to it.
#![allow(clippy::disallowed_methods, reason = "the operator names the database")]

use super::error::AuditStoreError;
use super::row::AuditRow;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, QueryBuilder, Row as _};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// The time that one statement may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// A database, and the connection to it unless the last statement failed.
#[derive(Debug)]
pub(super) enum AuditDatabase {
    Sqlite(Box<SqliteConnectOptions>, Option<SqliteConnection>),
    Postgres(Box<PgConnectOptions>, Option<PgConnection>),
}

/// The reason why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuditWriteError {
    #[error(transparent)]
    Database(sqlx::Error),
    #[error("it does not answer")]
    Timeout,
}

/// Asks whether PostgreSQL has the table.
const TABLE_EXISTS: &str = "SELECT to_regclass('coretools_audit') IS NOT NULL";

/// Locks the making of the table: two processes that begin at once may both find it missing.
// The key is arbitrary. All advisory locks of a database share one space of numbers.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7309940872)";

const POSTGRES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS coretools_audit (server TEXT NOT NULL, number BIGINT NOT NULL, \
     at TIMESTAMPTZ NOT NULL, principal TEXT, session TEXT, role TEXT NOT NULL, tool TEXT NOT NULL, \
     decision TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL, duration_us BIGINT NOT NULL, \
     arguments TEXT NOT NULL, bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL, lost_before BIGINT NOT NULL, \
     PRIMARY KEY (server, number))",
    "CREATE INDEX IF NOT EXISTS coretools_audit_at ON coretools_audit (at)",
];

const SQLITE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS coretools_audit (server TEXT NOT NULL, number INTEGER NOT NULL, \
     at TEXT NOT NULL, principal TEXT, session TEXT, role TEXT NOT NULL, tool TEXT NOT NULL, \
     decision TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL, duration_us INTEGER NOT NULL, \
     arguments TEXT NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL, \
     lost_before INTEGER NOT NULL, PRIMARY KEY (server, number)) STRICT",
    "CREATE INDEX IF NOT EXISTS coretools_audit_at ON coretools_audit (at)",
];

const INSERT: &str = "INSERT INTO coretools_audit (server, number, at, principal, session, role, tool, decision, \
                      rule, outcome, duration_us, arguments, bytes_in, bytes_out, lost_before) ";

/// Inserts a batch. Both databases have the same SQL, but for the time.
macro_rules! insert {
    ($connection:expr, $server:expr, $rows:expr, $before:literal, $after:literal) => {{
        let mut query = QueryBuilder::new(INSERT);
        query.push_values($rows, |mut row, found| {
            row.push_bind($server).push_bind(found.number).push($before);
            row.push_bind_unseparated(found.at).push_unseparated($after);
            row.push_bind(&found.principal).push_bind(&found.session).push_bind(&found.role);
            row.push_bind(&found.tool).push_bind(found.decision).push_bind(&found.rule);
            row.push_bind(found.outcome).push_bind(found.duration_us).push_bind(&found.arguments);
            row.push_bind(found.bytes_in).push_bind(found.bytes_out).push_bind(found.lost_before);
        });
        // A batch whose answer was lost is written again. Rows that did arrive then have their keys already.
        query.push(" ON CONFLICT DO NOTHING");
        // The text depends on the number of rows, so that keeping it prepared would not pay.
        query.build().persistent(false).execute($connection).await.map(drop)
    }};
}

impl AuditDatabase {
    /// Opens the database at `location` and makes its table if that is missing.
    pub(super) async fn open(location: &str) -> Result<Self, AuditStoreError> {
        let mut database = match location.strip_prefix("sqlite:") {
            Some(path) => {
                let path = Path::new(path);
                // SQLite would create the file readable as the umask says, and its rows name callers.
                private(path).map_err(|source| AuditStoreError::File { path: path.to_owned(), source })?;
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    // In WAL mode the operator can read the table while rows are written.
                    .journal_mode(SqliteJournalMode::Wal)
                    // A power cut may lose the last moments, and nothing else.
                    .synchronous(SqliteSynchronous::Normal)
                    .busy_timeout(Duration::from_secs(5))
                    .disable_statement_logging();
                Self::Sqlite(Box::new(options), None)
            }
            None if location.starts_with("postgres://") || location.starts_with("postgresql://") => {
                let options = PgConnectOptions::from_str(location).map_err(AuditStoreError::Database)?;
                Self::Postgres(Box::new(options.disable_statement_logging()), None)
            }
            None => return Err(AuditStoreError::Location),
        };
        tokio::time::timeout(STATEMENT_TIMEOUT, database.connect())
            .await
            .map_err(|_| AuditStoreError::Timeout)?
            .map_err(AuditStoreError::Database)?;
        Ok(database)
    }

    /// Connects if there is no connection, and makes the table if it is missing.
    async fn connect(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(options, connection @ None) => {
                let mut new = options.connect().await?;
                for statement in SQLITE {
                    sqlx::query(statement).execute(&mut new).await?;
                }
                *connection = Some(new);
            }
            Self::Postgres(options, connection @ None) => {
                let mut new = options.connect().await?;
                // A user who may only add rows may not run `CREATE TABLE IF NOT EXISTS`, even where the table is there.
                let exists: bool = sqlx::query(TABLE_EXISTS).fetch_one(&mut new).await?.try_get(0)?;
                if !exists {
                    let mut all = new.begin().await?;
                    sqlx::query(LOCK).execute(&mut *all).await?;
                    for statement in POSTGRES {
                        sqlx::query(statement).execute(&mut *all).await?;
                    }
                    all.commit().await?;
                }
                *connection = Some(new);
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes all rows or none. After a failure the next attempt is on a new connection.
    pub(super) async fn write(&mut self, server: &str, rows: &[AuditRow]) -> Result<(), AuditWriteError> {
        let written = tokio::time::timeout(STATEMENT_TIMEOUT, async {
            self.connect().await?;
            match self {
                Self::Sqlite(_, Some(connection)) => {
                    insert!(connection, server, rows, "strftime('%Y-%m-%dT%H:%M:%fZ', ", ", 'unixepoch')")
                }
                Self::Postgres(_, Some(connection)) => {
                    insert!(connection, server, rows, "to_timestamp(", ")")
                }
                _ => Ok(()),
            }
        });
        // After a timeout the connection may still be in the middle of a statement, so it is dropped below.
        let why = match written.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => AuditWriteError::Database(error),
            Err(_) => AuditWriteError::Timeout,
        };
        match self {
            Self::Sqlite(_, connection) => *connection = None,
            Self::Postgres(_, connection) => *connection = None,
        }
        Err(why)
    }
}

/// Makes the file where it is missing, for its owner alone.
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}
