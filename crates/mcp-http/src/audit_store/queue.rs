//! The queue of records for the database.

use super::database::AuditDatabase;
use super::error::AuditStoreError;
use super::row::AuditRow;
use super::writer::{AuditWriter, WrittenAuditCounts};
use core_tools::mcp::CallRecord;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::{self, Sender};

/// The records that wait. At 300 bytes each they take 2.5 MB.
const CAPACITY: usize = 8192;

/// The sending end of the queue. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AuditStore {
    queue: Sender<AuditRow>,
    counts: Arc<WrittenAuditCounts>,
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
        let writer = AuditWriter::start(database, receiver, Arc::clone(&counts))?;
        Ok((Self { queue: sender, counts }, writer))
    }

    /// Records a call that has ended, or was not run. Never waits.
    pub(crate) fn record(&self, record: &CallRecord<'_>) {
        // The number is taken even if the row is then lost, so that a gap in the numbers shows the loss.
        let lost = self.counts.lost_since.swap(0, Ordering::Relaxed);
        let number = self.counts.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        if self.queue.try_send(AuditRow::new(record, number, lost)).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            // The next row also reports the losses that this one would have reported.
            self.counts.lost_since.fetch_add(lost + 1, Ordering::Relaxed);
        }
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
        writer.close().await;
        let row = "SELECT count(*), max(lost_before), max(number) FROM coretools_audit";
        let row = sqlx::query(row).fetch_one(&mut other).await.unwrap();
        let found: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        let expected = [all + 1, lost, all + lost + 1].map(|number| i64::try_from(number).unwrap());
        assert_eq!(found, expected);
    }
}
