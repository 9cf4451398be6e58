//! Reads lines off a stream, in bounded memory. Of a line that is too long to keep it finds the outline.

pub(super) use json_rpc::line_buffer::Line;
use json_rpc::line_buffer::LineBuffer;
use tokio::io::{AsyncRead, AsyncReadExt};

/// A reader of lines. [`Self::next`] may be dropped at any time without losing a byte.
#[derive(Debug)]
pub(super) struct MessageLineReader<R> {
    stream: R,
    lines: LineBuffer,
}

impl<R: AsyncRead + Unpin> MessageLineReader<R> {
    /// Reads `stream`, keeping at most `limit` bytes of a line.
    pub(super) fn new(stream: R, limit: usize) -> Self {
        Self { stream, lines: LineBuffer::new(limit) }
    }

    /// Returns the stream.
    pub(super) fn stream(&self) -> &R {
        &self.stream
    }

    /// Reads the next line.
    pub(super) async fn next(&mut self) -> std::io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.lines.find() {
                return Ok(self.lines.line(found));
            }
            // A read that is dropped has taken nothing from the stream.
            let bytes = self.stream.read(self.lines.space()).await?;
            self.lines.advance(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_may_come_in_pieces_and_reading_may_be_interrupted() {
        let (mut sender, receiver) = tokio::io::duplex(8);
        let mut reader = MessageLineReader::new(receiver, 100);
        let writing = tokio::spawn(async move {
            for piece in ["he", "llo", " wor", "ld\nx"] {
                tokio::io::AsyncWriteExt::write_all(&mut sender, piece.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut interrupted = 0;
        loop {
            tokio::select! {
                biased;
                line = reader.next() => {
                    assert_eq!(line.unwrap(), Line::Whole(b"hello world"));
                    break;
                }
                () = tokio::task::yield_now() => interrupted += 1,
            }
        }
        writing.await.unwrap();
        assert!(interrupted > 0);
        assert_eq!(reader.next().await.unwrap(), Line::Whole(b"x"));
    }
}
