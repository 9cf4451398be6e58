//! The lines that come from there.

use super::pending::PendingCalls;
use json_rpc::line_buffer::{Line, LineBuffer};
use json_rpc::message::MAX_MESSAGE_BYTES;
use process_runner::CancellationToken;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// The lines of a pipe, in bounded memory.
pub(super) struct LineSource {
    pipe: pipe::Receiver,
    buffer: LineBuffer,
    /// The bytes that were read.
    read_bytes: usize,
}

impl LineSource {
    pub(super) fn new(pipe: pipe::Receiver) -> Self {
        Self { pipe, buffer: LineBuffer::new(MAX_MESSAGE_BYTES), read_bytes: 0 }
    }

    /// Returns the next line. The future may be dropped: nothing that was read is lost.
    pub(super) async fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.buffer.find() {
                return Ok(self.buffer.line(found));
            }
            self.read_on().await?;
        }
    }

    /// Returns the next line, or None if more than `max_bytes` were read in all and there is none.
    pub(super) async fn next_within(&mut self, max_bytes: usize) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(found) = self.buffer.find() {
                return Ok(Some(self.buffer.line(found)));
            }
            if self.read_bytes > max_bytes {
                return Ok(None);
            }
            self.read_on().await?;
        }
    }

    async fn read_on(&mut self) -> io::Result<()> {
        let bytes = self.pipe.read(self.buffer.space()).await?;
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        self.buffer.advance(bytes);
        Ok(())
    }
}

/// Reads lines until the stream ends or one of them must end the channel.
pub(super) async fn read(mut lines: LineSource, pending: Arc<PendingCalls>, closing: CancellationToken) {
    let reason = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            // What the server there still says has no caller any more.
            () = closing.cancelled() => return,
        };
        match line {
            Ok(Line::Whole(line)) => {
                if let Err(fault) = pending.line(line) {
                    break Some(fault.to_string());
                }
            }
            Ok(Line::TooLong { bytes, .. }) => {
                break Some(format!("a line of {bytes} bytes is longer than a message may be"));
            }
            // The supervisor says how `connect` ended.
            Ok(Line::End) => break None,
            Err(error) => break Some(format!("its output cannot be read: {error}")),
        }
    };
    if let Some(reason) = reason {
        tracing::warn!("the channel to a remote ends: {reason}");
        pending.end(&reason);
        closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn a_greeting_without_line_ends_is_given_up_soon() {
        const MAX: usize = 128 * 1024;
        let (mut sender, receiver) = pipe::pipe().unwrap();
        let writing = tokio::spawn(async move { while sender.write_all(&[b'x'; 4096]).await.is_ok() {} });
        let mut lines = LineSource::new(receiver);
        assert!(lines.next_within(MAX).await.unwrap().is_none());
        assert!(lines.read_bytes < MAX + 256 * 1024, "{}", lines.read_bytes);
        drop(lines);
        writing.await.unwrap();
    }
}
