//! SQLite: a connection for each call, fenced in by the engine's own means.

mod guard;
mod place;
mod schema;
mod shim;

use super::rows::Collector;
use super::run::{Answered, Seeded, bounded};
use super::value::{self, Cell};
use super::{Action, Column, Databases, DbBridge, Error};
use futures_util::TryStreamExt;
use guard::{Guard, Mode, Prepared};
use place::Held;
use serde_json::Value;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow, SqliteValueRef};
use sqlx::{Arguments, AssertSqlSafe, ConnectOptions, Connection, Decode, Row, Sqlite, TypeInfo, ValueRef};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long is waited for another connection that is writing.
const BUSY: Duration = Duration::from_secs(5);

/// An open database, and the folder it lies in.
struct Database {
    connection: SqliteConnection,
    guard: Arc<Guard>,
    /// As long as SQLite may open something beside the file.
    _held: Held,
}

pub(super) async fn run(
    databases: &Databases,
    path: &str,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<Answered, Error> {
    let guard = Arc::new(Guard::default());
    let work = async {
        let held = place::hold(databases, path, request)?;
        let mut database = Database::open(held, request, Arc::clone(&guard)).await?;
        let answered = match request.action {
            Action::Schema => {
                schema::schema(&mut database.connection, &request.payload).await.map(Answered::Schema)
            }
            Action::Query => query(&mut database, request, Mode::Query).await.map(Answered::Rows),
            Action::Explain => query(&mut database, request, Mode::Explain).await.map(Answered::Rows),
            Action::Seed => seed(&mut database, request).await.map(Answered::Seeded),
        };
        // The engine is done with its files before the folder is let go.
        let closed = database.connection.close().await;
        let answered = answered?;
        closed?;
        Ok(answered)
    };
    let stop = || {
        guard.stop();
        std::future::ready(())
    };
    bounded(request.time_limit(), cancel, work, stop).await
}

impl Database {
    async fn open(held: Held, request: &DbBridge, guard: Arc<Guard>) -> Result<Self, Error> {
        let seeds = request.action == Action::Seed;
        let mut options = SqliteConnectOptions::new()
            .filename(held.path())
            .create_if_missing(false)
            .read_only(!seeds)
            .statement_cache_capacity(0)
            .busy_timeout(BUSY.min(request.time_limit()))
            // A row may have megabytes.
            .row_buffer_size(1)
            // Nothing is written but the database.
            .pragma("temp_store", "MEMORY")
            .disable_statement_logging();
        if !seeds {
            options = options.pragma("query_only", "ON");
        }
        if let Some(vfs) = shim::vfs() {
            options = options.vfs(vfs);
        }
        let mut connection = options.connect().await.map_err(|error| Error::Connect {
            name: held.shown().to_owned(),
            reason: Error::from(error).to_string(),
        })?;
        guard::fence(&mut connection, &guard).await?;
        Ok(Self { connection, guard, _held: held })
    }

    /// Prepares `statement` and lets go of it again: one statement, all of it permitted in `mode`.
    async fn prepare(&mut self, statement: &str, mode: Mode) -> Result<Prepared, Error> {
        self.guard.enter(mode);
        let prepared = guard::prepare(&mut self.connection, statement).await;
        let prepared = prepared.map_err(|error| self.guard.words(error, statement))?;
        if prepared.statements != 1 {
            return Err(Error::Statements { found: prepared.statements });
        }
        Ok(prepared)
    }

    /// A statement of our own.
    async fn internal(&mut self, statement: &'static str) -> Result<(), Error> {
        self.guard.enter(Mode::Internal);
        sqlx::query(statement).execute(&mut self.connection).await?;
        Ok(())
    }
}

async fn query(database: &mut Database, request: &DbBridge, mode: Mode) -> Result<crate::db::Rows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let mut prepared = database.prepare(statement, mode).await?;
    let mut text = statement.to_owned();
    if mode == Mode::Explain {
        text = format!("EXPLAIN QUERY PLAN {statement}");
        prepared = database.prepare(&text, mode).await?;
    }
    let permitted = if mode == Mode::Explain { prepared.explains } else { prepared.reads_only };
    if !permitted || prepared.columns.is_empty() {
        return Err(database.guard.refusal(statement).unwrap_or_else(|| guard::not_a_query(statement)));
    }
    let parameters = request.parameters()?;
    let arguments = arguments(parameters.first().copied().unwrap_or_default(), prepared.parameters)?;
    let mut rows = Collector::new(prepared.columns, limit);
    let guard = Arc::clone(&database.guard);
    let mut stream = sqlx::query_with(AssertSqlSafe(text), arguments).fetch(&mut database.connection);
    loop {
        match stream.try_next().await {
            Ok(Some(row)) => {
                if !rows.push((0..row.len()).map(|index| cell(&row, index))) {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => return Err(guard.words(error.into(), statement)),
        }
    }
    // What is left of it is not worth its time.
    guard.stop();
    Ok(rows.finish())
}

async fn seed(database: &mut Database, request: &DbBridge) -> Result<Seeded, Error> {
    let statement = request.statement()?;
    let prepared = database.prepare(statement, Mode::Seed).await?;
    if prepared.reads_only {
        return Err(database.guard.refusal(statement).unwrap_or_else(|| guard::not_a_seed(statement)));
    }
    let lists = request.parameters()?;
    database.internal("BEGIN IMMEDIATE").await?;
    let mut seeded = Seeded { dry_run: request.dry_run, ..Seeded::default() };
    for list in lists {
        let arguments = arguments(list, prepared.parameters)?;
        database.guard.enter(Mode::Seed);
        let query = sqlx::query_with(AssertSqlSafe(statement), arguments);
        // A connection that is closed in a transaction takes it back.
        let done = query.execute(&mut database.connection).await;
        let done = done.map_err(|error| database.guard.words(error.into(), statement))?;
        seeded.affected += done.rows_affected();
        seeded.last_insert_id = Some(done.last_insert_rowid()).filter(|id| *id != 0);
    }
    database.internal(if request.dry_run { "ROLLBACK" } else { "COMMIT" }).await?;
    Ok(seeded)
}

fn arguments(values: &[Value], wanted: usize) -> Result<SqliteArguments, Error> {
    if values.len() != wanted {
        return Err(Error::values(wanted, values.len()));
    }
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Bool(value) => arguments.add(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => arguments.add(integer),
                (None, Some(real)) => arguments.add(real),
                (None, None) => arguments.add(number.to_string()),
            },
            Value::String(text) => arguments.add(text.clone()),
            Value::Array(_) | Value::Object(_) => match value::from_base64(value)? {
                Some(bytes) => arguments.add(bytes),
                None => arguments.add(value.to_string()),
            },
        };
        added.map_err(|error| Error::argument("params", error.to_string()))?;
    }
    Ok(arguments)
}

/// A value of a row. What cannot be read is said in its place.
fn cell(row: &SqliteRow, index: usize) -> Cell {
    match row.try_get_raw(index).map_err(|error| error.to_string()).and_then(read) {
        Ok(cell) => cell,
        Err(error) => (format!("[{error}]").into(), false),
    }
}

fn read(found: SqliteValueRef<'_>) -> Result<Cell, String> {
    fn decode<'r, T: Decode<'r, Sqlite>>(found: SqliteValueRef<'r>) -> Result<T, String> {
        T::decode(found).map_err(|error| error.to_string())
    }
    if found.is_null() {
        return Ok((Value::Null, false));
    }
    let kind = found.type_info();
    Ok(match kind.name() {
        "INTEGER" | "BOOLEAN" => (value::integer(decode(found)?), false),
        "REAL" => (value::real(decode(found)?), false),
        "TEXT" => {
            // A text may hold what is none.
            let bytes: &[u8] = decode(found)?;
            match std::str::from_utf8(bytes) {
                Ok(text) => value::text(text),
                Err(_) => value::bytes(bytes, bytes.len()),
            }
        }
        _ => {
            let bytes: &[u8] = decode(found)?;
            value::bytes(bytes, bytes.len())
        }
    })
}

impl From<(String, String)> for Column {
    fn from((name, kind): (String, String)) -> Self {
        Self { name, kind }
    }
}
