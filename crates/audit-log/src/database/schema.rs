//! The table of the audit, its format, and the way from an older one.

use super::error::DatabaseError;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row as _};

/// The format of the table. 1 is that of version 0.1.0, without targets and without a chain.
const FORMAT: i64 = 2;

/// The columns that format 2 has added.
const ADDED: [&str; 8] = [
    "event",
    "approval",
    "targets",
    "full_arguments",
    "refused_connections",
    "confinement",
    "previous",
    "hash",
];

/// Asks whether PostgreSQL has the table, and of which format it is.
const POSTGRES_FORMAT: &str = "SELECT to_regclass('coretools_audit') IS NOT NULL, \
                               obj_description(to_regclass('coretools_audit'), 'pg_class')";

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

/// The comment of PostgreSQL's table, which names its format.
const COMMENT: &str = "coretools audit, format ";

/// Reads the format from the comment of a table. One that was made by version 0.1.0 has none.
fn format_in_comment(comment: Option<&str>) -> i64 {
    comment.and_then(|comment| comment.strip_prefix(COMMENT)?.trim().parse().ok()).unwrap_or(1)
}

/// Returns the statements that bring PostgreSQL's table to [`FORMAT`].
fn postgres_upgrade() -> Vec<String> {
    let added = ADDED.iter().map(|column| format!("ADD COLUMN IF NOT EXISTS {column} TEXT"));
    vec![
        format!("ALTER TABLE coretools_audit {}", added.collect::<Vec<_>>().join(", ")),
        format!("COMMENT ON TABLE coretools_audit IS '{COMMENT}{FORMAT}'"),
    ]
}

fn refuse_newer(found: i64) -> Result<(), DatabaseError> {
    match found > FORMAT {
        true => Err(DatabaseError::Newer { found, known: FORMAT }),
        false => Ok(()),
    }
}

/// Makes the table, or brings an older one to the format of this program.
pub(super) async fn prepare_postgres(connection: &mut PgConnection) -> Result<(), DatabaseError> {
    // A user who may only add rows may not run `CREATE TABLE IF NOT EXISTS`, even where the table is there.
    if let Some(found) = postgres_format(connection).await? {
        refuse_newer(found)?;
        if found == FORMAT {
            return Ok(());
        }
    }
    let failed = DatabaseError::Database;
    let mut all = connection.begin().await.map_err(failed)?;
    sqlx::query(LOCK).execute(&mut *all).await.map_err(failed)?;
    // Again, now that nobody else changes it.
    let found = postgres_format(&mut all).await?;
    if found.is_none() {
        for statement in POSTGRES {
            sqlx::query(statement).execute(&mut *all).await.map_err(failed)?;
        }
    }
    if found != Some(FORMAT) {
        for statement in postgres_upgrade() {
            let upgraded = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *all).await;
            upgraded.map_err(|source| DatabaseError::CannotUpgrade {
                found: found.unwrap_or(FORMAT),
                needed: FORMAT,
                statements: postgres_upgrade().join("; "),
                source,
            })?;
        }
    }
    all.commit().await.map_err(failed)
}

/// Returns the format of the table, if there is one.
async fn postgres_format(connection: &mut PgConnection) -> Result<Option<i64>, DatabaseError> {
    let row = sqlx::query(POSTGRES_FORMAT).fetch_one(connection).await.map_err(DatabaseError::Database)?;
    let exists: bool = row.try_get(0).map_err(DatabaseError::Database)?;
    let comment: Option<String> = row.try_get(1).map_err(DatabaseError::Database)?;
    Ok(exists.then(|| format_in_comment(comment.as_deref())))
}

/// Makes the table, or brings an older one to the format of this program.
pub(super) async fn prepare_sqlite(connection: &mut SqliteConnection) -> Result<(), DatabaseError> {
    let failed = DatabaseError::Database;
    if sqlite_format(connection).await? == FORMAT {
        return Ok(());
    }
    // Immediate: two processes that begin at once would otherwise both read first, and one could not write then.
    let mut all = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let found = sqlite_format(&mut all).await?;
    refuse_newer(found)?;
    if found < FORMAT {
        for statement in SQLITE {
            sqlx::query(statement).execute(&mut *all).await.map_err(failed)?;
        }
        let columns = "SELECT name FROM pragma_table_info('coretools_audit')";
        let columns = sqlx::query(columns).fetch_all(&mut *all).await.map_err(failed)?;
        let has = |name: &str| {
            columns.iter().any(|row| row.try_get::<String, _>(0).is_ok_and(|column| column == name))
        };
        for column in ADDED.into_iter().filter(|column| !has(column)) {
            let add = format!("ALTER TABLE coretools_audit ADD COLUMN {column} TEXT");
            sqlx::query(sqlx::AssertSqlSafe(add)).execute(&mut *all).await.map_err(failed)?;
        }
        let version = format!("PRAGMA user_version = {FORMAT}");
        sqlx::query(sqlx::AssertSqlSafe(version)).execute(&mut *all).await.map_err(failed)?;
    }
    all.commit().await.map_err(failed)
}

async fn sqlite_format(connection: &mut SqliteConnection) -> Result<i64, DatabaseError> {
    let row = sqlx::query("PRAGMA user_version").fetch_one(connection).await;
    row.and_then(|row| row.try_get::<i64, _>(0)).map_err(DatabaseError::Database)
}

/// Checks that PostgreSQL has a table that this program can read. Returns whether it has the columns of format 2.
pub(super) async fn check_postgres(connection: &mut PgConnection) -> Result<bool, DatabaseError> {
    let found = postgres_format(connection).await?.ok_or(DatabaseError::NoTable)?;
    refuse_newer(found)?;
    Ok(found >= 2)
}

/// Checks that SQLite has a table that this program can read. Returns whether it has the columns of format 2.
pub(super) async fn check_sqlite(connection: &mut SqliteConnection) -> Result<bool, DatabaseError> {
    let exists = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'coretools_audit'";
    let row = sqlx::query(exists).fetch_one(&mut *connection).await.map_err(DatabaseError::Database)?;
    if row.try_get::<i64, _>(0).map_err(DatabaseError::Database)? == 0 {
        return Err(DatabaseError::NoTable);
    }
    let found = sqlite_format(connection).await?;
    refuse_newer(found)?;
    Ok(found >= 2)
}
