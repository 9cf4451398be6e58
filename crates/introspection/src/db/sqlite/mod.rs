//! SQLite: a connection for each call, restricted by the engine's own means.

mod definition;
mod guard;
#[cfg(unix)]
mod mapping;
mod pinned_file;
mod prepare;
mod schema;
mod vfs;

use super::deadline::{StatementStopSteps, run_bounded};
use super::json_value::{self, ValueCell};
use super::query_rows::RowCollector;
use super::response::{DbResponse, SeedReport};
use super::{Databases, DbAction, DbBridge, Error, QueryRows};
use futures_util::TryStreamExt;
use guard::{AuthorizerMode, ConnectionGuard};
use pinned_file::PinnedFile;
use prepare::PreparedText;
use serde_json::Value;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow, SqliteValueRef};
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Connection, Decode, Either, Row, Sqlite, TypeInfo, ValueRef,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that a statement waits for another connection that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The words that an error gets if a rollback journal lies beside the database.
const UNFINISHED_TRANSACTION: &str = "a rollback journal lies beside the file: a program ended amid a transaction, or is in \
    one. A query cannot roll it back, and a transaction over several files is never rolled back here; open the file with the \
    program that it belongs to";

/// An open database.
struct OpenDatabase {
    /// Absent while a statement is prepared, and for good if that panicked.
    connection: Option<SqliteConnection>,
    guard: Arc<ConnectionGuard>,
    /// Keeps the folder open: SQLite opens files beside the database at any time.
    file: PinnedFile,
}

/// Runs `request` on the file at `path`.
pub(super) async fn run(
    databases: &Databases,
    path: &str,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    let guard = Arc::new(ConnectionGuard::new(BUSY_TIMEOUT.min(request.time_limit())));
    let work = async {
        let file = PinnedFile::open(databases, path, request)?;
        let mut database = OpenDatabase::open(file, request, Arc::clone(&guard)).await?;
        let response = match request.action {
            DbAction::Schema => {
                schema::schema(database.connection()?, &request.payload).await.map(DbResponse::Schema)
            }
            DbAction::Query => {
                query(&mut database, request, AuthorizerMode::Query).await.map(DbResponse::Rows)
            }
            DbAction::Explain => {
                query(&mut database, request, AuthorizerMode::Explain).await.map(DbResponse::Rows)
            }
            DbAction::Seed => seed(&mut database, request).await.map(DbResponse::Seed),
        };
        // Rows that were found with an empty index are none, whatever the engine says of them.
        let response = match database.has_lost_index().await {
            Ok(true) => Err(Error::IndexLost),
            Ok(false) => response,
            // The first error says more than the one of a connection that ended with it.
            Err(error) => response.and(Err(error)),
        };
        // SQLite must have closed its files before the handle of the folder is dropped.
        let closed = match database.connection.take() {
            Some(connection) => connection.close().await,
            None => Ok(()),
        };
        let response = response.map_err(|error| guard.translate_lock(error));
        let response = response.map_err(|error| match error {
            Error::Engine { message, code } if database.file.has_journal() => {
                Error::Engine { message: format!("{message}; {UNFINISHED_TRANSACTION}"), code }
            }
            other => other,
        })?;
        closed.map_err(Error::engine)?;
        Ok(response)
    };
    let stop = || {
        guard.stop();
        std::future::ready(())
    };
    run_bounded(request, cancel, work, StatementStopSteps { stop, end: stop }).await
}

impl OpenDatabase {
    /// Opens the file, read only unless the request is a seed, and restricts the connection.
    async fn open(file: PinnedFile, request: &DbBridge, guard: Arc<ConnectionGuard>) -> Result<Self, Error> {
        let seeds = request.action == DbAction::Seed;
        let mut options = SqliteConnectOptions::new()
            .filename(file.path())
            .create_if_missing(false)
            .read_only(!seeds)
            // Each call has a connection of its own, on which nothing is prepared twice.
            .statement_cache_capacity(0)
            // Until the guard's own wait takes its place, which can be stopped.
            .busy_timeout(BUSY_TIMEOUT.min(request.time_limit()))
            // Rows that are read ahead are kept in memory, and a row may have megabytes.
            .row_buffer_size(1)
            // A temporary file would be written outside the roots.
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        if !seeds {
            options = options.pragma("query_only", "ON");
        }
        if let Some(vfs) = vfs::name() {
            options = options.vfs(vfs);
        }
        let mut connection = options.connect().await.map_err(|error| Error::Connect {
            name: file.display_name().to_owned(),
            reason: Error::engine(error).to_string(),
        })?;
        guard::restrict(&mut connection, &guard).await?;
        Ok(Self { connection: Some(connection), guard, file })
    }

    /// Returns the connection.
    ///
    /// # Errors
    /// It is lost.
    fn connection(&mut self) -> Result<&mut SqliteConnection, Error> {
        self.connection.as_mut().ok_or_else(lost_connection)
    }

    /// Prepares `statement` and discards it again, to check that it is one statement and permitted in `mode`.
    async fn prepare(&mut self, statement: &str, mode: AuthorizerMode) -> Result<PreparedText, Error> {
        self.guard.enter(mode);
        let connection = self.connection.take().ok_or_else(lost_connection)?;
        let (connection, prepared) = prepare::prepare(connection, statement.to_owned()).await;
        self.connection = connection;
        let prepared = prepared.map_err(|error| self.guard.translate(error, statement))?;
        if prepared.statements != 1 {
            return Err(Error::StatementCount { found: prepared.statements });
        }
        Ok(prepared)
    }

    /// Returns true if the `-shm` file was cut while this connection had it mapped.
    async fn has_lost_index(&mut self) -> Result<bool, Error> {
        #[cfg(unix)]
        if let Some(connection) = &mut self.connection {
            return vfs::has_lost_mapping(connection).await.map_err(Error::engine);
        }
        Ok(false)
    }

    /// Runs a statement of this module, as opposed to one of the caller.
    async fn execute(&mut self, statement: &'static str) -> Result<(), Error> {
        self.guard.enter(AuthorizerMode::Internal);
        sqlx::query(statement).execute(self.connection()?).await.map_err(Error::engine)?;
        Ok(())
    }
}

fn lost_connection() -> Error {
    Error::engine_message("the connection was lost while the statement was prepared")
}

async fn query(
    database: &mut OpenDatabase,
    request: &DbBridge,
    mode: AuthorizerMode,
) -> Result<QueryRows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let mut prepared = database.prepare(statement, mode).await?;
    let mut text = statement.to_owned();
    if mode == AuthorizerMode::Explain {
        // The statement was prepared by itself first, so nothing in it can continue EXPLAIN.
        text = format!("EXPLAIN QUERY PLAN {statement}");
        prepared = database.prepare(&text, mode).await?;
    }
    let permitted = if mode == AuthorizerMode::Explain { prepared.explains } else { prepared.reads_only };
    if !permitted || prepared.columns.is_empty() {
        return Err(database.guard.denial(statement).unwrap_or_else(|| guard::not_a_query(statement)));
    }
    let parameters = request.parameters()?;
    let arguments = arguments(parameters.first().copied().unwrap_or_default(), prepared.parameters)?;
    let mut rows = RowCollector::new(prepared.columns, limit);
    let guard = Arc::clone(&database.guard);
    let mut stream = sqlx::query_with(AssertSqlSafe(text), arguments).fetch(database.connection()?);
    loop {
        match stream.try_next().await {
            Ok(Some(row)) => {
                if !rows.push((0..row.len()).map(|index| cell(&row, index))) {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => return Err(guard.translate(Error::engine(error), statement)),
        }
    }
    // SQLite would go on to compute rows that nobody reads.
    guard.stop();
    Ok(rows.finish())
}

async fn seed(database: &mut OpenDatabase, request: &DbBridge) -> Result<SeedReport, Error> {
    let statement = request.statement()?;
    let prepared = database.prepare(statement, AuthorizerMode::Seed).await?;
    if prepared.reads_only {
        return Err(database.guard.denial(statement).unwrap_or_else(|| guard::not_a_seed(statement)));
    }
    let lists = request.parameters()?;
    // The write lock at once: a transaction that reads first cannot wait for it later.
    database.execute("BEGIN IMMEDIATE").await?;
    let mut report = SeedReport { dry_run: request.dry_run, ..SeedReport::default() };
    let mut returned = RowCollector::new(prepared.columns, request.row_limit()?);
    for list in lists {
        let arguments = arguments(list, prepared.parameters)?;
        database.guard.enter(AuthorizerMode::Seed);
        let guard = Arc::clone(&database.guard);
        let query = sqlx::query_with(AssertSqlSafe(statement), arguments);
        #[expect(
            deprecated,
            reason = "the statement was prepared as one, and only this gives rows and their number"
        )]
        let mut results = query.fetch_many(database.connection()?);
        // After an error the connection is closed, which rolls the transaction back.
        let failed = |error| guard.translate(Error::engine(error), statement);
        while let Some(result) = results.try_next().await.map_err(failed)? {
            match result {
                Either::Left(done) => {
                    report.affected += done.rows_affected();
                    // SQLite returns 0 on a connection that has inserted nothing.
                    report.last_insert_id = Some(done.last_insert_rowid()).filter(|id| *id != 0);
                }
                // A full answer takes no more rows; the statement goes on.
                Either::Right(row) => {
                    returned.push((0..row.len()).map(|index| cell(&row, index)));
                }
            }
        }
    }
    report.add_returned(returned);
    database.execute(if request.dry_run { "ROLLBACK" } else { "COMMIT" }).await?;
    Ok(report)
}

/// Binds `values`, of which there must be `expected`.
fn arguments(values: &[Value], expected: usize) -> Result<SqliteArguments, Error> {
    if values.len() != expected {
        return Err(Error::parameter_count(expected, values.len()));
    }
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Bool(value) => arguments.add(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => arguments.add(integer),
                (None, _) if number.is_u64() => {
                    return Err(Error::argument(
                        "params",
                        format!("{number} is larger than an integer of SQLite; give it as a text"),
                    ));
                }
                (None, Some(real)) => arguments.add(real),
                (None, None) => arguments.add(number.to_string()),
            },
            Value::String(text) => arguments.add(text.clone()),
            Value::Array(_) | Value::Object(_) => match json_value::from_base64(value)? {
                Some(bytes) => arguments.add(bytes),
                None => arguments.add(value.to_string()),
            },
        };
        added.map_err(|error| Error::argument("params", error.to_string()))?;
    }
    Ok(arguments)
}

/// Converts a value of a row. One that cannot be decoded is answered as the error.
fn cell(row: &SqliteRow, index: usize) -> ValueCell {
    match row.try_get_raw(index).and_then(decode_cell) {
        Ok(cell) => cell,
        Err(sqlx::Error::Decode(error)) => ValueCell::unreadable(&error),
        Err(error) => ValueCell::unreadable(&error),
    }
}

fn decode_cell(raw: SqliteValueRef<'_>) -> Result<ValueCell, sqlx::Error> {
    fn decode<'r, T: Decode<'r, Sqlite>>(raw: SqliteValueRef<'r>) -> Result<T, sqlx::Error> {
        T::decode(raw).map_err(sqlx::Error::Decode)
    }
    if raw.is_null() {
        return Ok(ValueCell::null());
    }
    // The type of the value, not of the column: in SQLite they may differ.
    let kind = raw.type_info();
    Ok(match kind.name() {
        "INTEGER" | "BOOLEAN" => ValueCell::whole(json_value::integer(decode(raw)?)),
        "REAL" => ValueCell::whole(json_value::real(decode(raw)?)),
        "TEXT" => {
            // SQLite does not check that a text is UTF-8.
            let bytes: &[u8] = decode(raw)?;
            match std::str::from_utf8(bytes) {
                Ok(text) => json_value::text(text),
                Err(_) => json_value::bytes(bytes, bytes.len()),
            }
        }
        _ => {
            let bytes: &[u8] = decode(raw)?;
            json_value::bytes(bytes, bytes.len())
        }
    })
}
