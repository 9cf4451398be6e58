//! PostgreSQL: a connection for each call, a transaction that the server lets read only.
//!
//! What is run as a query is a subquery of ours: the server takes no other kind of statement there, and sends no
//! more of a value than is answered. Everything goes by the extended protocol, which takes one statement.

use super::rows::Collector;
use super::run::{Answered, Seeded, bounded};
use super::schema::{Schema, Table, is_asked_for};
use super::statement::{defines, first_word};
use super::value::{self, Cell, MOST_OF_A_VALUE};
use super::{Action, Column, DbBridge, Error, Rows};
use futures_util::TryStreamExt;
use serde_json::Value;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgConnectOptions, PgConnection, PgTypeInfo};
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Connection, Either, Encode, Executor, Postgres, Row, Statement,
};
use sqlx::{SqlSafeStr, Type, TypeInfo};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the server may take beyond our own limit, which stops the statement as well.
const GRACE: Duration = Duration::from_secs(1);

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
        let started: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut connection).await?;
        let _ = process.set(started);
        // A client that is gone, with all of this process, ends its statement: PostgreSQL 14 looks, where the system can.
        let _ = execute(&mut connection, "SET client_connection_check_interval = 1000").await;
        let answered = answer(&mut connection, request, cancel).await;
        // Whatever was begun and not committed ends with the connection.
        let _ = connection.close().await;
        answered
    };
    let (options, process) = (&options, &process);
    let stop = move || async move {
        if let Some(process) = process.get() {
            let _ = cancel_statement(options, *process).await;
        }
    };
    bounded(request.time_limit(), cancel, work, stop).await
}

fn options(name: &str, url: &str) -> Result<PgConnectOptions, Error> {
    let options = PgConnectOptions::from_str(url).map_err(|_| Error::unreadable_url(name))?;
    Ok(options
        .application_name("coretools db_bridge")
        .statement_cache_capacity(0)
        .disable_statement_logging())
}

async fn connect(name: &str, options: &PgConnectOptions) -> Result<PgConnection, Error> {
    options.connect().await.map_err(|error| Error::refused(name, error, |code| code.starts_with("28")))
}

/// Ends what the other connection does. A user may do that to itself.
async fn cancel_statement(options: &PgConnectOptions, process: i32) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    sqlx::query("SELECT pg_cancel_backend($1)").bind(process).execute(&mut connection).await?;
    connection.close().await
}

async fn answer(
    connection: &mut PgConnection,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<Answered, Error> {
    let limit = (request.time_limit() + GRACE).as_millis();
    let begin = if request.action == Action::Seed { "BEGIN READ WRITE" } else { "BEGIN READ ONLY" };
    execute(connection, begin).await?;
    // From this first query on, the transaction stays what it is.
    sqlx::query(
        "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true), \
         set_config('idle_in_transaction_session_timeout', $1, true), set_config('DateStyle', 'ISO', true)",
    )
    .bind(limit.to_string())
    .execute(&mut *connection)
    .await?;
    let warning = lower(connection, request).await?;
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    match request.action {
        Action::Schema => schema(connection, &request.payload).await.map(Answered::Schema),
        Action::Query => query(connection, request, warning).await.map(Answered::Rows),
        Action::Explain => explain(connection, request).await.map(Answered::Rows),
        Action::Seed => seed(connection, request).await.map(Answered::Seeded),
    }
}

/// A statement of our own.
async fn execute(connection: &mut PgConnection, statement: &'static str) -> Result<(), Error> {
    sqlx::query(statement).execute(&mut *connection).await?;
    Ok(())
}

/// Has a superuser read with the rights of one who only reads: it may do more than any transaction forbids.
async fn lower(connection: &mut PgConnection, request: &DbBridge) -> Result<Option<String>, Error> {
    let superuser: bool =
        sqlx::query_scalar("SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user")
            .fetch_one(&mut *connection)
            .await?;
    if !superuser || request.action == Action::Seed {
        return Ok(None);
    }
    // PostgreSQL 14 has the role.
    let there: bool =
        sqlx::query_scalar("SELECT count(*) > 0 FROM pg_catalog.pg_roles WHERE rolname = 'pg_read_all_data'")
            .fetch_one(&mut *connection)
            .await?;
    if there {
        execute(connection, "SET LOCAL ROLE pg_read_all_data").await?;
    }
    Ok(Some(
        "this connection is a superuser's, which a determined query can use beyond the database; give it a role \
         that may only read (docs/databases.md)"
            .to_owned(),
    ))
}

/// The statement as the server reads it: its columns, and the types of its parameters.
struct Described {
    columns: Vec<(Column, Option<u32>)>,
    parameters: Vec<u32>,
}

async fn describe(connection: &mut PgConnection, statement: &str) -> Result<Described, Error> {
    let prepared = connection.prepare(AssertSqlSafe(statement).into_sql_str()).await?;
    let columns = prepared
        .columns()
        .iter()
        .map(|column| {
            use sqlx::Column as _;
            let kind = column.type_info();
            let shown = Column { name: column.name().to_owned(), kind: kind.name().to_ascii_lowercase() };
            (shown, kind.oid().map(|oid| oid.0))
        })
        .collect();
    let parameters = match prepared.parameters() {
        Some(Either::Left(kinds)) => kinds.iter().map(|kind| kind.oid().map_or(0, |oid| oid.0)).collect(),
        _ => Vec::new(),
    };
    Ok(Described { columns, parameters })
}

async fn query(
    connection: &mut PgConnection,
    request: &DbBridge,
    warning: Option<String>,
) -> Result<Rows, Error> {
    let statement = request.statement()?;
    let limit = request.row_limit()?;
    let described =
        describe(connection, statement).await.map_err(|error| words(error, statement, "query"))?;
    if described.columns.is_empty() {
        return Err(not_permitted(statement, "query"));
    }
    let parameters = request.parameters()?;
    let arguments =
        arguments(connection, parameters.first().copied().unwrap_or_default(), &described.parameters).await?;
    let (mut shown, mut inner) = (Vec::new(), Vec::new());
    for (index, (_, kind)) in described.columns.iter().enumerate() {
        shown.push(expression(*kind, index));
        inner.push(format!("c{index}"));
    }
    // The statement stands alone on its lines: a comment at its end is over before the parenthesis.
    let wrapped = format!(
        "SELECT {} FROM (\n{statement}\n) AS coretools({}) LIMIT {}",
        shown.join(", "),
        inner.join(", "),
        limit + 1
    );
    let kinds: Vec<Option<u32>> = described.columns.iter().map(|(_, kind)| *kind).collect();
    let mut rows = Collector::new(described.columns.into_iter().map(|(column, _)| column).collect(), limit);
    if let Some(warning) = warning {
        rows.note(warning);
    }
    let mut stream = sqlx::query_with(AssertSqlSafe(wrapped), arguments).fetch(&mut *connection);
    loop {
        let row = match stream.try_next().await {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(words(error.into(), statement, "query")),
        };
        let cells =
            kinds.iter().enumerate().map(|(index, kind)| match row.try_get::<Option<String>, _>(index) {
                Ok(found) => found.map_or((Value::Null, false), |text| cell(*kind, &text)),
                Err(error) => (format!("[{error}]").into(), false),
            });
        if !rows.push(cells) {
            break;
        }
    }
    Ok(rows.finish())
}

// <https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat>
const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const INTEGERS: [u32; 4] = [20, 21, 23, 26];
const FLOATS: [u32; 2] = [700, 701];
const JSON: [u32; 2] = [114, 3802];

/// The column as text, no longer than is answered: the server sends no more.
fn expression(kind: Option<u32>, index: usize) -> String {
    let more = MOST_OF_A_VALUE + 1;
    match kind {
        // The bytes, and how many there are.
        Some(BYTEA) => format!(
            "octet_length(c{index})::text || ' ' || \
             translate(encode(substring(c{index} from 1 for {MOST_OF_A_VALUE}), 'base64'), E'\\n', '')"
        ),
        Some(kind) if element(kind).is_some() => {
            // As an array of texts, in which each is what it is alone.
            format!("left(to_json(c{index}::text[])::text, 16000)")
        }
        _ => format!("left(c{index}::text, {more})"),
    }
}

/// The type of the elements of an array type; for those of extensions text will do.
fn element(kind: u32) -> Option<u32> {
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

fn cell(kind: Option<u32>, text: &str) -> Cell {
    match kind {
        Some(BOOL) => ((text == "true").into(), false),
        Some(kind) if INTEGERS.contains(&kind) => (value::integer_text(text), false),
        Some(kind) if FLOATS.contains(&kind) => {
            (text.parse().map_or_else(|_| text.into(), value::real), false)
        }
        Some(kind) if JSON.contains(&kind) => value::json_text(text),
        Some(BYTEA) => {
            let (length, encoded) = text.split_once(' ').unwrap_or(("0", ""));
            let length = length.parse::<usize>().unwrap_or_default();
            (serde_json::json!({"$base64": encoded, "bytes": length}), length > MOST_OF_A_VALUE)
        }
        Some(kind) if element(kind).is_some() => {
            let element = element(kind);
            match serde_json::from_str(text) {
                Ok(found) => (elements(element, found), false),
                Err(_) => value::text(text),
            }
        }
        _ => value::text(text),
    }
}

/// An array, of arrays where it has dimensions.
fn elements(kind: Option<u32>, found: Value) -> Value {
    match found {
        Value::Array(found) => found.into_iter().map(|inner| elements(kind, inner)).collect(),
        Value::String(text) => cell(kind, if kind == Some(BOOL) { long_bool(&text) } else { &text }).0,
        other => other,
    }
}

/// In an array a truth is one letter.
fn long_bool(text: &str) -> &str {
    if text.starts_with('t') { "true" } else { "false" }
}

/// A parameter as the server wrote it, of a type that the server knows.
struct Bound {
    kind: u32,
    bytes: Option<Vec<u8>>,
}

impl Type<Postgres> for Bound {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("text")
    }
}

impl Encode<'_, Postgres> for Bound {
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

/// `values` in the binary form of the types that the statement wants. The server does the conversion, as it alone
/// knows all types: from text, which is bound.
async fn arguments(
    connection: &mut PgConnection,
    values: &[Value],
    kinds: &[u32],
) -> Result<PgArguments, Error> {
    if values.len() != kinds.len() {
        return Err(Error::values(kinds.len(), values.len()));
    }
    let mut arguments = PgArguments::default();
    for (index, (value, &kind)) in values.iter().zip(kinds).enumerate() {
        let bytes = match value::from_base64(value)? {
            Some(bytes) => Some(bytes),
            None => match parameter(value, kind) {
                None => None,
                Some(text) => Some(
                    converted(connection, &text, kind)
                        .await
                        .map_err(|error| Error::argument("params", format!("${}: {error}", index + 1)))?,
                ),
            },
        };
        arguments.add(Bound { kind, bytes }).map_err(|error| Error::argument("params", error.to_string()))?;
    }
    Ok(arguments)
}

fn parameter(value: &Value, kind: u32) -> Option<String> {
    match value {
        Value::Array(values) if !JSON.contains(&kind) => Some(array(values)),
        // A text in JSON is one there as well.
        Value::String(_) if JSON.contains(&kind) => Some(value.to_string()),
        other => value::parameter_text(other),
    }
}

/// An array in the server's own form: `{"a","b"}`.
fn array(values: &[Value]) -> String {
    let members = values.iter().map(|value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Array(values) => array(values),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

async fn converted(connection: &mut PgConnection, text: &str, kind: u32) -> Result<Vec<u8>, Error> {
    let name: String = sqlx::query_scalar("SELECT format_type($1::oid, NULL)")
        .bind(sqlx::postgres::types::Oid(kind))
        .fetch_one(&mut *connection)
        .await?;
    let conversion = format!("SELECT $1::text::{name}");
    let row = sqlx::query(AssertSqlSafe(conversion)).bind(text).fetch_one(&mut *connection).await?;
    let bytes = row.try_get_raw(0)?.as_bytes().map(<[u8]>::to_vec);
    bytes.map_err(|_| Error::argument("params", "the server takes it for NULL"))
}

async fn explain(connection: &mut PgConnection, request: &DbBridge) -> Result<Rows, Error> {
    let statement = request.statement()?;
    if !request.parameters()?.concat().is_empty() {
        return Err(Error::argument("params", "`explain` takes none; write the values"));
    }
    // Alone it must be a statement, so that nothing in it is an option of EXPLAIN.
    describe(connection, statement).await.map_err(|error| words(error, statement, "explain"))?;
    let explained = format!("EXPLAIN (COSTS true)\n{statement}");
    let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explained))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| words(error.into(), statement, "explain"))?;
    let column = Column { name: "plan".to_owned(), kind: "text".to_owned() };
    let mut rows = Collector::new(vec![column], request.row_limit()?);
    for line in found {
        if !rows.push(std::iter::once(value::text(&line))) {
            break;
        }
    }
    Ok(rows.finish())
}

async fn seed(connection: &mut PgConnection, request: &DbBridge) -> Result<Seeded, Error> {
    let statement = request.statement()?;
    let described = describe(connection, statement).await.map_err(|error| words(error, statement, "seed"))?;
    // The grammar of PREPARE takes what selects, inserts, changes, deletes or merges rows, and nothing else.
    let class = format!("PREPARE coretools_class AS\n{statement}");
    (sqlx::query(AssertSqlSafe(class)).execute(&mut *connection).await)
        .map_err(|error| words(error.into(), statement, "seed"))?;
    if matches!(first_word(statement).as_str(), "select" | "values" | "table") {
        return Err(not_permitted(statement, "seed"));
    }
    let mut seeded = Seeded { dry_run: request.dry_run, ..Seeded::default() };
    for list in request.parameters()? {
        let arguments = arguments(connection, list, &described.parameters).await?;
        let done = sqlx::query_with(AssertSqlSafe(statement), arguments).execute(&mut *connection).await;
        seeded.affected += done.map_err(|error| words(error.into(), statement, "seed"))?.rows_affected();
    }
    execute(connection, if request.dry_run { "ROLLBACK" } else { "COMMIT" }).await?;
    Ok(seeded)
}

/// The engine's words, or ours for a statement of a kind that the action does not take.
fn words(error: Error, statement: &str, action: &'static str) -> Error {
    let Error::Engine { message } = &error else { return error };
    if defines(statement) {
        return Error::Ddl;
    }
    if message.ends_with("(code 42601)") && message.contains("multiple commands") {
        return Error::Statements { found: 2 };
    }
    let kinds = ["42601", "25006", "0A000", "42P14"];
    let word = first_word(statement);
    let reads = ["select", "values", "table", "with", "insert", "update", "delete", "merge"];
    if kinds.iter().any(|code| message.ends_with(&format!("(code {code})")))
        && !reads.contains(&word.as_str())
    {
        return not_permitted(statement, action);
    }
    error
}

fn not_permitted(statement: &str, action: &'static str) -> Error {
    if defines(statement) {
        return Error::Ddl;
    }
    let word = first_word(statement);
    let reason = match action {
        "seed" => format!("`{word}`; a seed is INSERT, UPDATE, DELETE or MERGE"),
        "explain" => format!("`{word}` has no plan"),
        _ => format!("`{word}`; a query is SELECT, VALUES, TABLE or WITH; for a plan see `explain`"),
    };
    Error::NotPermitted { action, reason }
}

/// Each table as one JSON object, in the form of [`Table`].
const SCHEMA: &str = "
SELECT json_build_object(
  'name', CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END,
  'type', CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
  'row_estimate', CASE WHEN c.relkind IN ('r', 'p', 'm') AND c.reltuples >= 0 THEN c.reltuples::bigint END,
  'columns', (SELECT coalesce(json_agg(json_build_object(
      'name', a.attname, 'type', format_type(a.atttypid, a.atttypmod), 'nullable', NOT a.attnotnull,
      'default', (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum),
      'primary_key', EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey::int2[]))
    ) ORDER BY a.attnum), '[]') FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'indexes', (SELECT coalesce(json_agg(json_build_object(
      'name', x.relname, 'unique', i.indisunique,
      'columns', (SELECT json_agg(pg_get_indexdef(i.indexrelid, k, true) ORDER BY k) FROM generate_series(1, i.indnkeyatts) k)
    ) ORDER BY x.relname), '[]') FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid),
  'foreign_keys', (SELECT coalesce(json_agg(json_build_object(
      'table', f.confrelid::regclass::text,
      'columns', (SELECT json_agg(a.attname ORDER BY o) FROM unnest(f.conkey) WITH ORDINALITY u(n, o) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = u.n),
      'references', (SELECT json_agg(a.attname ORDER BY o) FROM unnest(f.confkey) WITH ORDINALITY u(n, o) JOIN pg_catalog.pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = u.n)
    ) ORDER BY f.conname), '[]') FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f')
)::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY ($1)
ORDER BY array_position($1, c.oid)";

const NAMES: &str = "
SELECT c.oid, CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY n.nspname <> 'public', n.nspname, c.relname";

/// How many tables are described at a time.
const BATCH: usize = 50;

async fn schema(connection: &mut PgConnection, pattern: &str) -> Result<Schema, Error> {
    let mut found: Vec<(sqlx::postgres::types::Oid, String)> =
        sqlx::query_as(NAMES).fetch_all(&mut *connection).await?;
    found.retain(|(_, name)| is_asked_for(pattern, name));
    let mut schema = Schema::of("postgres", found.iter().map(|(_, name)| name.clone()).collect());
    let mut bytes = 0;
    for batch in found.chunks(BATCH) {
        let oids: Vec<_> = batch.iter().map(|(oid, _)| *oid).collect();
        let described: Vec<String> =
            sqlx::query_scalar(SCHEMA).bind(oids).fetch_all(&mut *connection).await?;
        for table in described {
            let table: Table = serde_json::from_str(&table).map_err(|error| Error::Engine {
                message: format!("the catalog is not as expected: {error}"),
            })?;
            if !schema.describe(table, &mut bytes) {
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
        assert_eq!(array(values.as_array().unwrap()), r#"{"1",NULL,"a\"b\\c,}",{"true"}}"#);
    }
}
