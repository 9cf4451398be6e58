//! The connection to the database of leases.
#![allow(clippy::disallowed_methods, reason = "the operator names the file, and no client reaches it")]

use super::error::LeaseDatabaseError;
use super::schema;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Row as _};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

/// The time that one statement may take, with the connection before it.
// One slow statement must cost no lease: a sign of life waits for it, and the shortest silence that can be configured is 15 s.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The times of the databases, in milliseconds.
const SQLITE_NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const POSTGRES_NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

/// A database, and the connection to it unless the last statement failed.
pub(super) enum LeaseConnection {
    Sqlite(Box<SqliteConnectOptions>, Option<SqliteConnection>),
    Postgres(Box<PgConnectOptions>, Option<PgConnection>),
}

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bind<'a> {
    Text(&'a str),
    Number(i64),
}

/// A row of the table.
pub(super) struct FoundRow {
    pub(super) id: String,
    pub(super) format: i64,
    pub(super) record: String,
    pub(super) flag: bool,
}

/// Makes a query of a statement and its values, for either database.
macro_rules! query {
    ($statement:expr, $now:expr, $binds:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($statement.replace("{now}", $now)));
        for bind in $binds {
            query = match bind {
                Bind::Text(text) => query.bind((*text).to_owned()),
                Bind::Number(number) => query.bind(*number),
            };
        }
        query
    }};
}

/// Reads the rows of a query.
macro_rules! found_rows {
    ($rows:expr) => {{
        let mut found = Vec::new();
        for row in $rows? {
            found.push(FoundRow {
                id: row.try_get(0)?,
                format: row.try_get(1)?,
                record: row.try_get(2)?,
                flag: row.try_get(3)?,
            });
        }
        Ok(found)
    }};
}

impl LeaseConnection {
    pub(super) fn parse(location: &str) -> Result<Self, LeaseDatabaseError> {
        if let Some(path) = location.strip_prefix("sqlite:") {
            let options = SqliteConnectOptions::new()
                .filename(path)
                .journal_mode(SqliteJournalMode::Wal)
                // After a power cut a lease must be there, because what was created may have survived.
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(4))
                .disable_statement_logging();
            return Ok(Self::Sqlite(Box::new(options), None));
        }
        if location.starts_with("postgres://") || location.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(location).map_err(LeaseDatabaseError::Database)?;
            return Ok(Self::Postgres(Box::new(options.disable_statement_logging()), None));
        }
        Err(LeaseDatabaseError::Location)
    }

    /// Connects, and makes the table if it is missing.
    pub(super) async fn prepare(&mut self, location: &str) -> Result<(), LeaseDatabaseError> {
        if let Some(path) = location.strip_prefix("sqlite:") {
            let path = Path::new(path);
            // SQLite would create the file readable as the umask says, and its rows name callers.
            private(path).map_err(|source| LeaseDatabaseError::File { path: path.to_owned(), source })?;
        }
        within(async {
            self.connect().await?;
            match self {
                Self::Sqlite(_, Some(connection)) => {
                    sqlx::query(schema::SQLITE_TABLE).execute(connection).await.map(drop)
                }
                Self::Postgres(_, Some(connection)) => prepare_postgres(connection).await,
                Self::Sqlite(_, None) | Self::Postgres(_, None) => Ok(()),
            }
        })
        .await
    }

    async fn connect(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(options, connection @ None) => *connection = Some(options.connect().await?),
            Self::Postgres(options, connection @ None) => *connection = Some(options.connect().await?),
            Self::Sqlite(..) | Self::Postgres(..) => {}
        }
        Ok(())
    }

    fn disconnect(&mut self) {
        match self {
            Self::Sqlite(_, connection) => *connection = None,
            Self::Postgres(_, connection) => *connection = None,
        }
    }

    /// Runs a statement, and returns the number of rows that it changed.
    pub(super) async fn execute(
        &mut self,
        statement: &str,
        binds: &[Bind<'_>],
    ) -> Result<u64, LeaseDatabaseError> {
        let done = within(async {
            self.connect().await?;
            match self {
                Self::Sqlite(_, Some(connection)) => {
                    let done = query!(statement, SQLITE_NOW, binds).execute(connection).await;
                    done.map(|done| done.rows_affected())
                }
                Self::Postgres(_, Some(connection)) => {
                    let done = query!(statement, POSTGRES_NOW, binds).execute(connection).await;
                    done.map(|done| done.rows_affected())
                }
                Self::Sqlite(_, None) | Self::Postgres(_, None) => Err(sqlx::Error::PoolClosed),
            }
        });
        let done = done.await;
        if done.is_err() {
            self.disconnect();
        }
        done
    }

    /// Returns the time of the database, in milliseconds.
    pub(super) async fn now_ms(&mut self) -> Result<i64, LeaseDatabaseError> {
        let now = within(async {
            self.connect().await?;
            match self {
                Self::Sqlite(_, Some(connection)) => {
                    sqlx::query(AssertSqlSafe(schema::sql::NOW.replace("{now}", SQLITE_NOW)))
                        .fetch_one(connection)
                        .await?
                        .try_get(0)
                }
                Self::Postgres(_, Some(connection)) => {
                    sqlx::query(AssertSqlSafe(schema::sql::NOW.replace("{now}", POSTGRES_NOW)))
                        .fetch_one(connection)
                        .await?
                        .try_get(0)
                }
                Self::Sqlite(_, None) | Self::Postgres(_, None) => Err(sqlx::Error::PoolClosed),
            }
        });
        let now = now.await;
        if now.is_err() {
            self.disconnect();
        }
        now
    }

    /// Runs a statement that returns rows of the table.
    pub(super) async fn rows(
        &mut self,
        statement: &str,
        binds: &[Bind<'_>],
    ) -> Result<Vec<FoundRow>, LeaseDatabaseError> {
        let rows = within(async {
            self.connect().await?;
            match self {
                Self::Sqlite(_, Some(connection)) => {
                    found_rows!(query!(statement, SQLITE_NOW, binds).fetch_all(connection).await)
                }
                Self::Postgres(_, Some(connection)) => {
                    found_rows!(query!(statement, POSTGRES_NOW, binds).fetch_all(connection).await)
                }
                Self::Sqlite(_, None) | Self::Postgres(_, None) => Err(sqlx::Error::PoolClosed),
            }
        });
        let rows = rows.await;
        if rows.is_err() {
            self.disconnect();
        }
        rows
    }
}

async fn within<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, LeaseDatabaseError> {
    match tokio::time::timeout(STATEMENT_TIMEOUT, work).await {
        Ok(done) => done.map_err(LeaseDatabaseError::Database),
        Err(_) => Err(LeaseDatabaseError::Timeout),
    }
}

async fn prepare_postgres(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    // A user who may only change rows may not run `CREATE TABLE IF NOT EXISTS`, even where the table is there.
    let exists: bool = sqlx::query(schema::POSTGRES_EXISTS).fetch_one(&mut *connection).await?.try_get(0)?;
    if exists {
        return Ok(());
    }
    let mut all = connection.begin().await?;
    sqlx::query(schema::POSTGRES_LOCK).execute(&mut *all).await?;
    sqlx::query(schema::POSTGRES_TABLE).execute(&mut *all).await?;
    all.commit().await
}

/// Makes the file where it is missing, for its owner alone.
fn private(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).open(path).map(drop)
}
