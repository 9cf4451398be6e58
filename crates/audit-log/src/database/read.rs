//! Reading rows, for queries and the verification.

use super::connection::{AuditDatabase, DatabaseEngine, STATEMENT_TIMEOUT};
use super::error::DatabaseError;
use super::schema;
use crate::call::{CallDecision, Outcome};
use crate::chain::ChainHash;
use crate::entry::{AuditEntry, AuditEvent};
use crate::query::AuditQuery;
use crate::record::StoredRecord;
use crate::verify::{ChainVerifier, hash_or_none};
use futures_util::TryStreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{AssertSqlSafe, ColumnIndex, ConnectOptions, Database, Decode, Row, Type};
use std::ops::ControlFlow;

/// The columns in the order in which [`row_entry`] reads them; those of format 2 last.
const COLUMNS_1: &str = "server, number, principal, session, role, tool, decision, rule, outcome, duration_us, \
                         arguments, bytes_in, bytes_out, lost_before";
const COLUMNS_2: &str =
    ", event, approval, targets, full_arguments, refused_connections, confinement, previous, hash";

/// The time as text, as the audit writes it.
const POSTGRES_TIME: &str = "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')";

/// Reads all rows that `$where` selects, in `$order`, and calls `$visit` with each until it breaks.
macro_rules! read {
    ($connection:expr, $sql:expr, $times:expr, $is_linked:expr, $visit:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($sql));
        for time in $times {
            query = query.bind(time);
        }
        let mut rows = query.fetch($connection);
        while let Some(row) = rows.try_next().await.map_err(DatabaseError::Database)? {
            let read = row_entry(&row, $is_linked).map_err(DatabaseError::Database)?;
            if $visit(read).is_break() {
                break;
            }
        }
        Ok(())
    }};
}

/// A row: the entry in it, and the hash that it has of itself.
struct ReadRow {
    entry: AuditEntry,
    hash: Option<ChainHash>,
    /// A column holds what no writer writes there.
    is_damaged: bool,
}

/// The order of the rows.
#[derive(Clone, Copy)]
enum RowOrder {
    /// Each chain after the other.
    Chains,
    /// The newest first.
    Newest,
}

impl AuditDatabase {
    /// Calls `visit` with each entry that `query` finds, the newest first, until it breaks.
    ///
    /// # Errors
    /// The database cannot be read, has no audit, or has the audit of a newer program.
    pub async fn find(
        &mut self,
        query: &AuditQuery,
        mut visit: impl FnMut(AuditEntry) -> ControlFlow<()>,
    ) -> Result<(), DatabaseError> {
        self.read(query.times(), RowOrder::Newest, |row| match query.matches(&row.entry) {
            true => visit(row.entry),
            false => ControlFlow::Continue(()),
        })
        .await
    }

    /// Gives every record to `verifier`. A chain has the name of the process that wrote it.
    ///
    /// # Errors
    /// The database cannot be read, has no audit, or has the audit of a newer program.
    pub async fn verify(&mut self, verifier: &mut ChainVerifier) -> Result<(), DatabaseError> {
        self.read((None, None), RowOrder::Chains, |row| {
            let server = row.entry.server.clone().unwrap_or_default();
            let position = format!("row {} of {server}", row.entry.number.unwrap_or_default());
            verifier.check(&position, &server, &row.record());
            ControlFlow::Continue(())
        })
        .await
    }

    /// Connects, and checks that the table is missing or of a format that this program knows. Nothing is made or read.
    ///
    /// # Errors
    /// The database cannot be used, or a newer program made its table.
    pub async fn check(&mut self) -> Result<(), DatabaseError> {
        let checked = match &mut self.0 {
            DatabaseEngine::Sqlite(options, _) => {
                // A file that is missing is made by the server.
                if !options.get_filename().exists() {
                    return Ok(());
                }
                schema::check_sqlite(&mut connected(options.as_ref()).await?).await
            }
            DatabaseEngine::Postgres(options, _) => {
                schema::check_postgres(&mut connected(options.as_ref()).await?).await
            }
        };
        match checked {
            Ok(_) | Err(DatabaseError::NoTable) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn read(
        &mut self,
        (since, until): (Option<&str>, Option<&str>),
        order: RowOrder,
        mut visit: impl FnMut(ReadRow) -> ControlFlow<()>,
    ) -> Result<(), DatabaseError> {
        let order = match order {
            RowOrder::Chains => "server, number",
            RowOrder::Newest => "at DESC, server DESC, number DESC",
        };
        let times: Vec<String> = [since, until].into_iter().flatten().map(str::to_owned).collect();
        let condition = |parameter: fn(usize) -> String| {
            let mut number = 0;
            let mut next = || {
                number += 1;
                parameter(number)
            };
            let since = since.map(|_| format!(" AND at >= {}", next())).unwrap_or_default();
            let until = until.map(|_| format!(" AND at < {}", next())).unwrap_or_default();
            format!("{since}{until}")
        };
        match &mut self.0 {
            DatabaseEngine::Sqlite(options, _) => {
                let mut connection = connected(options.as_ref()).await?;
                let is_linked = schema::check_sqlite(&mut connection).await?;
                let columns = if is_linked { COLUMNS_2 } else { "" };
                let condition = condition(|_| "?".to_owned());
                let sql = format!(
                    "SELECT at, {COLUMNS_1}{columns} FROM coretools_audit WHERE true{condition} ORDER BY {order}"
                );
                read!(&mut connection, sql, times, is_linked, visit)
            }
            DatabaseEngine::Postgres(options, _) => {
                let mut connection = connected(options.as_ref()).await?;
                let is_linked = schema::check_postgres(&mut connection).await?;
                let columns = if is_linked { COLUMNS_2 } else { "" };
                let condition = condition(|number| format!("CAST(${number} AS timestamptz)"));
                let sql = format!(
                    "SELECT {POSTGRES_TIME}, {COLUMNS_1}{columns} FROM coretools_audit WHERE true{condition} ORDER BY {order}"
                );
                read!(&mut connection, sql, times, is_linked, visit)
            }
        }
    }
}

async fn connected<O: ConnectOptions>(options: &O) -> Result<O::Connection, DatabaseError>
where
    O::Connection: Sized,
{
    tokio::time::timeout(STATEMENT_TIMEOUT, options.connect())
        .await
        .map_err(|_| DatabaseError::Timeout)?
        .map_err(DatabaseError::Database)
}

/// Reads one row. `is_linked` says that it has the columns of format 2.
fn row_entry<R>(row: &R, is_linked: bool) -> Result<ReadRow, sqlx::Error>
where
    R: Row,
    usize: ColumnIndex<R>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    R::Database: Database,
{
    let text = |column: usize| row.try_get::<Option<String>, _>(column);
    let number =
        |column: usize| row.try_get::<i64, _>(column).map(|number| u64::try_from(number).unwrap_or_default());
    let mut is_damaged = false;
    let event = match is_linked.then(|| text(15)).transpose()?.flatten() {
        // A row of version 0.1.0, which had calls alone.
        None => AuditEvent::Call,
        Some(word) => AuditEvent::parse(&word).unwrap_or_else(|| {
            is_damaged = true;
            AuditEvent::Call
        }),
    };
    let mut entry = AuditEntry::new(event, std::time::SystemTime::UNIX_EPOCH);
    entry.time = text(0)?.unwrap_or_default();
    entry.server = text(1)?;
    entry.number = Some(number(2)?);
    (entry.principal, entry.session) = (text(3)?, text(4)?);
    (entry.role, entry.tool) = (text(5)?.unwrap_or_default(), text(6)?.unwrap_or_default());
    let word = |found: Option<String>| found.filter(|word| !word.is_empty());
    let (decision, outcome) = (word(text(7)?), word(text(9)?));
    entry.decision = decision.as_deref().and_then(CallDecision::parse);
    entry.outcome = outcome.as_deref().and_then(Outcome::parse);
    is_damaged |=
        entry.decision.is_some() != decision.is_some() || entry.outcome.is_some() != outcome.is_some();
    entry.rule = text(8)?.unwrap_or_default();
    entry.arguments = text(11)?.unwrap_or_default();
    entry.bytes_in = number(12)?;
    entry.lost_before = number(14)?;
    if entry.event == AuditEvent::Call {
        (entry.duration_us, entry.bytes_out) = (Some(number(10)?), Some(number(13)?));
    }
    let mut hash = None;
    if is_linked {
        entry.approval = json(text(16)?, &mut is_damaged);
        entry.targets = json(text(17)?, &mut is_damaged);
        entry.full_arguments = text(18)?;
        entry.refused_connections = json(text(19)?, &mut is_damaged).unwrap_or_default();
        entry.confinement = text(20)?;
        entry.previous = hash_or_none(text(21)?.as_deref());
        hash = hash_or_none(text(22)?.as_deref());
    }
    Ok(ReadRow { entry, hash, is_damaged })
}

/// Reads a column of JSON. One that is not exactly what a writer writes is damaged: a member that is not read is not hashed
/// either.
fn json<T: DeserializeOwned + Serialize>(text: Option<String>, is_damaged: &mut bool) -> Option<T> {
    let text = text?;
    let value: Option<T> = serde_json::from_str(&text).ok();
    let written = value.as_ref().and_then(|value| serde_json::to_string(value).ok());
    *is_damaged |= written.is_none_or(|written| written != text);
    value
}

impl ReadRow {
    fn record(&self) -> StoredRecord {
        let Some(stated) = self.hash.clone() else { return StoredRecord::Unlinked };
        let Ok(body) = self.entry.body() else { return StoredRecord::Damaged };
        // No write leaves half a row, so that such a one was changed.
        let computed = if self.is_damaged { ChainHash::of("") } else { ChainHash::of(&body) };
        StoredRecord::Linked {
            number: self.entry.number.unwrap_or_default(),
            previous: self.entry.previous.clone(),
            computed,
            stated,
            // Rows that found no room in the queue had numbers.
            lost_before: self.entry.lost_before,
            is_end: self.entry.event == AuditEvent::End,
        }
    }
}
