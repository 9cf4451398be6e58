//! Writing rows.

use super::connection::{AuditDatabase, DatabaseEngine, STATEMENT_TIMEOUT};
use super::error::{DatabaseError, WriteError};
use crate::chain::{ChainHash, ChainHead};
use crate::entry::AuditEntry;
use sqlx::QueryBuilder;

/// An entry as a link of the chain of the process that writes it.
#[derive(Clone, Debug)]
pub struct ChainedEntry {
    entry: AuditEntry,
    hash: ChainHash,
}

impl ChainedEntry {
    /// Makes `entry` the `number`th link of the chain of `server`, after `head`.
    ///
    /// # Errors
    /// The entry is not JSON, which cannot happen.
    pub fn new(
        mut entry: AuditEntry,
        server: &str,
        number: u64,
        head: Option<&ChainHead>,
    ) -> Result<Self, serde_json::Error> {
        without_nul(&mut entry);
        entry.server = Some(server.to_owned());
        entry.number = Some(number);
        entry.previous = head.map(|head| head.hash.clone());
        let hash = ChainHash::of(&entry.body()?);
        Ok(Self { entry, hash })
    }

    /// Returns the head of the chain after this entry.
    pub fn head(&self) -> ChainHead {
        ChainHead { number: self.entry.number.unwrap_or_default(), hash: self.hash.clone() }
    }
}

/// Replaces the character that PostgreSQL's text cannot hold. The texts of JSON write it as an escape.
fn without_nul(entry: &mut AuditEntry) {
    let texts = [&mut entry.role, &mut entry.tool, &mut entry.rule, &mut entry.arguments].into_iter();
    let optional =
        [&mut entry.principal, &mut entry.session, &mut entry.full_arguments, &mut entry.confinement];
    for text in texts.chain(optional.into_iter().flatten()) {
        if text.contains('\0') {
            *text = text.replace('\0', "\u{fffd}");
        }
    }
}

const INSERT: &str = "INSERT INTO coretools_audit (server, number, at, event, principal, session, role, tool, decision, \
                      rule, outcome, approval, duration_us, arguments, targets, full_arguments, bytes_in, bytes_out, \
                      refused_connections, confinement, lost_before, previous, hash) ";

/// Inserts a batch. Both databases have the same SQL, but for the time.
macro_rules! insert {
    ($connection:expr, $rows:expr, $before:literal, $after:literal) => {{
        let mut query = QueryBuilder::new(INSERT);
        query.push_values($rows, |mut row, ChainedEntry { entry, hash }| {
            row.push_bind(entry.server.as_deref()).push_bind(signed(entry.number.unwrap_or_default()));
            row.push($before).push_bind_unseparated(entry.time.as_str()).push_unseparated($after);
            row.push_bind(entry.event.as_str()).push_bind(entry.principal.as_deref());
            row.push_bind(entry.session.as_deref()).push_bind(entry.role.as_str());
            row.push_bind(entry.tool.as_str());
            row.push_bind(entry.decision.map_or("", |decision| decision.as_str()));
            row.push_bind(entry.rule.as_str());
            row.push_bind(entry.outcome.map_or("", |outcome| outcome.as_str()));
            row.push_bind(entry.approval.as_ref().and_then(json));
            row.push_bind(signed(entry.duration_us.unwrap_or_default())).push_bind(entry.arguments.as_str());
            row.push_bind(entry.targets.as_ref().and_then(json)).push_bind(entry.full_arguments.as_deref());
            row.push_bind(signed(entry.bytes_in)).push_bind(signed(entry.bytes_out.unwrap_or_default()));
            row.push_bind(Some(&entry.refused_connections).filter(|list| !list.is_empty()).and_then(json));
            row.push_bind(entry.confinement.as_deref()).push_bind(signed(entry.lost_before));
            row.push_bind(entry.previous.as_ref().map(ChainHash::as_str)).push_bind(hash.as_str());
        });
        // A batch whose answer was lost is written again. Rows that did arrive then have their keys already.
        query.push(" ON CONFLICT DO NOTHING");
        // The text depends on the number of rows, so that keeping it prepared would not pay.
        query.build().persistent(false).execute($connection).await.map(drop)
    }};
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn json(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

impl AuditDatabase {
    /// Writes all rows or none. After a failure the next attempt is on a new connection.
    ///
    /// # Errors
    /// The database refuses, or does not answer in time.
    pub async fn write(&mut self, rows: &[ChainedEntry]) -> Result<(), WriteError> {
        let written = tokio::time::timeout(STATEMENT_TIMEOUT, async {
            self.connect().await.map_err(|error| match error {
                DatabaseError::Database(error) => WriteError::Database(error),
                other => WriteError::Open(other),
            })?;
            let written = match &mut self.0 {
                DatabaseEngine::Sqlite(_, Some(connection)) => insert!(connection, rows, "", ""),
                DatabaseEngine::Postgres(_, Some(connection)) => {
                    insert!(connection, rows, "CAST(", " AS timestamptz)")
                }
                DatabaseEngine::Sqlite(_, None) | DatabaseEngine::Postgres(_, None) => Ok(()),
            };
            written.map_err(WriteError::Database)
        });
        // After a timeout the connection may still be in the middle of a statement, so it is dropped below.
        let error = match written.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => WriteError::Timeout,
        };
        self.disconnect();
        Err(error)
    }
}
