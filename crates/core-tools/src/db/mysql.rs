//! MySQL and MariaDB: a connection for each call, a session that the server lets read only.
//!
//! A statement is prepared by the server, which takes one only, and must also be one that the server takes for a
//! subquery: that leaves out `INTO OUTFILE`, and all that a read-only transaction does not forbid. It is run with
//! `EXECUTE`, so that values come as the server writes them.

use super::rows::Collector;
use super::run::{Answered, Seeded, bounded};
use super::schema::{ForeignKey, Index, Schema, Table, TableColumn, is_asked_for};
use super::statement::{defines, first_word};
use super::value::{self, Cell};
use super::{Action, Column, DbBridge, Error, Rows};
use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Decode, Either, Executor, Row, SqlSafeStr, Statement};
use sqlx::{TypeInfo, ValueRef};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the server may take beyond our own limit, which stops the statement as well.
const GRACE: Duration = Duration::from_secs(1);

// <https://mariadb.com/docs/server/reference/error-codes>
const DUPLICATE_COLUMN: u16 = 1060;
const SYNTAX: u16 = 1064;
const NOT_PREPARED: u16 = 1295;
const READ_ONLY: u16 = 1792;
const NOT_ROLLED_BACK: u16 = 1196;

pub(super) async fn run(
    name: &str,
    url: &str,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<Answered, Error> {
    let options = options(name, url)?;
    let process = OnceLock::new();
    let work = async {
        let mut connection = connect(name, &options).await?;
        let own: u64 =
            sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS UNSIGNED)").fetch_one(&mut connection).await?;
        let _ = process.set(own);
        let answered = answer(&mut connection, request, cancel).await;
        if let Ok(Answered::Rows(rows)) = &answered
            && rows.truncated
        {
            // What is left of it is not worth its time.
            let _ = kill(&options, own).await;
        }
        // Whatever was begun and not committed ends with the connection.
        let _ = connection.close().await;
        answered
    };
    let (options, process) = (&options, &process);
    let stop = move || async move {
        if let Some(process) = process.get() {
            let _ = kill(options, *process).await;
        }
    };
    bounded(request.time_limit(), cancel, work, stop).await
}

fn options(name: &str, url: &str) -> Result<MySqlConnectOptions, Error> {
    // The server may be called by its own name; sqlx knows one.
    let url = url.strip_prefix("mariadb:").map_or_else(|| url.to_owned(), |rest| format!("mysql:{rest}"));
    let options = MySqlConnectOptions::from_str(&url).map_err(|_| Error::unreadable_url(name))?;
    // The server's own mode holds: statements mean what they mean to the application.
    Ok(options
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .statement_cache_capacity(0)
        .disable_statement_logging())
}

async fn connect(name: &str, options: &MySqlConnectOptions) -> Result<MySqlConnection, Error> {
    options.connect().await.map_err(|error| Error::refused(name, error, |code| code == "28000"))
}

/// Ends what the other connection does. A user may do that to itself.
async fn kill(options: &MySqlConnectOptions, process: u64) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    sqlx::raw_sql(AssertSqlSafe(format!("KILL QUERY {process}"))).execute(&mut connection).await?;
    connection.close().await
}

async fn answer(
    connection: &mut MySqlConnection,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<Answered, Error> {
    let limit = request.time_limit() + GRACE;
    let version: String =
        sqlx::query_scalar("SELECT CAST(VERSION() AS CHAR)").fetch_one(&mut *connection).await?;
    let timeout = if version.contains("MariaDB") {
        format!("SET SESSION max_statement_time = {}", limit.as_secs_f64())
    } else {
        format!("SET SESSION max_execution_time = {}", limit.as_millis())
    };
    own(connection, timeout).await?;
    own(connection, format!("SET SESSION innodb_lock_wait_timeout = {}", limit.as_secs().max(1))).await?;
    if request.action == Action::Seed {
        own(connection, "START TRANSACTION READ WRITE").await?;
    } else {
        // The session as well: what ends a transaction by itself, as DDL does, begins another that is no better.
        own(connection, "SET SESSION TRANSACTION READ ONLY").await?;
        own(connection, "START TRANSACTION READ ONLY").await?;
    }
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    match request.action {
        Action::Schema => schema(connection, &request.payload).await.map(Answered::Schema),
        Action::Query => query(connection, request).await.map(Answered::Rows),
        Action::Explain => explain(connection, request).await.map(Answered::Rows),
        Action::Seed => seed(connection, request).await.map(Answered::Seeded),
    }
}

/// A statement of our own.
async fn own(connection: &mut MySqlConnection, statement: impl Into<String>) -> Result<(), Error> {
    sqlx::raw_sql(AssertSqlSafe(statement.into())).execute(connection).await?;
    Ok(())
}

/// Has the server read the statement: its columns, and how many parameters it has.
async fn describe(
    connection: &mut MySqlConnection,
    statement: &str,
) -> Result<(Vec<Column>, usize), sqlx::Error> {
    let prepared = connection.prepare(AssertSqlSafe(statement).into_sql_str()).await?;
    let columns = prepared
        .columns()
        .iter()
        .map(|column| {
            use sqlx::Column as _;
            Column { name: column.name().to_owned(), kind: column.type_info().name().to_ascii_lowercase() }
        })
        .collect();
    let parameters = match prepared.parameters() {
        Some(Either::Right(count)) => count,
        Some(Either::Left(kinds)) => kinds.len(),
        None => 0,
    };
    Ok((columns, parameters))
}

/// Whether the server takes the statement after `before`; it is not run.
async fn takes(
    connection: &mut MySqlConnection,
    before: &str,
    statement: &str,
    after: &str,
) -> Result<(), sqlx::Error> {
    // The statement stands alone on its lines: a comment at its end is over before what follows.
    match describe(connection, &format!("{before}\n{statement}\n{after}")).await {
        // It was read, and its columns have names that a subquery's may not: two of one.
        Err(error) if number(&error) == Some(DUPLICATE_COLUMN) => Ok(()),
        other => other.map(|_| ()),
    }
}

fn number(error: &sqlx::Error) -> Option<u16> {
    error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number)
}

async fn query(connection: &mut MySqlConnection, request: &DbBridge) -> Result<Rows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let failed = |error| words(error, statement, "query");
    let (columns, parameters) = describe(connection, statement).await.map_err(failed)?;
    if takes(connection, "SELECT 1 FROM (", statement, ") AS coretools").await.is_err() || columns.is_empty()
    {
        return Err(not_permitted(statement, "query"));
    }
    let warning = warning(connection).await?;
    let lists = request.parameters()?;
    let execute =
        prepare(connection, statement, lists.first().copied().unwrap_or_default(), parameters).await?;
    // The server looks for no more than that.
    own(connection, format!("SET SESSION sql_select_limit = {}", limit + 1)).await?;
    let mut rows = Collector::new(columns, limit);
    if let Some(warning) = warning {
        rows.note(warning);
    }
    collect(connection, execute, &mut rows).await.map_err(failed)?;
    Ok(rows.finish())
}

async fn explain(connection: &mut MySqlConnection, request: &DbBridge) -> Result<Rows, Error> {
    let statement = request.statement()?;
    let failed = |error| words(error, statement, "explain");
    // Alone it must be a statement, so that nothing in it is an option of EXPLAIN.
    describe(connection, statement).await.map_err(failed)?;
    let explained = format!("EXPLAIN FORMAT=TRADITIONAL\n{statement}");
    let (columns, parameters) = describe(connection, &explained).await.map_err(failed)?;
    let lists = request.parameters()?;
    let execute =
        prepare(connection, &explained, lists.first().copied().unwrap_or_default(), parameters).await?;
    let mut rows = Collector::new(columns, request.row_limit()?);
    collect(connection, execute, &mut rows).await.map_err(failed)?;
    Ok(rows.finish())
}

async fn seed(connection: &mut MySqlConnection, request: &DbBridge) -> Result<Seeded, Error> {
    let statement = request.statement()?;
    let failed = |error| words(error, statement, "seed");
    let (_, parameters) = describe(connection, statement).await.map_err(failed)?;
    // The grammar of EXPLAIN takes what selects, inserts, replaces, changes or deletes rows, and nothing else. With
    // a format, since without one it takes names of tables, and `COMMIT` could be one.
    let class = takes(connection, "EXPLAIN FORMAT=JSON", statement, "").await;
    if class.is_err() || matches!(first_word(statement).as_str(), "select" | "values" | "table" | "with") {
        return Err(not_permitted(statement, "seed"));
    }
    let mut seeded = Seeded { dry_run: request.dry_run, ..Seeded::default() };
    for list in request.parameters()? {
        let execute = prepare(connection, statement, list, parameters).await?;
        let done = sqlx::raw_sql(AssertSqlSafe(execute)).execute(&mut *connection).await.map_err(failed)?;
        seeded.affected += done.rows_affected();
        seeded.last_insert_id = i64::try_from(done.last_insert_id()).ok().filter(|id| *id != 0);
    }
    if !request.dry_run {
        own(connection, "COMMIT").await?;
        return Ok(seeded);
    }
    own(connection, "ROLLBACK").await?;
    let warnings = sqlx::raw_sql("SHOW WARNINGS").fetch_all(&mut *connection).await?;
    if warnings.iter().any(|warning| text(warning, 1).is_some_and(|code| code == NOT_ROLLED_BACK.to_string()))
    {
        return Err(Error::Engine {
            message: "the table has no transactions: the change could NOT be taken back".to_owned(),
        });
    }
    Ok(seeded)
}

/// Prepares the statement and binds its parameters, all by name. What runs it.
async fn prepare(
    connection: &mut MySqlConnection,
    statement: &str,
    values: &[Value],
    wanted: usize,
) -> Result<String, Error> {
    if values.len() != wanted {
        return Err(Error::values(wanted, values.len()));
    }
    let mut using = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let set = sqlx::query(AssertSqlSafe(format!("SET @coretools_{index} = ?")));
        let set = match value {
            Value::Null => set.bind(None::<i64>),
            Value::Bool(value) => set.bind(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => set.bind(integer),
                (None, Some(real)) => set.bind(real),
                (None, None) => set.bind(number.to_string()),
            },
            Value::String(text) => set.bind(text.clone()),
            Value::Array(_) | Value::Object(_) => match value::from_base64(value)? {
                Some(bytes) => set.bind(bytes),
                None => set.bind(value.to_string()),
            },
        };
        set.execute(&mut *connection).await?;
        using.push(format!("@coretools_{index}"));
    }
    sqlx::query("SET @coretools_statement = ?").bind(statement).execute(&mut *connection).await?;
    own(connection, "PREPARE coretools FROM @coretools_statement").await?;
    let using = if using.is_empty() { String::new() } else { format!(" USING {}", using.join(", ")) };
    Ok(format!("EXECUTE coretools{using}"))
}

async fn collect(
    connection: &mut MySqlConnection,
    execute: String,
    rows: &mut Collector,
) -> Result<(), sqlx::Error> {
    let mut stream = sqlx::raw_sql(AssertSqlSafe(execute)).fetch(connection);
    while let Some(row) = stream.try_next().await? {
        if !rows.push((0..row.len()).map(|index| cell(&row, index))) {
            break;
        }
    }
    Ok(())
}

/// A value of a row, which the server has written as text.
fn cell(row: &MySqlRow, index: usize) -> Cell {
    let Ok(found) = row.try_get_raw(index) else { return (Value::Null, false) };
    if found.is_null() {
        return (Value::Null, false);
    }
    let kind = found.type_info().name().to_ascii_uppercase();
    let bytes = match <&[u8] as Decode<'_, MySql>>::decode(found) {
        Ok(bytes) => bytes,
        Err(error) => return (format!("[{error}]").into(), false),
    };
    let Ok(text) = std::str::from_utf8(bytes) else { return value::bytes(bytes, bytes.len()) };
    match kind.as_str() {
        "BOOLEAN" | "YEAR" => (value::integer_text(text), false),
        "FLOAT" | "DOUBLE" => (text.parse().map_or_else(|_| text.into(), value::real), false),
        "JSON" => value::json_text(text),
        "BIT" => {
            let bits = bytes.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
            (value::integer_text(&bits.to_string()), false)
        }
        kind if kind.contains("INT") => (value::integer_text(text), false),
        // A text that is compared by its bytes, such as MariaDB's JSON, is told from bytes by what it holds.
        kind if (kind.contains("BINARY") || kind.contains("BLOB") || kind == "GEOMETRY")
            && text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace()) =>
        {
            value::bytes(bytes, bytes.len())
        }
        _ => value::text(text),
    }
}

fn text(row: &MySqlRow, index: usize) -> Option<String> {
    let found = row.try_get_raw(index).ok().filter(|found| !found.is_null())?;
    let bytes = <&[u8] as Decode<'_, MySql>>::decode(found).ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// What this user may do that no transaction forbids.
async fn warning(connection: &mut MySqlConnection) -> Result<Option<String>, Error> {
    let may: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM information_schema.user_privileges WHERE privilege_type = 'FILE' \
         AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
    )
    .fetch_one(connection)
    .await?;
    Ok((may > 0).then(|| {
        "this user has the privilege FILE, with which a query can read the server's files; give the connection a \
         user that may only read (docs/databases.md)"
            .to_owned()
    }))
}

/// The engine's words, or ours for a statement of a kind that the action does not take.
fn words(error: sqlx::Error, statement: &str, action: &'static str) -> Error {
    if error.as_database_error().is_none() {
        return error.into();
    }
    if defines(statement) {
        return Error::Ddl;
    }
    let reads = ["select", "values", "table", "with", "insert", "update", "delete", "replace"];
    let by_kind = matches!(number(&error), Some(SYNTAX | NOT_PREPARED | READ_ONLY));
    if by_kind && (number(&error) == Some(READ_ONLY) || !reads.contains(&first_word(statement).as_str())) {
        return not_permitted(statement, action);
    }
    error.into()
}

fn not_permitted(statement: &str, action: &'static str) -> Error {
    if defines(statement) {
        return Error::Ddl;
    }
    let word = first_word(statement);
    let reason = match action {
        "seed" => format!("`{word}`; a seed is INSERT, UPDATE, DELETE or REPLACE"),
        "explain" => format!("`{word}`; the session of a plan only reads, so explain a SELECT"),
        _ => format!("`{word}`, or INTO; a query is SELECT, VALUES, TABLE or WITH; for a plan see `explain`"),
    };
    Error::NotPermitted { action, reason }
}

async fn schema(connection: &mut MySqlConnection, pattern: &str) -> Result<Schema, Error> {
    let all = sqlx::raw_sql(
        "SELECT table_name, table_type, table_rows FROM information_schema.tables \
         WHERE table_schema = DATABASE() ORDER BY table_name",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut tables: Vec<Table> = all
        .iter()
        .map(|row| Table {
            name: text(row, 0).unwrap_or_default(),
            kind: match text(row, 1).as_deref() {
                Some("BASE TABLE") | None => "table".to_owned(),
                Some(other) => other.to_ascii_lowercase(),
            },
            row_estimate: text(row, 2).and_then(|rows| rows.parse().ok()),
            ..Table::default()
        })
        .filter(|table| is_asked_for(pattern, &table.name))
        .collect();
    let mut schema = Schema::of("mysql", tables.iter().map(|table| table.name.clone()).collect());
    columns(connection, &mut tables).await?;
    indexes(connection, &mut tables).await?;
    foreign_keys(connection, &mut tables).await?;
    let mut bytes = 0;
    for table in tables {
        if !schema.describe(table, &mut bytes) {
            break;
        }
    }
    Ok(schema)
}

/// The table that the first column of `row` names, and the texts of the others.
fn place<'t>(tables: &'t mut [Table], row: &MySqlRow) -> Option<(&'t mut Table, Vec<Option<String>>)> {
    let name = text(row, 0)?;
    let table = tables.iter_mut().find(|table| table.name == name)?;
    Some((table, (1..row.len()).map(|index| text(row, index)).collect()))
}

async fn columns(connection: &mut MySqlConnection, tables: &mut [Table]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT table_name, column_name, column_type, is_nullable, column_default, column_key \
         FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position",
    )
    .fetch_all(connection)
    .await?;
    for row in &rows {
        let Some((table, said)) = place(tables, row) else { continue };
        if let [Some(name), Some(kind), Some(nullable), default, key] = &said[..] {
            table.columns.push(TableColumn {
                name: name.clone(),
                kind: kind.clone(),
                nullable: nullable == "YES",
                // MariaDB says that there is none in this way.
                default: default.clone().filter(|default| default != "NULL"),
                primary_key: key.as_deref() == Some("PRI"),
            });
        }
    }
    Ok(())
}

async fn indexes(connection: &mut MySqlConnection, tables: &mut [Table]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT table_name, index_name, non_unique, COALESCE(column_name, '(expression)') \
         FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index",
    )
    .fetch_all(connection)
    .await?;
    for row in &rows {
        let Some((table, said)) = place(tables, row) else { continue };
        let [Some(name), Some(many), Some(column)] = &said[..] else { continue };
        match table.indexes.last_mut() {
            Some(index) if index.name == *name => index.columns.push(column.clone()),
            _ => table.indexes.push(Index {
                name: name.clone(),
                columns: vec![column.clone()],
                unique: many == "0",
            }),
        }
    }
    Ok(())
}

async fn foreign_keys(connection: &mut MySqlConnection, tables: &mut [Table]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT table_name, constraint_name, column_name, referenced_table_name, referenced_column_name \
         FROM information_schema.key_column_usage WHERE table_schema = DATABASE() AND referenced_table_name IS NOT NULL \
         ORDER BY table_name, constraint_name, ordinal_position",
    )
    .fetch_all(connection)
    .await?;
    let mut last = None;
    for row in &rows {
        let Some((table, said)) = place(tables, row) else { continue };
        let [Some(name), Some(column), Some(other), Some(there)] = &said[..] else { continue };
        let key = Some((table.name.clone(), name.clone()));
        if last != key {
            table.foreign_keys.push(ForeignKey { table: other.clone(), ..ForeignKey::default() });
            last = key;
        }
        if let Some(key) = table.foreign_keys.last_mut() {
            key.columns.push(column.clone());
            key.references.push(there.clone());
        }
    }
    Ok(())
}
