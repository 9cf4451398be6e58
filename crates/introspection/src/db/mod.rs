//! The database of the application: describe its tables, query it, seed it.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("app.db"), "")?;
//! use introspection::db::{DbAction, Databases, DbBridge};
//! use workspace::Workspace;
//! use std::sync::Arc;
//!
//! let databases = Databases::new(Arc::new(Workspace::new([folder.path()])?));
//! let query = DbBridge::new(DbAction::Query).payload("SELECT 1 AS n");
//! let answer = serde_json::to_value(databases.run(&query, &Default::default()).await?)?;
//! assert_eq!(answer["rows"], serde_json::json!([{"n": 1}]));
//!
//! let query = query.payload("DELETE FROM t");
//! assert!(databases.run(&query, &Default::default()).await.is_err());
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! # Why a query cannot write
//!
//! The engine prevents it; the text of a statement is never judged here. A call runs one statement, on a connection of
//! its own.
//!
//! - **SQLite**: opened read only, with `query_only`; an authorizer that allows reading and a list of pragmas;
//!   defensive mode; no `ATTACH`, no extensions; limits on lengths; a progress handler that ends the statement
//!   at its time limit. The statement is prepared, and counted, before it runs.
//! - **PostgreSQL**: a `READ ONLY` transaction, in which the statement is run as a subquery by the extended
//!   protocol. So it is one statement, a `SELECT` or `VALUES`, and nothing that could end the transaction. Its
//!   *role* decides what a function may do beyond the database, such as reading the server's files: a
//!   superuser's connection reads as `pg_read_all_data`, which may do none of that, and the answer warns. Functions
//!   that the catalog marks `VOLATILE` are refused, but for a list of harmless ones: no transaction takes back what
//!   they do.
//! - **MySQL, MariaDB**: a read-only session and transaction, a prepared statement, which the server must also
//!   take for a subquery. `LOAD_FILE` needs the privilege `FILE`: give the connection's user none.
//!
//! A seed is one `INSERT`, `UPDATE`, `DELETE` or the like, in a transaction of its own, for one list of
//! parameters or several. Nothing defines or drops: such a statement is refused with [`Error::Ddl`].
//!
//! # Bounds
//!
//! 200 rows by default and 5,000 at most, about 40 KB of values, 2,000 characters of a value; the answer
//! says what was cut. 10 seconds by default. When the time is over, and when the call is cancelled, the
//! statement is stopped *in the server*: interrupted, or cancelled from a second connection.
//!
//! # Values
//!
//! Integers beyond ±2⁵³ and decimals are strings, since JSON readers would round them; so are dates and times,
//! as the engine writes them. JSON is itself, an array of PostgreSQL is an array. Bytes are
//! `{"$base64": "…", "bytes": n}`, which parameters take as well.
//!
//! # SQLite files
//!
//! Where neither the request nor the settings name a database, the one of the project is looked for: a file that its own
//! settings name, or the only SQLite file in the usual folders. The answer says which it was.
//!
//! A file must lie beneath a root, and is never created. On Linux it is opened, with its `-wal`, `-shm` and
//! `-journal`, in a folder that is held open by handle, and a link in the last place is not followed: a path
//! that is swapped meanwhile leads nowhere else. Elsewhere SQLite is given the path.
//!
//! SQLite's locks are those of POSIX, which a process loses when it closes *any* handle of the file: do not read
//! a database as a file while the same process seeds it.
//!
//! # TLS
//!
//! The URL decides: `sslmode` and `sslrootcert` for PostgreSQL, `ssl-mode` and `ssl-ca` for MySQL and MariaDB, by their
//! own documentation. Neither checks a certificate unless it is asked to (`verify-full`, `VERIFY_IDENTITY`). Known
//! authorities are Mozilla's, beside the file that is named.

mod action;
mod check;
mod deadline;
#[cfg(feature = "sqlite")]
mod discovery;
mod error;
mod json_value;
mod query_rows;
mod request;
mod response;
mod run_request;
mod schema;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod server;
mod source;
mod statement;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use action::DbAction;
pub use check::ConnectionCheck;
pub use error::{Error, StatementOutcome};
pub use query_rows::{QueryRows, ResultColumn};
pub use request::DbBridge;
pub use response::{DbResponse, SeedReport};
pub use schema::{CheckConstraint, DatabaseSchema, ForeignKey, TableColumn, TableIndex, TableSchema};
pub use source::Databases;
