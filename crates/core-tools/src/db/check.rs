//! Whether a connection works, and what it may do.

use super::Error;
use super::request::{Action, DbBridge};
use super::run::Answered;
use super::source::{Databases, Place};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What a connection that works is like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// `SQLite`, `PostgreSQL` or `MySQL`, which MariaDB is as well.
    pub engine: &'static str,
    /// What its user may do that a user for queries should not, and what to do.
    pub notes: Vec<String>,
}

/// Tables that the user may change. A superuser's query runs with other rights, so the user is named.
const POSTGRES: &str = "SELECT count(*) AS n FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
    AND pg_catalog.has_table_privilege(session_user, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')";

/// Rights to change anything: on everything, a database, or a table.
const MYSQL: &str = "SELECT COUNT(*) AS n FROM ( \
    SELECT grantee, privilege_type FROM information_schema.user_privileges \
    UNION ALL SELECT grantee, privilege_type FROM information_schema.schema_privileges \
    UNION ALL SELECT grantee, privilege_type FROM information_schema.table_privileges) AS granted \
    WHERE grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') \
    AND privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'CREATE', 'DROP', 'ALTER', 'SUPER')";

impl Databases {
    /// Connects to `database`, by default the one that a request without a name gets, asks something, and asks
    /// what its user may do.
    ///
    /// # Errors
    /// It cannot be used: as for [`Databases::run`].
    pub async fn check(&self, database: Option<&str>, cancel: &CancellationToken) -> Result<Checked, Error> {
        let (engine, statement) = match self.place(database)? {
            Place::File(_) => ("SQLite", "SELECT 0 AS n"),
            Place::Postgres { .. } => ("PostgreSQL", POSTGRES),
            Place::MySql { .. } => ("MySQL", MYSQL),
        };
        let request = DbBridge {
            payload: statement.to_owned(),
            database: database.map(str::to_owned),
            ..DbBridge::new(Action::Query)
        };
        let mut notes = Vec::new();
        if let Answered::Rows(rows) = self.run(&request, cancel).await? {
            notes.extend(rows.notes);
            let may_change = rows.rows.first().and_then(|row| row.get("n")).and_then(Value::as_u64);
            if notes.is_empty() && may_change != Some(0) {
                notes.push(
                    "its user may change tables, which seeds need and queries do not: where nothing is seeded, give \
                     it a user that may only read (docs/databases.md)"
                        .to_owned(),
                );
            }
        }
        Ok(Checked { engine, notes })
    }
}
