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
}

impl LineSource {
    pub(super) fn new(pipe: pipe::Receiver) -> Self {
        Self { pipe, buffer: LineBuffer::new(MAX_MESSAGE_BYTES) }
    }

    /// Returns the next line. The future may be dropped: nothing that was read is lost.
    pub(super) async fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.buffer.find() {
                return Ok(self.buffer.line(found));
            }
            let bytes = self.pipe.read(self.buffer.space()).await?;
            self.buffer.advance(bytes);
        }
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
