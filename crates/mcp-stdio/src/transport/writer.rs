//! The task that writes lines to the client.

use super::ledger::RequestLedger;
use super::streams::MessageOutput;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time in which open requests may still be answered after the end of input, as in `printf … | mcp-stdio`, and the time
/// for which the client may then read nothing of the answers.
pub(super) const END_GRACE: Duration = Duration::from_millis(300);

/// The time in which all answers must be written after the end of input, to a client that reads all the while.
const MAX_CLOSE_TIME: Duration = Duration::from_secs(10);

/// The number of bytes that were written to the client. Others see by it that the client reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteProgress(Arc<AtomicU64>);

impl WriteProgress {
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until the client has read nothing for `patience`, or [`MAX_CLOSE_TIME`] is over.
    pub(crate) async fn stalled(&self, patience: Duration) {
        let stalled = async {
            let mut before = self.bytes();
            loop {
                tokio::time::sleep(patience).await;
                match self.bytes() {
                    now if now == before => return,
                    now => before = now,
                }
            }
        };
        let _ = tokio::time::timeout(MAX_CLOSE_TIME, stalled).await;
    }
}

/// Writes lines in a task of its own. Sending one never waits: the ledger counts what has not been written, and whoever
/// needs room waits there.
#[derive(Debug)]
pub(super) struct LineWriter {
    lines: LineWriterSender,
    task: JoinHandle<()>,
    progress: WriteProgress,
}

/// The sending half of a [`LineWriter`].
#[derive(Clone, Debug)]
pub(super) struct LineWriterSender {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    ledger: Arc<RequestLedger>,
}

impl LineWriterSender {
    /// Sends one line.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub(super) fn send(&self, line: Vec<u8>) -> io::Result<()> {
        self.ledger.add_unwritten(line.len());
        self.sender.send(line).map_err(|_| io::Error::new(io::ErrorKind::NotConnected, "the client is gone"))
    }
}

impl LineWriter {
    /// Starts a writer to `output`. `client_gone` is cancelled when writing fails.
    pub(super) fn start(
        output: MessageOutput,
        ledger: Arc<RequestLedger>,
        client_gone: CancellationToken,
        progress: WriteProgress,
    ) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let task = tokio::spawn(write(output, lines, Arc::clone(&ledger), client_gone, progress.clone()));
        Self { lines: LineWriterSender { sender, ledger }, task, progress }
    }

    /// Returns the sending half.
    pub(super) fn lines(&self) -> &LineWriterSender {
        &self.lines
    }

    /// Waits until all has been written, or cannot be.
    pub(super) async fn close(self) -> io::Result<()> {
        // The task ends when the last sender is gone and everything is written.
        drop(self.lines);
        tokio::select! {
            written = self.task => written.map_err(io::Error::other),
            () = self.progress.stalled(END_GRACE) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))
            }
        }
    }
}

/// Writes what is sent, the lines that wait in one system call.
async fn write(
    mut output: MessageOutput,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    ledger: Arc<RequestLedger>,
    client_gone: CancellationToken,
    progress: WriteProgress,
) {
    /// The capacity of a pipe on Linux: more than this no call would write.
    const MAX_WRITE_BYTES: usize = 64 * 1024;
    while let Some(mut bytes) = lines.recv().await {
        while bytes.len() < MAX_WRITE_BYTES
            && let Ok(more) = lines.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        let written = async {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                match output.write(rest).await? {
                    0 => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                    count => {
                        progress.add(count);
                        rest = rest.get(count..).unwrap_or_default();
                    }
                }
            }
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "standard output is closed");
            client_gone.cancel();
            return;
        }
        ledger.remove_written(bytes.len());
    }
}
