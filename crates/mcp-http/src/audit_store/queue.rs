//! The queue of records for the database.

use super::error::AuditStoreError;
use super::writer::{AuditWriter, WrittenAuditCounts, server_name};
use audit_log::{AuditDatabase, AuditEntry, AuditEvent, ChainHead, ChainedEntry};
use core_tools::mcp::CallRecord;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::mpsc::{self, Sender};

/// The records that wait. At 600 bytes each they take 5 MB.
const CAPACITY: usize = 8192;

/// The sending end of the queue. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AuditStore {
    queue: Sender<ChainedEntry>,
    counts: Arc<WrittenAuditCounts>,
    chain: Arc<Mutex<AuditChain>>,
}

/// The chain of this process.
#[derive(Debug)]
struct AuditChain {
    /// The name of this process.
    server: String,
    last_number: u64,
    head: Option<ChainHead>,
    /// Records that were lost since the last one that was queued.
    lost_since: u64,
    /// The last record was queued: nothing follows it.
    is_ended: bool,
}

impl AuditStore {
    /// Opens the database at `location`, `sqlite:PATH` or `postgres://…`, and makes its table if that is missing.
    ///
    /// # Errors
    /// The database cannot be used; the message contains no password.
    pub(crate) async fn open(location: &str) -> Result<(Self, AuditWriter), AuditStoreError> {
        let database = AuditDatabase::open(location).await?;
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let counts = Arc::new(WrittenAuditCounts::default());
        let chain =
            AuditChain { server: server_name()?, last_number: 0, head: None, lost_since: 0, is_ended: false };
        let store = Self { queue: sender, counts: Arc::clone(&counts), chain: Arc::new(Mutex::new(chain)) };
        let writer = AuditWriter::start(database, receiver, counts);
        Ok((store, writer))
    }

    /// Records a call that has ended, or was not run. Never waits for the database.
    pub(crate) fn record(&self, record: &CallRecord<'_>) {
        // Made before the chain is locked: this takes longer than the rest.
        self.enqueue(record.to_entry());
    }

    /// Records that this process ends, as the last link of its chain. A server that is killed leaves a chain without an end,
    /// and so does one whose queue is full.
    pub(crate) fn end(&self) {
        if !self.enqueue(AuditEntry::new(AuditEvent::End, SystemTime::now())) {
            tracing::error!(
                "the end of this server is not recorded in the audit's database: too many records wait"
            );
        }
    }

    fn enqueue(&self, mut entry: AuditEntry) -> bool {
        // Locked while the entry is queued, so that the rows arrive in the order of the chain.
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        // The number is taken even if the row is then lost, so that a gap in the numbers shows the loss.
        chain.last_number += 1;
        self.counts.last_number.store(chain.last_number, Ordering::Relaxed);
        entry.lost_before = chain.lost_since;
        let is_end = entry.event == AuditEvent::End;
        let linked = match self.queue.try_reserve() {
            Ok(slot) if !chain.is_ended => {
                let linked = ChainedEntry::new(entry, &chain.server, chain.last_number, chain.head.as_ref());
                linked.ok().map(|linked| (slot, linked))
            }
            _ => None,
        };
        let Some((slot, linked)) = linked else {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            chain.lost_since += 1;
            return false;
        };
        (chain.head, chain.lost_since, chain.is_ended) = (Some(linked.head()), 0, is_end);
        slot.send(linked);
        true
    }

    /// Returns the number of rows that were written, and of those that were lost.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.written.load(Ordering::Relaxed), self.counts.lost.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::BATCH;
    use super::*;
    use core_tools::mcp::CallDecision;
    use core_tools::mcp::Outcome;
    use role_policy::Caller;
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions, Row as _};
    use std::time::Duration;

    #[tokio::test]
    async fn what_finds_no_room_is_counted_and_the_next_row_says_how_much_that_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let (store, writer) = AuditStore::open(&format!("sqlite:{}", path.display())).await.unwrap();
        let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        let caller = Caller::new("dev");
        let record = || {
            let record = CallRecord::new(&caller, "read_file", CallDecision::Allowed, Outcome::Ok);
            store.record(&record.duration(Duration::from_millis(1)));
        };
        for _ in 0..CAPACITY + BATCH + 1000 {
            record();
        }
        let lost = store.counts().1;
        assert!((1000..=1000 + BATCH as u64).contains(&lost), "{lost}");
        sqlx::query("COMMIT").execute(&mut other).await.unwrap();
        let all = (CAPACITY + BATCH + 1000) as u64 - lost;
        while store.counts().0 < all {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        record();
        store.end();
        writer.close().await;
        let row = "SELECT count(*), max(lost_before), max(number) FROM coretools_audit";
        let row = sqlx::query(row).fetch_one(&mut other).await.unwrap();
        let found: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        // With the record of the end.
        let expected = [all + 2, lost, all + lost + 2].map(|number| i64::try_from(number).unwrap());
        assert_eq!(found, expected);
        // A loss that was told is no gap in the chain.
        let mut verifier = audit_log::ChainVerifier::default();
        let mut database = AuditDatabase::open_to_read(&format!("sqlite:{}", path.display())).unwrap();
        database.verify(&mut verifier).await.unwrap();
        let found = verifier.finish();
        assert!(found.is_intact(), "{:?}", found.faults);
        let [chain] = found.chains.values().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((chain.records, chain.lost, chain.is_ended), (all + 2, lost, true));
    }
}
