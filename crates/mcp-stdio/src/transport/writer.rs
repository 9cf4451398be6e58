//! The task that writes lines to the client.

use super::ledger::RequestLedger;
use super::streams::MessageOutput;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time in which open requests may still be answered after the end of input, as in `printf … | mcp-stdio`, and the time
/// that the answers may then take to be written.
pub(super) const END_GRACE: Duration = Duration::from_millis(300);

/// Writes lines in a task of its own. Sending one never waits: the ledger counts what has not been written, and whoever
/// needs room waits there.
#[derive(Debug)]
pub(super) struct LineWriter {
    lines: LineWriterSender,
    task: JoinHandle<()>,
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
    ) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let task = tokio::spawn(write(output, lines, Arc::clone(&ledger), client_gone));
        Self { lines: LineWriterSender { sender, ledger }, task }
    }

    /// Returns the sending half.
    pub(super) fn lines(&self) -> &LineWriterSender {
        &self.lines
    }

    /// Waits until all has been written, or cannot be.
    pub(super) async fn close(self) -> io::Result<()> {
        // The task ends when the last sender is gone and everything is written.
        drop(self.lines);
        tokio::time::timeout(END_GRACE, self.task)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))?
            .map_err(io::Error::other)
    }
}

/// Writes what is sent, the lines that wait in one system call.
async fn write(
    mut output: MessageOutput,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    ledger: Arc<RequestLedger>,
    client_gone: CancellationToken,
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
            output.write_all(&bytes).await?;
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
