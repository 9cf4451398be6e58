//! PostgreSQL: a connection for each call, a transaction that the server lets read only.
//!
//! A query is run as a subquery of a statement of this module: the server accepts no other kind of statement there, and
//! sends no more of a value than is answered. Everything uses the extended protocol, which allows one statement. What the
//! statement calls is looked up in the catalog first (`volatile`).

mod session;
mod tokens;
mod volatile;

use super::json_value::{self, MAX_VALUE_LENGTH, ValueCell};
use super::query_rows::RowCollector;
use super::response::{DbResponse, SeedReport};
use super::schema::{DatabaseSchema, TableSchema, matches_pattern};
use super::server::{self, DatabaseServer, SERVER_LIMIT_MARGIN};
use super::statement::{first_word, is_ddl};
use super::{DbAction, DbBridge, Error, QueryRows, ResultColumn};
use futures_util::TryStreamExt;
use serde_json::Value;
use session::restore_settings;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgConnectOptions, PgConnection, PgRow, PgTypeInfo};
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Connection, Either, Encode, Executor, Postgres, Row, Statement,
};
use sqlx::{SqlSafeStr, Type, TypeInfo};
use std::str::FromStr;
use tokio_util::sync::CancellationToken;
use volatile::refuse_acting_functions;

/// Runs `request` on the database of `url`, which messages call `name`.
pub(super) async fn run(
    name: &str,
    url: &str,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    server::run(&PostgresServer { name, options: parse_options(name, url)? }, request, cancel).await
}

/// One database of a PostgreSQL server.
struct PostgresServer<'a> {
    /// The name of the database in messages.
    name: &'a str,
    options: PgConnectOptions,
}

impl DatabaseServer for PostgresServer<'_> {
    type Connection = PgConnection;
    type ConnectionId = i32;

    async fn connect(&self) -> Result<PgConnection, Error> {
        let connection = self.options.connect().await;
        connection.map_err(|error| Error::connect(self.name, error, |code| code.starts_with("28")))
    }

    async fn connection_id(connection: &mut PgConnection) -> Result<i32, Error> {
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.map_err(Error::engine)
    }

    async fn stop_statement(&self, id: i32) -> Result<(), sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::query("SELECT pg_cancel_backend($1)").bind(id).execute(&mut connection).await?;
        connection.close().await
    }

    async fn end_connection(&self, id: i32) -> Result<(), sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::query("SELECT pg_terminate_backend($1)").bind(id).execute(&mut connection).await?;
        connection.close().await
    }

    async fn execute(
        &self,
        connection: &mut PgConnection,
        _id: i32,
        request: &DbBridge,
        cancel: &CancellationToken,
    ) -> Result<DbResponse, Error> {
        // If this process is killed, the server notices within a second and ends the statement. PostgreSQL before 14 does
        // not know the setting.
        let _ = execute(connection, "SET client_connection_check_interval = 1000").await;
        execute_request(connection, request, self.options.get_options(), cancel).await
    }
}

fn parse_options(name: &str, url: &str) -> Result<PgConnectOptions, Error> {
    let options = PgConnectOptions::from_str(url).map_err(|_| Error::unreadable_url(name))?;
    Ok(options
        // The name shows in `pg_stat_activity`, where an administrator looks for the origin of a statement.
        .application_name("coretools db_bridge")
        // Each call has a connection of its own, on which nothing is prepared twice.
        .statement_cache_capacity(0)
        .disable_statement_logging())
}

/// Opens the transaction that the action needs and runs the request in it.
async fn execute_request(
    connection: &mut PgConnection,
    request: &DbBridge,
    options: Option<&str>,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    let limit = (request.time_limit() + SERVER_LIMIT_MARGIN).as_millis();
    // Written out in both cases: the default of the role or database (`default_transaction_read_only`) may be either.
    let begin = if request.action == DbAction::Seed { "BEGIN READ WRITE" } else { "BEGIN READ ONLY" };
    execute(connection, begin).await?;
    let zone_note = restore_settings(connection, options.unwrap_or_default()).await?;
    // After its first query a transaction can no longer be made to write.
    sqlx::query(
        // `true` limits each setting to this transaction. Dates are answered in the ISO form, whatever the database is
        // configured to, which leaves the order of day and month in its texts; and strings are as `tokens` reads them.
        "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true), \
         set_config('idle_in_transaction_session_timeout', $1, true), set_config('DateStyle', 'ISO', true), \
         set_config('standard_conforming_strings', 'on', true)",
    )
    .bind(limit.to_string())
    .execute(&mut *connection)
    .await
    .map_err(Error::engine)?;
    let warning = drop_superuser_rights(connection, request).await?;
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    match request.action {
        DbAction::Schema => schema(connection, &request.payload).await.map(DbResponse::Schema),
        DbAction::Query => query(connection, request, [warning, zone_note]).await.map(DbResponse::Rows),
        DbAction::Explain => match explain(connection, request).await {
            Err(Error::Engine { message, code })
                if warning.is_some() && code.as_deref() == Some(NO_PRIVILEGE) =>
            {
                let message = format!(
                    "{message}; a superuser's statement is planned as pg_read_all_data, which may only read: explain the \
                     SELECT of the same rows"
                );
                Err(Error::Engine { message, code })
            }
            planned => planned.map(DbResponse::Rows),
        },
        DbAction::Seed => seed(connection, request, cancel).await.map(DbResponse::Seed),
    }
}

/// Runs a statement of this module, as opposed to one of the caller.
async fn execute(connection: &mut PgConnection, statement: &'static str) -> Result<(), Error> {
    sqlx::query(statement).execute(&mut *connection).await.map_err(Error::engine)?;
    Ok(())
}

/// Makes a superuser's transaction read as `pg_read_all_data`, and returns a warning. A superuser may do things that no
/// transaction forbids, such as reading the server's files.
async fn drop_superuser_rights(
    connection: &mut PgConnection,
    request: &DbBridge,
) -> Result<Option<String>, Error> {
    let superuser: bool =
        sqlx::query_scalar("SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user")
            .fetch_one(&mut *connection)
            .await
            .map_err(Error::engine)?;
    if !superuser || request.action == DbAction::Seed {
        return Ok(None);
    }
    // The role exists since PostgreSQL 14.
    let has_role: bool =
        sqlx::query_scalar("SELECT count(*) > 0 FROM pg_catalog.pg_roles WHERE rolname = 'pg_read_all_data'")
            .fetch_one(&mut *connection)
            .await
            .map_err(Error::engine)?;
    let mut warning =
        "this connection is a superuser's, which a determined query can use beyond the database; give it a role \
         that may only read (docs/databases.md)"
            .to_owned();
    if has_role {
        // A superuser is exempt from row security, and the role is not.
        let secured: Vec<String> = sqlx::query_scalar(
            "SELECT c.oid::regclass::text FROM pg_catalog.pg_class c WHERE c.relrowsecurity ORDER BY 1 LIMIT 6",
        )
        .fetch_all(&mut *connection)
        .await
        .map_err(Error::engine)?;
        execute(connection, "SET LOCAL ROLE pg_read_all_data").await?;
        let named = secured.get(..5).unwrap_or(&secured);
        if !named.is_empty() {
            let and_more = if named.len() < secured.len() { " and more" } else { "" };
            warning.push_str(&format!(
                "; the query ran as pg_read_all_data, from which row level security may hide rows of {}{and_more}, though \
                 not from this user",
                named.join(", ")
            ));
        }
    }
    Ok(Some(warning))
}

/// Returns a note if policies of row level security apply to what a superuser's statement reads: they do not apply to the
/// superuser, but to `pg_read_all_data`.
async fn policy_note(connection: &mut PgConnection, statement: &str) -> Result<Option<String>, Error> {
    // With this setting the server does not accept a statement that policies would change. The savepoint takes the
    // setting back, and the error.
    execute(connection, "SAVEPOINT coretools_policies").await?;
    execute(connection, "SET LOCAL row_security = off").await?;
    let described = describe(connection, statement).await;
    execute(connection, "ROLLBACK TO SAVEPOINT coretools_policies").await?;
    match described {
        Ok(_) => Ok(None),
        // The same statement was accepted without the setting, so there is no other reason for this code.
        Err(Error::Engine { message, code }) if code.as_deref() == Some(NO_PRIVILEGE) => Ok(Some(format!(
            "rows may be MISSING: a superuser's query runs as pg_read_all_data, from which policies of row level security \
             hide rows ({message}); connect with the application's role to see what it sees"
        ))),
        Err(error) => Err(error),
    }
}

/// A statement as the server has parsed it.
struct StatementDescription {
    /// The columns, each with the OID of its type.
    columns: Vec<(ResultColumn, Option<u32>)>,
    /// The OIDs of the types of the parameters.
    parameters: Vec<u32>,
}

/// Has the server parse the statement. It is not run.
async fn describe(connection: &mut PgConnection, statement: &str) -> Result<StatementDescription, Error> {
    let prepared =
        connection.prepare(AssertSqlSafe(statement).into_sql_str()).await.map_err(Error::engine)?;
    let columns = prepared
        .columns()
        .iter()
        .map(|column| {
            use sqlx::Column as _;
            let kind = column.type_info();
            let column =
                ResultColumn { name: column.name().to_owned(), kind: kind.name().to_ascii_lowercase() };
            (column, kind.oid().map(|oid| oid.0))
        })
        .collect();
    let parameters = match prepared.parameters() {
        Some(Either::Left(kinds)) => kinds.iter().map(|kind| kind.oid().map_or(0, |oid| oid.0)).collect(),
        _ => Vec::new(),
    };
    Ok(StatementDescription { columns, parameters })
}

async fn query(
    connection: &mut PgConnection,
    request: &DbBridge,
    [warning, zone_note]: [Option<String>; 2],
) -> Result<QueryRows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let described = describe(connection, statement)
        .await
        .map_err(|error| translate(error, statement, DbAction::Query))?;
    // `SELECT FROM t` has rows without columns.
    if described.columns.is_empty()
        && !matches!(first_word(statement).as_str(), "select" | "values" | "table" | "with")
    {
        return Err(not_permitted(statement, DbAction::Query));
    }
    refuse_acting_functions(connection, statement, DbAction::Query).await?;
    let policy_note = match warning {
        Some(_) => policy_note(connection, statement).await?,
        None => None,
    };
    let parameters = request.parameters()?;
    let arguments =
        arguments(connection, parameters.first().copied().unwrap_or_default(), &described.parameters).await?;
    let (selected, aliases) = selected_columns(&described);
    // On lines of its own: a line comment at its end does not swallow the parenthesis.
    let wrapped = format!(
        "SELECT {selected} FROM (\n{statement}\n) AS coretools{aliases} LIMIT {}",
        // One more than is answered, to know that there are more.
        limit + 1
    );
    let kinds: Vec<Option<u32>> = described.columns.iter().map(|(_, kind)| *kind).collect();
    let has_times = kinds.iter().flatten().any(|kind| TIMES.contains(kind));
    let mut rows =
        RowCollector::new(described.columns.into_iter().map(|(column, _)| column).collect(), limit);
    for note in warning.into_iter().chain(policy_note).chain(zone_note.filter(|_| has_times)) {
        rows.add_note(note);
    }
    let mut stream = sqlx::query_with(AssertSqlSafe(wrapped), arguments).fetch(&mut *connection);
    loop {
        let row = match stream.try_next().await {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(translate(Error::engine(error), statement, DbAction::Query)),
        };
        if !rows.push(cells(&row, &kinds)) {
            break;
        }
    }
    Ok(rows.finish())
}

// <https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat>
const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const BPCHAR: u32 = 1042;
const INTEGERS: [u32; 4] = [20, 21, 23, 26];
const FLOATS: [u32; 2] = [700, 701];
const JSON: [u32; 2] = [114, 3802];
/// Dates and times, and arrays of them: those that may depend on the time zone.
const TIMES: [u32; 10] = [1082, 1083, 1114, 1184, 1266, 1182, 1183, 1115, 1185, 1270];

/// Returns the expression that selects a column as text, cut by the server at the longest value of an answer.
fn expression(kind: Option<u32>, index: usize) -> String {
    let more = MAX_VALUE_LENGTH + 1;
    match kind {
        // The length, and the first bytes in base64.
        Some(BYTEA) => format!(
            "octet_length(c{index})::text || ' ' || \
             translate(encode(substring(c{index} from 1 for {MAX_VALUE_LENGTH}), 'base64'), E'\\n', '')"
        ),
        Some(kind) if element_type(kind).is_some() => {
            // As an array of texts: each element is written as it would be on its own. A cut array is no JSON, and is
            // then answered as text.
            format!("left(to_json(c{index}::text[])::text, 16000)")
        }
        // A cast would drop the blanks at its end; `concat` writes it as it is, and NULL as an empty text.
        Some(BPCHAR) => format!("CASE WHEN c{index} IS NOT NULL THEN left(concat(c{index}), {more}) END"),
        _ => format!("left(c{index}::text, {more})"),
    }
}

/// Returns the type of the elements of an array type. Arrays of extensions' types are not known, and answered as text.
fn element_type(kind: u32) -> Option<u32> {
    Some(match kind {
        1000 => BOOL,
        1005 => 21,
        1007 => 23,
        1016 => 20,
        1021 => 700,
        1022 => 701,
        199 | 3807 => 114,
        // Texts, numerics, dates, times, uuids, network addresses, ranges.
        1002 | 1003 | 1009 | 1014 | 1015 | 1028 | 1231 | 1182 | 1183 | 1115 | 1185 | 1187 | 1270 | 2951
        | 1041 | 651 | 1040 | 791 | 3905 | 3907 | 3909 | 3911 | 3913 | 3927 => 25,
        _ => return None,
    })
}

/// Converts a value, which the server has written as text.
fn cell(kind: Option<u32>, text: &str) -> ValueCell {
    match kind {
        Some(BOOL) => ValueCell::whole(text == "true"),
        Some(kind) if INTEGERS.contains(&kind) => ValueCell::whole(json_value::integer_text(text)),
        Some(kind) if FLOATS.contains(&kind) => {
            ValueCell::whole(text.parse().map_or_else(|_| text.into(), json_value::real))
        }
        Some(kind) if JSON.contains(&kind) => json_value::json_text(text),
        Some(BYTEA) => {
            let (length, encoded) = text.split_once(' ').unwrap_or(("0", ""));
            let length = length.parse::<usize>().unwrap_or_default();
            ValueCell {
                value: serde_json::json!({"$base64": encoded, "bytes": length}),
                is_truncated: length > MAX_VALUE_LENGTH,
            }
        }
        Some(kind) if element_type(kind).is_some() => {
            let element = element_type(kind);
            match serde_json::from_str(text) {
                Ok(array) => ValueCell::whole(convert_elements(element, array)),
                Err(_) => json_value::text(text),
            }
        }
        _ => json_value::text(text),
    }
}

/// Converts the elements of an array, which are arrays where it has several dimensions.
fn convert_elements(kind: Option<u32>, value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(|value| convert_elements(kind, value)).collect(),
        Value::String(text) => cell(kind, if kind == Some(BOOL) { long_bool(&text) } else { &text }).value,
        other => other,
    }
}

/// Returns `true` or `false` for `t` or `f`, the form of a boolean in an array of texts.
fn long_bool(text: &str) -> &str {
    if text.starts_with('t') { "true" } else { "false" }
}

/// A parameter in the binary form of its type, which the server has made.
struct BinaryParameter {
    kind: u32,
    bytes: Option<Vec<u8>>,
}

impl Type<Postgres> for BinaryParameter {
    fn type_info() -> PgTypeInfo {
        // Required by the trait and not used: `produces` gives the type of each value.
        PgTypeInfo::with_name("text")
    }
}

impl Encode<'_, Postgres> for BinaryParameter {
    fn encode_by_ref(
        &self,
        buffer: &mut PgArgumentBuffer,
    ) -> Result<sqlx::encode::IsNull, Box<dyn std::error::Error + Send + Sync>> {
        Ok(match &self.bytes {
            Some(bytes) => {
                buffer.extend_from_slice(bytes);
                sqlx::encode::IsNull::No
            }
            None => sqlx::encode::IsNull::Yes,
        })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(sqlx::postgres::types::Oid(self.kind)))
    }
}

/// Binds `values` in the binary form of the types that the statement expects. The server converts them from text, in a
/// query of its own for each: it alone knows all types.
async fn arguments(
    connection: &mut PgConnection,
    values: &[Value],
    kinds: &[u32],
) -> Result<PgArguments, Error> {
    if values.len() != kinds.len() {
        return Err(Error::parameter_count(kinds.len(), values.len()));
    }
    let mut arguments = PgArguments::default();
    for (index, (value, &kind)) in values.iter().zip(kinds).enumerate() {
        let bytes = match json_value::from_base64(value)? {
            Some(bytes) => Some(bytes),
            None => match parameter_text(value, kind) {
                None => None,
                Some(text) => Some(
                    to_binary(connection, &text, kind)
                        .await
                        .map_err(|error| Error::argument("params", format!("${}: {error}", index + 1)))?,
                ),
            },
        };
        arguments
            .add(BinaryParameter { kind, bytes })
            .map_err(|error| Error::argument("params", error.to_string()))?;
    }
    Ok(arguments)
}

/// Returns a parameter in the text form of its type; `None` for NULL.
fn parameter_text(value: &Value, kind: u32) -> Option<String> {
    match value {
        Value::Array(values) if !JSON.contains(&kind) => Some(array_literal(values)),
        // A string is a JSON string there, and needs its quotes.
        Value::String(_) if JSON.contains(&kind) => Some(value.to_string()),
        other => json_value::parameter_text(other),
    }
}

/// Returns an array in the server's text form: `{"a","b"}`.
fn array_literal(values: &[Value]) -> String {
    let members = values.iter().map(|value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Array(values) => array_literal(values),
        Value::String(text) => quote(text),
        other => quote(&other.to_string()),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Has the server convert `text` to the binary form of a type.
async fn to_binary(connection: &mut PgConnection, text: &str, kind: u32) -> Result<Vec<u8>, Error> {
    // The server writes the name of the type, quoted where that is needed, so it is safe in a statement.
    let name: String = sqlx::query_scalar("SELECT format_type($1::oid, NULL)")
        .bind(sqlx::postgres::types::Oid(kind))
        .fetch_one(&mut *connection)
        .await
        .map_err(Error::engine)?;
    let conversion = format!("SELECT $1::text::{name}");
    let row = sqlx::query(AssertSqlSafe(conversion)).bind(text).fetch_one(&mut *connection).await;
    let row = row.map_err(Error::engine)?;
    let bytes = row.try_get_raw(0).map_err(Error::engine)?.as_bytes().map(<[u8]>::to_vec);
    bytes.map_err(|_| Error::argument("params", "the server takes it for NULL"))
}

async fn explain(connection: &mut PgConnection, request: &DbBridge) -> Result<QueryRows, Error> {
    let statement = request.statement()?;
    if !request.parameters()?.concat().is_empty() {
        return Err(Error::argument("params", "`explain` takes none; write the values into the statement"));
    }
    // It must be a statement without EXPLAIN too: else its first words could be options of EXPLAIN, such as ANALYZE,
    // which runs it.
    describe(connection, statement).await.map_err(|error| translate(error, statement, DbAction::Explain))?;
    let explained = format!("EXPLAIN (COSTS true)\n{statement}");
    let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explained))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| translate(Error::engine(error), statement, DbAction::Explain))?;
    let column = ResultColumn { name: "plan".to_owned(), kind: "text".to_owned() };
    let mut rows = RowCollector::new(vec![column], request.row_limit()?);
    for line in plan {
        if !rows.push(std::iter::once(json_value::text(&line))) {
            break;
        }
    }
    Ok(rows.finish())
}

async fn seed(
    connection: &mut PgConnection,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<SeedReport, Error> {
    let statement = request.statement()?;
    let described =
        describe(connection, statement).await.map_err(|error| translate(error, statement, DbAction::Seed))?;
    // PREPARE accepts statements that select, insert, update, delete or merge rows, and nothing else.
    // The connection is closed after the call, which drops the prepared statement.
    let prepare = format!("PREPARE coretools_class AS\n{statement}");
    (sqlx::query(AssertSqlSafe(prepare)).execute(&mut *connection).await)
        .map_err(|error| translate(Error::engine(error), statement, DbAction::Seed))?;
    if matches!(first_word(statement).as_str(), "select" | "values" | "table") {
        return Err(not_permitted(statement, DbAction::Seed));
    }
    refuse_acting_functions(connection, statement, DbAction::Seed).await?;
    let mut report = SeedReport { dry_run: request.dry_run, ..SeedReport::default() };
    let failed = |error| translate(Error::engine(error), statement, DbAction::Seed);
    let selected = match described.columns.is_empty() {
        true => None,
        false => select_returned(connection, statement, &described).await?,
    };
    if selected.is_none() && !described.columns.is_empty() {
        report
            .notes
            .push("the rows that the statement returned are not shown; without WITH they are".to_owned());
    }
    let kinds: Vec<Option<u32>> = described.columns.iter().map(|(_, kind)| *kind).collect();
    let columns = described.columns.into_iter().map(|(column, _)| column).collect();
    let mut returned = RowCollector::new(columns, request.row_limit()?);
    for list in request.parameters()? {
        let arguments = arguments(connection, list, &described.parameters).await?;
        let Some(selected) = &selected else {
            let query = sqlx::query_with(AssertSqlSafe(statement), arguments);
            report.affected += query.execute(&mut *connection).await.map_err(failed)?.rows_affected();
            continue;
        };
        let mut rows = sqlx::query_with(AssertSqlSafe(selected.as_str()), arguments).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            report.affected += 1;
            // A full answer takes no more rows; the statement goes on.
            returned.push(cells(&row, &kinds));
        }
    }
    report.add_returned(returned);
    // A function may have taken the request to stop for something else, and gone on with other values.
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    execute(connection, if request.dry_run { "ROLLBACK" } else { "COMMIT" }).await?;
    Ok(report)
}

/// Returns the statement that runs `statement` and selects the rows that it returns, as text. `None` if the server does not
/// accept that: a statement with a WITH of its own that changes rows can only stand alone.
async fn select_returned(
    connection: &mut PgConnection,
    statement: &str,
    described: &StatementDescription,
) -> Result<Option<String>, Error> {
    let (selected, aliases) = selected_columns(described);
    let wrapped = format!("WITH coretools{aliases} AS (\n{statement}\n) SELECT {selected} FROM coretools");
    execute(connection, "SAVEPOINT coretools_returned").await?;
    let is_accepted = describe(connection, &wrapped).await.is_ok();
    execute(connection, "ROLLBACK TO SAVEPOINT coretools_returned").await?;
    Ok(is_accepted.then_some(wrapped))
}

/// Returns the expressions that select the columns as text, and the names by which these take them, in parentheses.
fn selected_columns(described: &StatementDescription) -> (String, String) {
    // Columns are named by position: two may have one name, and a name may need quotes.
    let kinds = described.columns.iter().map(|(_, kind)| *kind).enumerate();
    let selected: Vec<String> = kinds.map(|(index, kind)| expression(kind, index)).collect();
    let aliases: Vec<String> = (0..selected.len()).map(|index| format!("c{index}")).collect();
    let aliases = if aliases.is_empty() { String::new() } else { format!("({})", aliases.join(", ")) };
    (selected.join(", "), aliases)
}

/// Converts the values of a row, which the server has written as text.
fn cells<'r>(row: &'r PgRow, kinds: &'r [Option<u32>]) -> impl Iterator<Item = ValueCell> + 'r {
    kinds.iter().enumerate().map(|(index, kind)| match row.try_get::<Option<String>, _>(index) {
        Ok(text) => text.map_or_else(ValueCell::null, |text| cell(*kind, &text)),
        Err(error) => ValueCell::unreadable(&error),
    })
}

// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const SYNTAX_ERROR: &str = "42601";
const NO_PRIVILEGE: &str = "42501";
/// Codes for a statement that cannot be prepared, be a subquery, or run in a read-only transaction.
const WRONG_KIND: [&str; 4] = [SYNTAX_ERROR, "25006", "0A000", "42P14"];

/// Converts an error of the server. One that means that the action does not take statements of this kind gets a message
/// that says so.
fn translate(error: Error, statement: &str, action: DbAction) -> Error {
    let Error::Engine { message, code } = &error else { return error };
    if is_ddl(statement) {
        return Error::Ddl;
    }
    let code = code.as_deref().unwrap_or_default();
    // The server has no code of its own for several statements, so its words decide. A server that speaks another
    // language than English has its message passed on.
    if code == SYNTAX_ERROR && message.contains("multiple commands") {
        return Error::StatementCount { found: 2 };
    }
    let word = first_word(statement);
    // With one of these words the statement has a mistake; with any other it is of the wrong kind.
    let known = ["select", "values", "table", "with", "insert", "update", "delete", "merge"];
    if WRONG_KIND.contains(&code) && !known.contains(&word.as_str()) {
        return not_permitted(statement, action);
    }
    error
}

/// The error for a statement of a kind that `action` does not take.
fn not_permitted(statement: &str, action: DbAction) -> Error {
    if is_ddl(statement) {
        return Error::Ddl;
    }
    let word = first_word(statement);
    let reason = match action {
        DbAction::Seed => format!("`{word}`; a seed is INSERT, UPDATE, DELETE or MERGE"),
        DbAction::Explain => format!("`{word}` has no plan"),
        DbAction::Query | DbAction::Schema => {
            format!("`{word}`; a query is SELECT, VALUES, TABLE or WITH; for a plan see `explain`")
        }
    };
    Error::NotPermitted { action, reason }
}

/// Describes each table as one JSON object, in the form of [`TableSchema`].
// Columns of the catalog that older servers do not have are read from the row as JSON, where they are null.
const DESCRIBE_TABLES: &str = "
SELECT json_build_object(
  'name', CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END,
  'type', CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
  'row_estimate', CASE WHEN c.relkind IN ('r', 'p', 'm') AND c.reltuples >= 0 THEN c.reltuples::bigint END,
  'columns', (SELECT coalesce(json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'nullable', NOT a.attnotnull,
      'default', CASE WHEN coalesce(to_jsonb(a)->>'attgenerated', '') = '' THEN (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum) END,
      'generated', CASE to_jsonb(a)->>'attgenerated' WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END
        || ' ' || (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum),
      'identity', CASE to_jsonb(a)->>'attidentity' WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' END,
      'primary_key', EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey::int2[]))
    ) ORDER BY a.attnum), '[]') FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'indexes', (SELECT coalesce(json_agg(json_build_object(
      'name', x.relname, 'unique', i.indisunique, 'predicate', pg_get_expr(i.indpred, i.indrelid, true),
      'columns', (SELECT json_agg(pg_get_indexdef(i.indexrelid, k, true) ORDER BY k) FROM generate_series(1, i.indnkeyatts) k)
    ) ORDER BY x.relname), '[]') FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid),
  'foreign_keys', (SELECT coalesce(json_agg(json_build_object(
      'table', f.confrelid::regclass::text,
      'on_delete', CASE f.confdeltype WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' WHEN 'd' THEN 'set default' END,
      'on_update', CASE f.confupdtype WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' WHEN 'd' THEN 'set default' END,
      'columns', (SELECT json_agg(a.attname ORDER BY o) FROM unnest(f.conkey) WITH ORDINALITY u(n, o) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = u.n),
      'references', (SELECT json_agg(a.attname ORDER BY o) FROM unnest(f.confkey) WITH ORDINALITY u(n, o) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = u.n)
    ) ORDER BY f.conname), '[]') FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f'),
  'checks', (SELECT coalesce(json_agg(json_build_object(
      'name', k.conname, 'expression', pg_get_expr(k.conbin, k.conrelid, true)
        || CASE WHEN k.convalidated THEN '' ELSE ' NOT VALID' END
    ) ORDER BY k.conname), '[]') FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c')
)::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY ($1)
ORDER BY array_position($1, c.oid)";

/// Lists the tables and views of the application, those of `public` first.
const LIST_TABLES: &str = "
SELECT c.oid, CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname <> 'public', n.nspname, c.relname";

/// The number of tables that one query describes. The answer is often full before all are described.
const TABLES_PER_QUERY: usize = 50;

async fn schema(connection: &mut PgConnection, pattern: &str) -> Result<DatabaseSchema, Error> {
    let mut tables: Vec<(sqlx::postgres::types::Oid, String)> =
        sqlx::query_as(LIST_TABLES).fetch_all(&mut *connection).await.map_err(Error::engine)?;
    tables.retain(|(_, name)| matches_pattern(pattern, name));
    let mut schema = DatabaseSchema::new("postgres", tables.iter().map(|(_, name)| name.clone()).collect());
    let mut bytes = 0;
    for batch in tables.chunks(TABLES_PER_QUERY) {
        let oids: Vec<_> = batch.iter().map(|(oid, _)| *oid).collect();
        let described: Vec<String> = sqlx::query_scalar(DESCRIBE_TABLES)
            .bind(oids)
            .fetch_all(&mut *connection)
            .await
            .map_err(Error::engine)?;
        for table in described {
            let table: TableSchema = serde_json::from_str(&table)
                .map_err(|error| Error::engine_message(format!("the catalog is not as expected: {error}")))?;
            if !schema.push_table(table, &mut bytes) {
                return Ok(schema);
            }
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_array_is_written_so_that_nothing_in_it_is_syntax() {
        let values = json!([1, null, "a\"b\\c,}", [true]]);
        assert_eq!(array_literal(values.as_array().unwrap()), r#"{"1",NULL,"a\"b\\c,}",{"true"}}"#);
    }
}
