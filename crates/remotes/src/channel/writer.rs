//! The lines that go there.

use super::pending::PendingCalls;
use crate::opening::CLOSE_LINE;
use json_rpc::json::Json;
use json_rpc::message::Message;
use process_runner::CancellationToken;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// The lines that may wait, so that a server there that does not read holds callers up and no memory.
const MAX_LINES: usize = 64;

/// The time that the server there has to read that its session ends.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// The queue of lines.
#[derive(Debug)]
pub(super) struct Lines(mpsc::Sender<Vec<u8>>);

/// Room for one line.
pub(super) struct LineRoom<'a>(mpsc::Permit<'a, Vec<u8>>);

impl Lines {
    pub(super) fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel(MAX_LINES);
        (Self(sender), receiver)
    }

    /// Waits for room. None once the channel has ended.
    pub(super) async fn room(&self) -> Option<LineRoom<'_>> {
        self.0.reserve().await.ok().map(LineRoom)
    }
}

impl LineRoom<'_> {
    pub(super) fn send(self, line: Vec<u8>) {
        self.0.send(line);
    }
}

/// Writes lines and cancellations until the channel closes, and then closes the input of the server there.
pub(super) async fn write(
    mut pipe: pipe::Sender,
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut cancellations: mpsc::UnboundedReceiver<u64>,
    pending: Arc<PendingCalls>,
    closing: CancellationToken,
    closes_session: bool,
) {
    loop {
        let line = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            // Before the calls, which a server there that is busy may take long to read.
            Some(id) = cancellations.recv() => cancelled(id),
            Some(line) = lines.recv() => line,
            else => break,
        };
        let written = tokio::select! {
            written = pipe.write_all(&line) => written,
            // Half a line may have been written, so that no other can follow.
            () = closing.cancelled() => return,
        };
        if let Err(error) = written {
            // The reader sees the end too, and what came before it.
            tracing::debug!(%error, "the server there does not read any more");
            pending.end("the server there does not read any more");
            closing.cancel();
            return;
        }
    }
    if closes_session && pending.is_closed_here() {
        let line = [CLOSE_LINE, b"\n"].concat();
        // A server there that does not read ends for the end of its input, a while later.
        let _ = tokio::time::timeout(CLOSE_TIME, pipe.write_all(&line)).await;
    }
}

fn cancelled(id: u64) -> Vec<u8> {
    let params = [
        ("requestId", Json::Number(Cow::Owned(id.to_string()))),
        ("reason", Json::string("cancelled by the caller")),
    ];
    Message::notification("notifications/cancelled", params.into_iter().collect()).to_line()
}
