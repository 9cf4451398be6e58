//! The check of a connection: it works, and its user has no more rights than it needs.

use super::Error;
use super::action::DbAction;
use super::request::DbBridge;
use super::response::DbResponse;
use super::source::{DatabaseLocation, Databases};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The result of [`Databases::check`] for a connection that works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCheck {
    /// The name of the engine: `SQLite`, `PostgreSQL`, or `MySQL` for MySQL and MariaDB.
    pub engine: &'static str,
    /// Rights of the user that a user for queries should not have, and the advice for each.
    pub notes: Vec<String>,
}

/// Counts the tables that the user may change. It names `session_user`, since a superuser's query runs under another
/// role (`postgres::drop_superuser_rights`).
const POSTGRES_WRITABLE_TABLES: &str = "SELECT count(*) AS n FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
    AND pg_catalog.has_table_privilege(session_user, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')";

/// Counts the rights to change anything: on all databases, on one, or on a table.
const MYSQL_WRITE_PRIVILEGES: &str = "SELECT COUNT(*) AS n FROM ( \
    SELECT grantee, privilege_type FROM information_schema.user_privileges \
    UNION ALL SELECT grantee, privilege_type FROM information_schema.schema_privileges \
    UNION ALL SELECT grantee, privilege_type FROM information_schema.table_privileges) AS granted \
    WHERE grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') \
    AND privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'ALTER', 'SUPER')";

impl Databases {
    /// Connects to `database`, runs one query, and looks up the rights of the user. Without a name, checks the database
    /// that a request without a name gets.
    ///
    /// # Errors
    /// The database cannot be used, for the same reasons as in [`Databases::run`].
    pub async fn check(
        &self,
        database: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<ConnectionCheck, Error> {
        let (engine, statement) = match self.resolve(database)? {
            DatabaseLocation::File(_) => ("SQLite", "SELECT 0 AS n"),
            DatabaseLocation::Postgres { .. } => ("PostgreSQL", POSTGRES_WRITABLE_TABLES),
            DatabaseLocation::MySql { .. } => ("MySQL", MYSQL_WRITE_PRIVILEGES),
        };
        let request = DbBridge {
            payload: statement.to_owned(),
            database: database.map(str::to_owned),
            ..DbBridge::new(DbAction::Query)
        };
        let mut notes = Vec::new();
        if let DbResponse::Rows(rows) = self.run(&request, cancel).await? {
            notes.extend(rows.notes);
            // A note about a superuser says more than the count does, so the count adds nothing beside it.
            // A count that cannot be read is treated as one above 0: the note is advice, and no refusal.
            let writable = rows.rows.first().and_then(|row| row.get("n")).and_then(Value::as_u64);
            if notes.is_empty() && writable != Some(0) {
                notes.push(
                    "its user may change tables, which seeds need and queries do not: where nothing is seeded, give \
                     it a user that may only read (docs/databases.md)"
                        .to_owned(),
                );
            }
        }
        Ok(ConnectionCheck { engine, notes })
    }
}
