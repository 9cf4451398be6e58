//! MySQL and MariaDB: a connection for each call, a session that the server lets read only.
//!
//! The server prepares each statement, which limits it to one, and must also accept it as a subquery: that rules out
//! `INTO OUTFILE` and everything else that a read-only transaction does not forbid. It is run with `EXECUTE`, so that
//! values arrive as the text that the server writes.

use super::json_value::{self, ValueCell};
use super::query_rows::RowCollector;
use super::response::{DbResponse, SeedReport};
use super::schema::{
    CheckConstraint, DatabaseSchema, ForeignKey, TableColumn, TableIndex, TableSchema, key_action,
    matches_pattern,
};
use super::server::{self, DatabaseServer, SERVER_LIMIT_MARGIN};
use super::statement::{first_word, is_ddl};
use super::{DbAction, DbBridge, Error, QueryRows, ResultColumn};
use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Decode, Either, Executor, Row, SqlSafeStr, Statement};
use sqlx::{TypeInfo, ValueRef};
use std::str::FromStr;
use tokio_util::sync::CancellationToken;

// <https://mariadb.com/docs/server/reference/error-codes>
const ER_DUP_FIELDNAME: u16 = 1060;
const ER_PARSE_ERROR: u16 = 1064;
const ER_UNSUPPORTED_PS: u16 = 1295;
const ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: u16 = 1792;
const ER_WARNING_NOT_COMPLETE_ROLLBACK: u16 = 1196;

/// Runs `request` on the database of `url`, which messages call `name`.
pub(super) async fn run(
    name: &str,
    url: &str,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    server::run(&MySqlServer { name, options: parse_options(name, url)? }, request, cancel).await
}

/// One database of a MySQL or MariaDB server.
struct MySqlServer<'a> {
    /// The name of the database in messages.
    name: &'a str,
    options: MySqlConnectOptions,
}

impl DatabaseServer for MySqlServer<'_> {
    type Connection = MySqlConnection;
    type ConnectionId = u64;

    async fn connect(&self) -> Result<MySqlConnection, Error> {
        let connection = self.options.connect().await;
        connection.map_err(|error| Error::connect(self.name, error, |code| code == "28000"))
    }

    async fn connection_id(connection: &mut MySqlConnection) -> Result<u64, Error> {
        sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS UNSIGNED)")
            .fetch_one(connection)
            .await
            .map_err(Error::engine)
    }

    async fn stop_statement(&self, id: u64) -> Result<(), sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(AssertSqlSafe(format!("KILL QUERY {id}"))).execute(&mut connection).await?;
        connection.close().await
    }

    async fn end_connection(&self, id: u64) -> Result<(), sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(AssertSqlSafe(format!("KILL CONNECTION {id}"))).execute(&mut connection).await?;
        connection.close().await
    }

    async fn execute(
        &self,
        connection: &mut MySqlConnection,
        id: u64,
        request: &DbBridge,
        cancel: &CancellationToken,
    ) -> Result<DbResponse, Error> {
        let response = execute_request(connection, request, cancel).await;
        if let Ok(DbResponse::Rows(rows)) = &response
            && rows.truncated
        {
            // The server would send all other rows before it closes the connection.
            let _ = self.stop_statement(id).await;
        }
        response
    }
}

fn parse_options(name: &str, url: &str) -> Result<MySqlConnectOptions, Error> {
    // sqlx knows only the scheme `mysql`.
    let url = url.strip_prefix("mariadb:").map_or_else(|| url.to_owned(), |rest| format!("mysql:{rest}"));
    let mut options = MySqlConnectOptions::from_str(&url).map_err(|_| Error::unreadable_url(name))?;
    // sqlx would change the time zone and `sql_mode`. Statements have to mean what they mean to the application.
    let settings = url.split_once('?').map_or("", |(_, settings)| settings);
    if !settings
        .split('&')
        .any(|setting| setting.starts_with("timezone=") || setting.starts_with("time-zone="))
    {
        options = options.timezone(None);
    }
    Ok(options
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        // Each call has a connection of its own, on which nothing is prepared twice.
        .statement_cache_capacity(0)
        .disable_statement_logging())
}

/// Opens the transaction that the action needs and runs the request in it.
async fn execute_request(
    connection: &mut MySqlConnection,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    let limit = request.time_limit() + SERVER_LIMIT_MARGIN;
    let version: String = sqlx::query_scalar("SELECT CAST(VERSION() AS CHAR)")
        .fetch_one(&mut *connection)
        .await
        .map_err(Error::engine)?;
    // Different variables in different units: MariaDB takes seconds, as a decimal number, and limits every statement;
    // MySQL takes milliseconds, and limits SELECT only.
    let timeout = if version.contains("MariaDB") {
        format!("SET SESSION max_statement_time = {}", limit.as_secs_f64())
    } else {
        format!("SET SESSION max_execution_time = {}", limit.as_millis())
    };
    execute(connection, timeout).await?;
    // The unit is whole seconds, and MySQL's minimum is 1.
    execute(connection, format!("SET SESSION innodb_lock_wait_timeout = {}", limit.as_secs().max(1))).await?;
    if request.action == DbAction::Seed {
        execute(connection, "START TRANSACTION READ WRITE").await?;
    } else {
        // The session too: a statement that commits implicitly, as DDL does, would otherwise begin a transaction that
        // can write.
        execute(connection, "SET SESSION TRANSACTION READ ONLY").await?;
        execute(connection, "START TRANSACTION READ ONLY").await?;
    }
    // KILL QUERY has no effect while the connection is idle, so one that came between the statements above may have
    // been lost.
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    match request.action {
        DbAction::Schema => schema(connection, &request.payload).await.map(DbResponse::Schema),
        DbAction::Query => query(connection, request).await.map(DbResponse::Rows),
        DbAction::Explain => explain(connection, request).await.map(DbResponse::Rows),
        DbAction::Seed => seed(connection, request, cancel).await.map(DbResponse::Seed),
    }
}

/// Runs a statement of this module, as opposed to one of the caller.
async fn execute(connection: &mut MySqlConnection, statement: impl Into<String>) -> Result<(), Error> {
    sqlx::raw_sql(AssertSqlSafe(statement.into())).execute(connection).await.map_err(Error::engine)?;
    Ok(())
}

/// Has the server prepare the statement, and returns its columns and the number of its parameters. It is not run.
async fn describe(
    connection: &mut MySqlConnection,
    statement: &str,
) -> Result<(Vec<ResultColumn>, usize), sqlx::Error> {
    let prepared = connection.prepare(AssertSqlSafe(statement).into_sql_str()).await?;
    let columns = columns_of(prepared.columns());
    let parameters = match prepared.parameters() {
        Some(Either::Right(count)) => count,
        Some(Either::Left(kinds)) => kinds.len(),
        None => 0,
    };
    Ok((columns, parameters))
}

fn columns_of(columns: &[sqlx::mysql::MySqlColumn]) -> Vec<ResultColumn> {
    use sqlx::Column as _;
    let column = |column: &sqlx::mysql::MySqlColumn| ResultColumn {
        name: column.name().to_owned(),
        kind: column.type_info().name().to_ascii_lowercase(),
    };
    columns.iter().map(column).collect()
}

/// Checks that the server accepts the statement between `before` and `after`. It is not run.
async fn check_within(
    connection: &mut MySqlConnection,
    before: &str,
    statement: &str,
    after: &str,
) -> Result<(), sqlx::Error> {
    // On lines of its own: a line comment at its end does not swallow what follows.
    match describe(connection, &format!("{before}\n{statement}\n{after}")).await {
        // The statement is fine: two of its columns have one name, which is only forbidden in a subquery.
        Err(error) if error_number(&error) == Some(ER_DUP_FIELDNAME) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Returns the number of an error of the server.
fn error_number(error: &sqlx::Error) -> Option<u16> {
    error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>().map(MySqlDatabaseError::number)
}

async fn query(connection: &mut MySqlConnection, request: &DbBridge) -> Result<QueryRows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let failed = |error| translate(error, statement, DbAction::Query);
    let (columns, parameters) = describe(connection, statement).await.map_err(failed)?;
    // Only a statement that reads fits between parentheses.
    if check_within(connection, "SELECT 1 FROM (", statement, ") AS coretools").await.is_err()
        || columns.is_empty()
    {
        return Err(not_permitted(statement, DbAction::Query));
    }
    let warning = file_privilege_warning(connection).await?;
    let lists = request.parameters()?;
    let execute_sql =
        prepare(connection, statement, lists.first().copied().unwrap_or_default(), parameters).await?;
    // One more than is answered, to know that there are more.
    execute(connection, format!("SET SESSION sql_select_limit = {}", limit + 1)).await?;
    let has_timestamp = columns.iter().any(|column| column.kind == "timestamp");
    let mut rows = RowCollector::new(columns, limit);
    if let Some(warning) = warning {
        rows.add_note(warning);
    }
    if has_timestamp {
        rows.add_note(time_zone_note(connection).await?);
    }
    collect(connection, execute_sql, &mut rows).await.map_err(failed)?;
    // Of more rows than are answered, the rest would have to be read first.
    if !rows.is_full()
        && let Some(note) = warnings(connection).await?
    {
        rows.add_note(note);
    }
    Ok(rows.finish())
}

/// Returns a note on the warnings of the last statement, if there are any: a value that was changed on its way into a column
/// or in an expression.
async fn warnings(connection: &mut MySqlConnection) -> Result<Option<String>, Error> {
    /// The number of warnings that a note names.
    const MAX_NAMED: usize = 5;
    let found = sqlx::raw_sql("SHOW WARNINGS").fetch_all(&mut *connection).await.map_err(Error::engine)?;
    let mut named: Vec<String> = found
        .iter()
        .map(|row| {
            let part = |index| text(row, index).unwrap_or_default();
            format!("{} ({})", part(2), part(1))
        })
        .collect();
    // The server repeats some when it prepares a statement.
    named.dedup();
    let count = named.len();
    named.truncate(MAX_NAMED);
    let more = if count > MAX_NAMED { format!("; and {} more", count - MAX_NAMED) } else { String::new() };
    Ok((count > 0).then(|| format!("the server warns: {}{more}", named.join("; "))))
}

async fn explain(connection: &mut MySqlConnection, request: &DbBridge) -> Result<QueryRows, Error> {
    let statement = request.statement()?;
    let failed = |error| translate(error, statement, DbAction::Explain);
    // It must be a statement without EXPLAIN too: else its first words could be options of EXPLAIN, such as ANALYZE,
    // which runs it.
    describe(connection, statement).await.map_err(failed)?;
    let explained = format!("EXPLAIN FORMAT=TRADITIONAL\n{statement}");
    let (columns, parameters) = describe(connection, &explained).await.map_err(failed)?;
    let lists = request.parameters()?;
    let execute_sql =
        prepare(connection, &explained, lists.first().copied().unwrap_or_default(), parameters).await?;
    let mut rows = RowCollector::new(columns, request.row_limit()?);
    collect(connection, execute_sql, &mut rows).await.map_err(failed)?;
    Ok(rows.finish())
}

async fn seed(
    connection: &mut MySqlConnection,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<SeedReport, Error> {
    let statement = request.statement()?;
    let failed = |error| translate(error, statement, DbAction::Seed);
    let (columns, parameters) = describe(connection, statement).await.map_err(failed)?;
    // EXPLAIN accepts statements that select, insert, replace, update or delete rows, and nothing else. It needs the
    // format: without one it also accepts the name of a table, and `COMMIT` would be one.
    let explainable = check_within(connection, "EXPLAIN FORMAT=JSON", statement, "").await;
    if explainable.is_err()
        || matches!(first_word(statement).as_str(), "select" | "values" | "table" | "with")
    {
        return Err(not_permitted(statement, DbAction::Seed));
    }
    let outcome = run_seed(connection, request, statement, (columns, parameters)).await;
    // BENCHMARK and SLEEP that are interrupted return a value, and the statement goes on with that.
    let outcome = match outcome {
        Ok(_) if cancel.is_cancelled() => Err(Error::Cancelled),
        outcome => outcome,
    };
    if outcome.is_ok() && !request.dry_run {
        execute(connection, "COMMIT").await?;
        return outcome;
    }
    match (roll_back(connection).await, outcome) {
        (Ok(true), outcome) => outcome,
        (Ok(false), Ok(_)) => {
            Err(Error::engine_message("the table has no transactions: the change could NOT be taken back"))
        }
        (Ok(false), Err(Error::Engine { message, code })) => Err(Error::Engine {
            message: format!(
                "{message}; the table has no transactions: what was changed before this could NOT be taken back"
            ),
            code,
        }),
        // The error of the statement says more than that of the rollback, which a broken connection does by itself.
        (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
    }
}

/// Runs the statement of a seed once for each list of its parameters.
async fn run_seed(
    connection: &mut MySqlConnection,
    request: &DbBridge,
    statement: &str,
    (columns, parameters): (Vec<ResultColumn>, usize),
) -> Result<SeedReport, Error> {
    let mut report = SeedReport { dry_run: request.dry_run, ..SeedReport::default() };
    let mut returned = RowCollector::new(columns, request.row_limit()?);
    let failed = |error| translate(error, statement, DbAction::Seed);
    for list in request.parameters()? {
        let execute_sql = prepare(connection, statement, list, parameters).await?;
        let (affected, returned_rows, mut last_insert_id) =
            run_change(connection, execute_sql, &mut returned).await.map_err(failed)?;
        let note = warnings(connection).await?.filter(|note| !report.notes.contains(note));
        report.notes.extend(note);
        report.affected += affected;
        // After rows, which are those of RETURNING, the server sends neither number nor key.
        if returned_rows > 0 && affected == 0 {
            report.affected += returned_rows;
            let id = sqlx::raw_sql("SELECT LAST_INSERT_ID()").fetch_one(&mut *connection).await;
            let id = id.map_err(Error::engine)?;
            last_insert_id = text(&id, 0).and_then(|id| id.parse().ok()).unwrap_or_default();
        }
        // The server sends 0 if the statement generated no key.
        report.last_insert_id = i64::try_from(last_insert_id).ok().filter(|id| *id != 0);
    }
    report.add_returned(returned);
    Ok(report)
}

/// Runs a statement that changes rows, and returns their number, the number of rows that it returned, and the key that was
/// generated.
async fn run_change(
    connection: &mut MySqlConnection,
    execute_sql: String,
    returned: &mut RowCollector,
) -> Result<(u64, u64, u64), sqlx::Error> {
    let (mut affected, mut last_insert_id, mut returned_rows) = (0, 0, 0);
    let mut results = sqlx::raw_sql(AssertSqlSafe(execute_sql)).fetch_many(connection);
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Left(done) => {
                affected += done.rows_affected();
                last_insert_id = done.last_insert_id();
            }
            Either::Right(row) => {
                returned_rows += 1;
                // MariaDB names the columns of RETURNING only with the rows.
                returned.name_columns(|| columns_of(row.columns()));
                // A full answer takes no more rows; the statement goes on.
                returned.push((0..row.len()).map(|index| cell(&row, index)));
            }
        }
    }
    Ok((affected, returned_rows, last_insert_id))
}

/// Takes the changes of the transaction back. Returns false if some of them remain: tables without transactions, such as
/// those of `MyISAM`, keep them, and the server only warns.
async fn roll_back(connection: &mut MySqlConnection) -> Result<bool, Error> {
    execute(connection, "ROLLBACK").await?;
    let warnings = sqlx::raw_sql("SHOW WARNINGS").fetch_all(connection).await.map_err(Error::engine)?;
    let incomplete = ER_WARNING_NOT_COMPLETE_ROLLBACK.to_string();
    Ok(!warnings.iter().any(|warning| text(warning, 1).is_some_and(|code| code == incomplete)))
}

/// Prepares the statement under a name, sets its parameters as variables of the session, and returns the `EXECUTE` that
/// runs it. With `EXECUTE` the server sends values as text, so no type has to be decoded here.
async fn prepare(
    connection: &mut MySqlConnection,
    statement: &str,
    values: &[Value],
    expected: usize,
) -> Result<String, Error> {
    if values.len() != expected {
        return Err(Error::parameter_count(expected, values.len()));
    }
    let mut using = Vec::new();
    for (index, value) in values.iter().enumerate() {
        // The values are bound, so none becomes part of the text of a statement.
        let set = sqlx::query(AssertSqlSafe(format!("SET @coretools_{index} = ?")));
        let set = match value {
            Value::Null => set.bind(None::<i64>),
            Value::Bool(value) => set.bind(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(integer), ..) => set.bind(integer),
                (None, Some(unsigned), _) => set.bind(unsigned),
                (None, None, Some(real)) => set.bind(real),
                (None, None, None) => set.bind(number.to_string()),
            },
            Value::String(text) => set.bind(text.clone()),
            Value::Array(_) | Value::Object(_) => match json_value::from_base64(value)? {
                Some(bytes) => set.bind(bytes),
                None => set.bind(value.to_string()),
            },
        };
        set.execute(&mut *connection).await.map_err(Error::engine)?;
        using.push(format!("@coretools_{index}"));
    }
    sqlx::query("SET @coretools_statement = ?")
        .bind(statement)
        .execute(&mut *connection)
        .await
        .map_err(Error::engine)?;
    execute(connection, "PREPARE coretools FROM @coretools_statement").await?;
    let using = if using.is_empty() { String::new() } else { format!(" USING {}", using.join(", ")) };
    Ok(format!("EXECUTE coretools{using}"))
}

/// Runs `execute_sql` and collects its rows until the answer is full.
async fn collect(
    connection: &mut MySqlConnection,
    execute_sql: String,
    rows: &mut RowCollector,
) -> Result<(), sqlx::Error> {
    let mut stream = sqlx::raw_sql(AssertSqlSafe(execute_sql)).fetch(connection);
    while let Some(row) = stream.try_next().await? {
        if !rows.push((0..row.len()).map(|index| cell(&row, index))) {
            break;
        }
    }
    Ok(())
}

/// Converts a value of a row, which the server has written as text.
fn cell(row: &MySqlRow, index: usize) -> ValueCell {
    let Ok(raw) = row.try_get_raw(index) else { return ValueCell::null() };
    if raw.is_null() {
        return ValueCell::null();
    }
    let kind = raw.type_info().name().to_ascii_uppercase();
    let bytes = match <&[u8] as Decode<'_, MySql>>::decode(raw) {
        Ok(bytes) => bytes,
        Err(error) => return ValueCell::unreadable(&error),
    };
    // The server sends bits as bytes, the highest first, also in its text form. They are no text: those of b'10000000'
    // are not even UTF-8.
    if kind == "BIT" {
        let bits = bytes.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        return ValueCell::whole(json_value::integer_text(&bits.to_string()));
    }
    // The server converts texts to the character set of the connection, which is UTF-8.
    let Ok(text) = std::str::from_utf8(bytes) else { return json_value::bytes(bytes, bytes.len()) };
    match kind.as_str() {
        "BOOLEAN" | "YEAR" => ValueCell::whole(json_value::integer_text(text)),
        "FLOAT" | "DOUBLE" => ValueCell::whole(text.parse().map_or_else(|_| text.into(), json_value::real)),
        "JSON" => json_value::json_text(text),
        kind if kind.contains("INT") => ValueCell::whole(json_value::integer_text(text)),
        // A text with a binary collation, such as MariaDB's JSON, has the type of a blob. Control characters tell them
        // apart.
        kind if (kind.contains("BINARY") || kind.contains("BLOB") || kind == "GEOMETRY")
            && text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace()) =>
        {
            json_value::bytes(bytes, bytes.len())
        }
        _ => json_value::text(text),
    }
}

/// Returns a value of a row as text; `None` for NULL.
fn text(row: &MySqlRow, index: usize) -> Option<String> {
    let raw = row.try_get_raw(index).ok().filter(|raw| !raw.is_null())?;
    let bytes = <&[u8] as Decode<'_, MySql>>::decode(raw).ok()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns a note with the time zone of the session, in which the server writes a `TIMESTAMP`, without an offset.
async fn time_zone_note(connection: &mut MySqlConnection) -> Result<String, Error> {
    let zones = "SELECT IF(@@session.time_zone = 'SYSTEM', CONCAT('SYSTEM, ', @@system_time_zone), @@session.time_zone)";
    let row = sqlx::raw_sql(zones).fetch_one(connection).await.map_err(Error::engine)?;
    Ok(format!(
        "values of type timestamp are in the time zone of the session ({})",
        text(&row, 0).unwrap_or_default()
    ))
}

/// Returns a warning if the user has the privilege FILE, whose use no transaction forbids.
async fn file_privilege_warning(connection: &mut MySqlConnection) -> Result<Option<String>, Error> {
    let grants: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM information_schema.user_privileges WHERE privilege_type = 'FILE' \
         AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
    )
    .fetch_one(connection)
    .await
    .map_err(Error::engine)?;
    Ok((grants > 0).then(|| {
        "this user has the privilege FILE, with which a query can read the server's files; give the connection a \
         user that may only read (docs/databases.md)"
            .to_owned()
    }))
}

/// Converts an error of the server. One that means that the action does not take statements of this kind gets a message
/// that says so.
fn translate(error: sqlx::Error, statement: &str, action: DbAction) -> Error {
    if error.as_database_error().is_none() {
        return Error::engine(error);
    }
    if is_ddl(statement) {
        return Error::Ddl;
    }
    // A parse error in a statement with one of these words is a mistake in it; with any other word it is of a kind that
    // the server would not run here.
    let known = ["select", "values", "table", "with", "insert", "update", "delete", "replace"];
    let may_be_kind = matches!(
        error_number(&error),
        Some(ER_PARSE_ERROR | ER_UNSUPPORTED_PS | ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)
    );
    if may_be_kind
        && (error_number(&error) == Some(ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)
            || !known.contains(&first_word(statement).as_str()))
    {
        return not_permitted(statement, action);
    }
    Error::engine(error)
}

/// The error for a statement of a kind that `action` does not take.
fn not_permitted(statement: &str, action: DbAction) -> Error {
    if is_ddl(statement) {
        return Error::Ddl;
    }
    let word = first_word(statement);
    let reason = match action {
        DbAction::Seed => format!("`{word}`; a seed is INSERT, UPDATE, DELETE or REPLACE"),
        DbAction::Explain => format!("`{word}`; the session of a plan only reads, so explain a SELECT"),
        DbAction::Query | DbAction::Schema
            if matches!(word.as_str(), "select" | "values" | "table" | "with") =>
        {
            format!(
                "`{word}` with INTO, FOR UPDATE, LOCK IN SHARE MODE or a change of rows; a query only reads"
            )
        }
        DbAction::Query | DbAction::Schema => {
            format!("`{word}`; a query is SELECT, VALUES, TABLE or WITH; for a plan see `explain`")
        }
    };
    Error::NotPermitted { action, reason }
}

async fn schema(connection: &mut MySqlConnection, pattern: &str) -> Result<DatabaseSchema, Error> {
    // Read as text, whatever type the server gives a column: the catalogs of MySQL and MariaDB differ.
    let all = sqlx::raw_sql(
        "SELECT table_name, table_type, table_rows FROM information_schema.tables \
         WHERE table_schema = DATABASE() ORDER BY table_name",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(Error::engine)?;
    let mut tables: Vec<TableSchema> = all
        .iter()
        .map(|row| TableSchema {
            name: text(row, 0).unwrap_or_default(),
            kind: match text(row, 1).as_deref() {
                Some("BASE TABLE") | None => "table".to_owned(),
                Some(other) => other.to_ascii_lowercase(),
            },
            row_estimate: text(row, 2).and_then(|rows| rows.parse().ok()),
            ..TableSchema::default()
        })
        .filter(|table| matches_pattern(pattern, &table.name))
        .collect();
    let mut schema = DatabaseSchema::new("mysql", tables.iter().map(|table| table.name.clone()).collect());
    columns(connection, &mut tables).await?;
    indexes(connection, &mut tables).await?;
    foreign_keys(connection, &mut tables).await?;
    checks(connection, &mut tables).await?;
    let mut bytes = 0;
    for table in tables {
        if !schema.push_table(table, &mut bytes) {
            break;
        }
    }
    Ok(schema)
}

/// Returns the table that the first column of `row` names, and the texts of the other columns.
fn table_of_row<'t>(
    tables: &'t mut [TableSchema],
    row: &MySqlRow,
) -> Option<(&'t mut TableSchema, Vec<Option<String>>)> {
    let name = text(row, 0)?;
    let table = tables.iter_mut().find(|table| table.name == name)?;
    Some((table, (1..row.len()).map(|index| text(row, index)).collect()))
}

async fn columns(connection: &mut MySqlConnection, tables: &mut [TableSchema]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT table_name, column_name, column_type, is_nullable, column_default, column_key, extra, \
         generation_expression \
         FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position",
    )
    .fetch_all(connection)
    .await
    .map_err(Error::engine)?;
    for row in &rows {
        let Some((table, texts)) = table_of_row(tables, row) else { continue };
        if let [Some(name), Some(kind), Some(nullable), default, key, extra, expression] = &texts[..] {
            let extra = extra.as_deref().unwrap_or_default().to_ascii_lowercase();
            let expression = expression.as_deref().filter(|expression| !expression.is_empty());
            // MariaDB says `persistent` in older versions.
            let is_stored = extra.contains("stored") || extra.contains("persistent");
            let kept = if is_stored { "stored" } else { "virtual" };
            table.columns.push(TableColumn {
                name: name.clone(),
                kind: kind.clone(),
                nullable: nullable == "YES",
                // MariaDB writes the text `NULL` where there is no default.
                default: default.clone().filter(|default| default != "NULL"),
                primary_key: key.as_deref() == Some("PRI"),
                generated: expression.map(|expression| format!("{kept} {expression}")),
                identity: extra.contains("auto_increment").then(|| "auto_increment".to_owned()),
            });
        }
    }
    Ok(())
}

async fn indexes(connection: &mut MySqlConnection, tables: &mut [TableSchema]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT table_name, index_name, non_unique, COALESCE(CONCAT(column_name, \
         IF(sub_part IS NULL, '', CONCAT('(', sub_part, ')'))), '(expression)') \
         FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY table_name, index_name, seq_in_index",
    )
    .fetch_all(connection)
    .await
    .map_err(Error::engine)?;
    for row in &rows {
        let Some((table, texts)) = table_of_row(tables, row) else { continue };
        let [Some(name), Some(non_unique), Some(column)] = &texts[..] else { continue };
        // The rows are ordered by index, and by position within it.
        match table.indexes.last_mut() {
            Some(index) if index.name == *name => index.columns.push(column.clone()),
            _ => table.indexes.push(TableIndex {
                name: name.clone(),
                columns: vec![column.clone()],
                unique: non_unique == "0",
                // Neither MySQL nor MariaDB has partial indexes.
                predicate: None,
            }),
        }
    }
    Ok(())
}

async fn foreign_keys(connection: &mut MySqlConnection, tables: &mut [TableSchema]) -> Result<(), Error> {
    let rows = sqlx::raw_sql(
        "SELECT k.table_name, k.constraint_name, k.column_name, k.referenced_table_name, k.referenced_column_name, \
         r.delete_rule, r.update_rule FROM information_schema.key_column_usage k \
         LEFT JOIN information_schema.referential_constraints r ON r.constraint_schema = k.constraint_schema \
         AND r.constraint_name = k.constraint_name AND r.table_name = k.table_name \
         WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL \
         ORDER BY k.table_name, k.constraint_name, k.ordinal_position",
    )
    .fetch_all(connection)
    .await
    .map_err(Error::engine)?;
    // The name alone is not enough: keys of two tables may have one name.
    let mut last = None;
    for row in &rows {
        let Some((table, texts)) = table_of_row(tables, row) else { continue };
        let [Some(name), Some(column), Some(referenced_table), Some(referenced_column), on_delete, on_update] =
            &texts[..]
        else {
            continue;
        };
        // The default, which is the same as no action here.
        let action = |rule: &Option<String>| {
            key_action(rule.as_deref().unwrap_or_default()).filter(|action| action != "restrict")
        };
        let key = Some((table.name.clone(), name.clone()));
        if last != key {
            table.foreign_keys.push(ForeignKey {
                table: referenced_table.clone(),
                on_delete: action(on_delete),
                on_update: action(on_update),
                ..ForeignKey::default()
            });
            last = key;
        }
        if let Some(key) = table.foreign_keys.last_mut() {
            key.columns.push(column.clone());
            key.references.push(referenced_column.clone());
        }
    }
    Ok(())
}

async fn checks(connection: &mut MySqlConnection, tables: &mut [TableSchema]) -> Result<(), Error> {
    // MySQL before 8.0.16 has no such table. In MariaDB, constraints of two tables may have one name, and the table of each
    // is known; in MySQL the name is the only one in its database.
    let known = sqlx::raw_sql(
        "SELECT column_name FROM information_schema.columns \
         WHERE table_schema = 'information_schema' AND table_name = 'CHECK_CONSTRAINTS'",
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(Error::engine)?;
    let has_table =
        known.iter().any(|row| text(row, 0).is_some_and(|name| name.eq_ignore_ascii_case("table_name")));
    let query = match (known.is_empty(), has_table) {
        (true, _) => return Ok(()),
        (false, true) => {
            "SELECT table_name, constraint_name, check_clause FROM information_schema.check_constraints \
             WHERE constraint_schema = DATABASE() ORDER BY table_name, constraint_name"
        }
        (false, false) => {
            "SELECT t.table_name, c.constraint_name, c.check_clause FROM information_schema.check_constraints c \
             JOIN information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema \
             AND t.constraint_name = c.constraint_name AND t.constraint_type = 'CHECK' \
             WHERE c.constraint_schema = DATABASE() ORDER BY t.table_name, c.constraint_name"
        }
    };
    let rows = sqlx::raw_sql(query).fetch_all(connection).await.map_err(Error::engine)?;
    for row in &rows {
        let Some((table, texts)) = table_of_row(tables, row) else { continue };
        if let [name, Some(expression)] = &texts[..] {
            table.checks.push(CheckConstraint { name: name.clone(), expression: expression.clone() });
        }
    }
    Ok(())
}
