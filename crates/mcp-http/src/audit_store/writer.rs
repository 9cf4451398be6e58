//! The task that writes the queue to the database.

use super::error::AuditStoreError;
use audit_log::{AuditDatabase, ChainedEntry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The rows of one statement.
pub(super) const BATCH: usize = 256;
/// The time that the first row of a batch waits for others.
const BATCH_DELAY: Duration = Duration::from_millis(50);
/// The pauses before a failed statement is tried again: the first, and the longest.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(15)];
/// The time that the last rows have when the server ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The number of records that were written, and of those that were lost.
#[derive(Debug, Default)]
pub(super) struct WrittenAuditCounts {
    pub(super) written: AtomicU64,
    pub(super) lost: AtomicU64,
    /// The number of the last record.
    pub(super) last_number: AtomicU64,
}

/// The task that writes; it must be [closed](AuditWriter::close).
#[derive(Debug)]
pub(crate) struct AuditWriter {
    task: JoinHandle<()>,
    closing: CancellationToken,
    counts: Arc<WrittenAuditCounts>,
}

impl AuditWriter {
    /// Starts the task, which writes the rows of `queue`.
    pub(super) fn start(
        mut database: AuditDatabase,
        queue: Receiver<ChainedEntry>,
        counts: Arc<WrittenAuditCounts>,
    ) -> Self {
        let closing = CancellationToken::new();
        let task = tokio::spawn({
            let (counts, closing) = (Arc::clone(&counts), closing.clone());
            async move {
                write_batches(&mut database, queue, &counts, &closing).await;
                database.close().await;
            }
        });
        Self { task, closing, counts }
    }

    /// Writes the rows that are still in the queue, for at most [`CLOSE_TIMEOUT`].
    pub(crate) async fn close(mut self) {
        self.closing.cancel();
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let lost = self.counts.lost.load(Ordering::Relaxed);
        let written = self.counts.written.load(Ordering::Relaxed);
        let missing = self.counts.last_number.load(Ordering::Relaxed).saturating_sub(written + lost) + lost;
        if missing > 0 {
            tracing::error!("{missing} records of the audit were not written to the database");
        }
    }
}

/// Returns the name of this process in its rows: the machine, and a number that no other process has.
pub(super) fn server_name() -> Result<String, AuditStoreError> {
    // Row numbers begin at 1 in every process, so the name has to be new each time. Process ids occur again.
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(AuditStoreError::Random)?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{machine}:{:016x}", u64::from_ne_bytes(random)))
}

/// Writes batches until the queue is closed and empty.
async fn write_batches(
    database: &mut AuditDatabase,
    mut queue: Receiver<ChainedEntry>,
    counts: &WrittenAuditCounts,
    closing: &CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        // `recv_many` is cancel safe: if the other branch wins, no row has left the queue.
        let received = tokio::select! {
            received = queue.recv_many(&mut batch, BATCH) => received,
            () = closing.cancelled() => {
                // Rows that are already in the queue are still received; afterwards `recv_many` returns 0.
                queue.close();
                queue.recv_many(&mut batch, BATCH).await
            }
        };
        if received == 0 {
            return;
        }
        if batch.len() < BATCH && !closing.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(BATCH_DELAY) => {}
                () = closing.cancelled() => {}
            }
            while batch.len() < BATCH
                && let Ok(row) = queue.try_recv()
            {
                batch.push(row);
            }
        }
        let [mut delay, longest] = RETRY_DELAYS;
        // A failed batch is retried without end. Meanwhile new rows fill the queue, and only what does not fit there is
        // lost.
        while let Err(error) = database.write(&batch).await {
            tracing::error!("{} records of the audit wait for their database: {error}", batch.len());
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(longest);
        }
        counts.written.fetch_add(batch.len() as u64, Ordering::Relaxed);
        batch.clear();
    }
}
