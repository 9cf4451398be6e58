//! Lines on their way out.

use super::END_GRACE;
use super::ledger::Ledger;
use super::streams::Output;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Takes lines and writes them in a task of its own. Taking never waits: the ledger knows what has not been
/// written, and who asks it for room waits there.
#[derive(Debug)]
pub(super) struct Writer {
    lines: Lines,
    writing: JoinHandle<()>,
}

/// Where lines are put.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    ledger: Arc<Ledger>,
}

impl Lines {
    /// Takes one line. Fails where nobody reads any more.
    pub(super) fn put(&self, line: Vec<u8>) -> io::Result<()> {
        self.ledger.hold(line.len());
        self.sender.send(line).map_err(|_| io::Error::new(io::ErrorKind::NotConnected, "the client is gone"))
    }
}

impl Writer {
    /// Writes to `output`. `gone` is cancelled when that fails.
    pub(super) fn start(output: Output, ledger: Arc<Ledger>, gone: CancellationToken) -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        let writing = tokio::spawn(write(output, lines, Arc::clone(&ledger), gone));
        Self { lines: Lines { sender, ledger }, writing }
    }

    /// Where lines are put.
    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Returns when all has been written, or cannot be.
    pub(super) async fn close(self) -> io::Result<()> {
        drop(self.lines);
        tokio::time::timeout(END_GRACE, self.writing)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))?
            .map_err(io::Error::other)
    }
}

/// Writes what is sent, several lines in one go where they wait.
async fn write(
    mut output: Output,
    mut lines: mpsc::UnboundedReceiver<Vec<u8>>,
    ledger: Arc<Ledger>,
    gone: CancellationToken,
) {
    /// A full pipe on Linux.
    const ENOUGH: usize = 64 * 1024;
    while let Some(mut bytes) = lines.recv().await {
        while bytes.len() < ENOUGH
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
            gone.cancel();
            return;
        }
        ledger.release(bytes.len());
    }
}
