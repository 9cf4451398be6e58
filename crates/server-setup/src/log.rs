//! Logs to standard error, with secrets masked. Standard output belongs to the protocol.
//!
//! Records are written by a thread of their own, so that a standard error that nobody reads stops the log
//! and nothing else. What does not fit into its queue is dropped and counted. Most servers never log; so the
//! thread is started with the first record.

use crate::error::Error;
use core_tools::redact::Redactor;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The bytes of records that may wait to be written. One record more is taken, whatever its length.
const QUEUE_BYTES: usize = 1 << 20;

/// The longest time to write the last records when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// A second destination of records beside standard error.
pub type ExtraLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging at `level`, and to `extra` too. The returned log writes the last records when it is dropped.
///
/// # Errors
///
/// Where `level` is no level, and where there is a log already.
pub fn start(level: &str, redactor: Redactor, extra: Option<ExtraLayer>) -> Result<LogHandle, Error> {
    let level: LevelFilter = level.parse().map_err(|_| Error::LogLevel { level: level.to_owned() })?;
    let log = LogHandle(Arc::default());
    if level == LevelFilter::OFF {
        return Ok(log);
    }
    // rmcp warns of every request that is answered with an error, which is its client's affair.
    let protocol_level = if level >= LevelFilter::INFO { level } else { level.min(LevelFilter::ERROR) };
    let targets = Targets::new().with_default(level).with_target("rmcp", protocol_level);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(LogRecordWriters {
        queue: Arc::clone(&log.0),
        redactor,
        writer: AtomicBool::new(false),
    });
    let registry = tracing_subscriber::registry().with(extra).with(layer).with(targets);
    registry.try_init().map_err(Error::LogStarted)?;
    Ok(log)
}

/// The log. Dropped, it waits 100 ms at most for what has been logged to be written.
#[must_use]
pub struct LogHandle(Arc<LogRecordQueue>);

impl std::fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogHandle").finish_non_exhaustive()
    }
}

impl Drop for LogHandle {
    fn drop(&mut self) {
        self.0.flush(FLUSH_TIMEOUT);
    }
}

/// Records on their way to the thread that writes them.
#[derive(Default)]
struct LogRecordQueue {
    state: Mutex<LogQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct LogQueueState {
    records: VecDeque<Vec<u8>>,
    /// The bytes in `records`.
    bytes: usize,
    dropped: u64,
    writing: bool,
}

impl LogRecordQueue {
    fn state(&self) -> MutexGuard<'_, LogQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, record: Vec<u8>) {
        let mut state = self.state();
        // Dropped and counted: if nobody reads standard error, neither memory nor a call must wait for it.
        if state.bytes >= QUEUE_BYTES {
            state.dropped += 1;
            return;
        }
        state.bytes += record.len();
        state.records.push_back(record);
        self.changed.notify_all();
    }

    /// Waits for records and writes them, for as long as the process lives.
    fn write(&self, mut output: impl Write, redactor: &Redactor) {
        loop {
            let mut state = self
                .changed
                .wait_while(self.state(), |state| state.records.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            // All records at once, so that whoever logs waits for the lock alone and never for standard error.
            let records = std::mem::take(&mut state.records);
            let dropped = std::mem::take(&mut state.dropped);
            state.bytes = 0;
            state.writing = true;
            drop(state);
            for record in records {
                // Whole records are masked, so that no secret is cut in two. If standard error cannot be written,
                // nothing is left to report it to.
                let text = String::from_utf8_lossy(&record);
                let _ = output.write_all(redactor.redact(&text).as_bytes());
            }
            if dropped > 0 {
                let _ = writeln!(output, "{dropped} log records dropped: standard error was not read");
            }
            self.state().writing = false;
            self.changed.notify_all();
        }
    }

    fn flush(&self, limit: Duration) {
        // Written or out of time.
        let _ = self
            .changed
            .wait_timeout_while(self.state(), limit, |state| state.writing || !state.records.is_empty());
    }
}

/// Hands out writers that take one record each.
struct LogRecordWriters {
    queue: Arc<LogRecordQueue>,
    redactor: Redactor,
    /// True once the thread that writes has been started.
    writer: AtomicBool,
}

struct LogRecordWriter<'a> {
    queue: &'a LogRecordQueue,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for LogRecordWriters {
    type Writer = LogRecordWriter<'a>;

    fn make_writer(&'a self) -> LogRecordWriter<'a> {
        // `Relaxed`, as only one thread must see `false`, and nothing else is handed over by it.
        if !self.writer.swap(true, Ordering::Relaxed) {
            let (queue, redactor) = (Arc::clone(&self.queue), self.redactor.clone());
            let started = std::thread::Builder::new()
                .name("log".to_owned())
                .spawn(move || queue.write(std::io::stderr(), &redactor));
            // If no thread can be started, the record waits until the next one starts a thread.
            self.writer.store(started.is_ok(), Ordering::Relaxed);
        }
        LogRecordWriter { queue: &self.queue, bytes: Vec::new() }
    }
}

impl Write for LogRecordWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for LogRecordWriter<'_> {
    fn drop(&mut self) {
        self.queue.push(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_tools::redact::RedactionOptions;
    use std::sync::mpsc::{Sender, channel};

    struct SentRecords(Sender<Vec<u8>>);

    impl Write for SentRecords {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn records_past_the_queue_are_dropped_and_counted() {
        let queue = Arc::new(LogRecordQueue::default());
        let record = vec![b'x'; QUEUE_BYTES / 4];
        for _ in 0..7 {
            queue.push(record.clone());
        }
        let (sender, written) = channel();
        let writer = Arc::clone(&queue);
        std::thread::spawn(move || {
            writer.write(SentRecords(sender), &Redactor::new(RedactionOptions::default()).unwrap());
        });
        queue.flush(Duration::from_secs(20));
        let written = written.try_iter().collect::<Vec<_>>().concat();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text.bytes().filter(|byte| *byte == b'x').count(), QUEUE_BYTES);
        assert!(text.ends_with("3 log records dropped: standard error was not read\n"));
    }
}
