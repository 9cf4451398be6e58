//! The lines that go there.

use super::pending::PendingCalls;
use crate::opening::CLOSE_LINE;
use json_rpc::json::Json;
use json_rpc::message::Message;
use process_runner::CancellationToken;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// The lines that may wait, so that a server there that does not read holds callers up and no memory.
pub(super) const MAX_LINES: usize = 64;

/// The time that the server there has to read that its session ends.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// A call's line, and the id of the call.
type CallLine = (u64, Vec<u8>);

/// The queue of lines.
#[derive(Debug)]
pub(super) struct Lines(mpsc::Sender<CallLine>);

/// Room for one line.
pub(super) struct LineRoom<'a>(mpsc::Permit<'a, CallLine>);

impl Lines {
    pub(super) fn new() -> (Self, mpsc::Receiver<CallLine>) {
        let (sender, receiver) = mpsc::channel(MAX_LINES);
        (Self(sender), receiver)
    }

    /// Waits for room. None once the channel has ended.
    pub(super) async fn room(&self) -> Option<LineRoom<'_>> {
        self.0.reserve().await.ok().map(LineRoom)
    }
}

impl LineRoom<'_> {
    pub(super) fn send(self, id: u64, line: Vec<u8>) {
        self.0.send((id, line));
    }
}

/// Writes lines and cancellations until the channel closes, and then closes the input of the server there.
pub(super) async fn write(
    mut pipe: pipe::Sender,
    mut lines: mpsc::Receiver<CallLine>,
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
            Some((id, line)) = lines.recv() => match pending.note_sent(id) {
                true => line,
                // Cancelled while it waited: nobody wants it to run any more.
                false => continue,
            },
            else => break,
        };
        // A pipe that nobody reads blocks a write, and must not keep the channel from closing.
        let written = tokio::select! {
            written = write_line(&mut pipe, &line, &pending) => written,
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

/// Writes a line. Each part that is taken is a sign of life: the server there can give none before it has the whole line,
/// and a long line over a slow connection takes minutes.
async fn write_line(pipe: &mut pipe::Sender, line: &[u8], pending: &PendingCalls) -> io::Result<()> {
    let mut rest = line;
    while !rest.is_empty() {
        let written = pipe.write(rest).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        pending.note_sign();
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

fn cancelled(id: u64) -> Vec<u8> {
    let params = [
        ("requestId", Json::Number(Cow::Owned(id.to_string()))),
        ("reason", Json::string("cancelled by the caller")),
    ];
    Message::notification("notifications/cancelled", params.into_iter().collect()).to_line()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::pending::Silence;
    use std::time::Instant;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

    /// Returns the lines that are written of two calls, the first of which is cancelled in the queue, or once it was sent.
    async fn written(is_cancelled_in_queue: bool) -> Vec<String> {
        let (pipe, other_end) = pipe::pipe().unwrap();
        let mut read = BufReader::new(other_end).lines();
        let pending = Arc::new(PendingCalls::new(tokio::sync::watch::Sender::default()));
        let (lines, queued) = Lines::new();
        let (cancellations, cancelled) = mpsc::unbounded_channel();
        let start = || pending.start(Arc::new(|_: &str| {}), cancellations.clone()).unwrap().0;
        let (first, second) = (start(), start());
        for call in [&first, &second] {
            lines.room().await.unwrap().send(call.id(), format!("call {}\n", call.id()).into_bytes());
        }
        let first = Some(first).filter(|_| !is_cancelled_in_queue);
        let closing = CancellationToken::new();
        let writing =
            tokio::spawn(write(pipe, queued, cancelled, Arc::clone(&pending), closing.clone(), false));
        let mut found = vec![read.next_line().await.unwrap().unwrap()];
        if let Some(first) = first {
            drop(first);
            for _ in 0..2 {
                found.push(read.next_line().await.unwrap().unwrap());
            }
        }
        closing.cancel();
        writing.await.unwrap();
        while let Some(line) = read.next_line().await.unwrap() {
            found.push(line);
        }
        second.finish();
        found
    }

    #[tokio::test]
    async fn a_call_that_is_cancelled_in_the_queue_is_never_sent() {
        assert_eq!(written(true).await, ["call 2"]);
    }

    #[tokio::test]
    async fn a_call_that_was_sent_is_cancelled_there() {
        let lines = written(false).await;
        assert_eq!((lines.len(), &*lines[0]), (3, "call 1"));
        assert!(lines.iter().any(|line| line.contains("notifications/cancelled")), "{lines:?}");
    }

    #[tokio::test]
    async fn a_line_that_is_taken_slowly_is_a_sign_of_life() {
        let (mut pipe, mut other_end) = pipe::pipe().unwrap();
        let pending = Arc::new(PendingCalls::new(tokio::sync::watch::Sender::default()));
        let (cancellations, _cancelled) = mpsc::unbounded_channel();
        let (_call, _answer) = pending.start(Arc::new(|_: &str| {}), cancellations).unwrap();
        let line = vec![b'x'; 1 << 20];
        let writing = write_line(&mut pipe, &line, &pending);
        let reading = async {
            let mut part = vec![0; 1 << 19];
            other_end.read_exact(&mut part).await.unwrap();
            let half = Instant::now();
            other_end.read_exact(&mut part).await.unwrap();
            half
        };
        let (written, half) = tokio::join!(writing, reading);
        written.unwrap();
        assert!(matches!(pending.silence(), Silence::Waiting { since } if since >= half));
    }
}
