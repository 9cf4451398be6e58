//! Lines off a stream, in bounded memory, and the outline of a line that was too long to keep.

use super::outline::{Outline, Scanner};
use tokio::io::{AsyncRead, AsyncReadExt};

/// One step of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line longer than the limit.
    TooLong { bytes: u64, outline: Outline },
    /// The stream has ended. A last line without an end has been given out before.
    End,
}

/// Reads lines. [`Self::next`] may be dropped at any time without losing a byte.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    stream: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that have been searched for a line end already.
    searched: usize,
    skipping: Option<(u64, Scanner)>,
    ended: bool,
}

/// A full pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads `stream`, keeping at most `limit` bytes of a line.
    pub(super) fn new(stream: R, limit: usize) -> Self {
        Self { stream, limit, buffer: Vec::new(), searched: 0, skipping: None, ended: false }
    }

    /// Where the lines come from.
    pub(super) fn stream(&self) -> &R {
        &self.stream
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(line);
            }
            if self.ended {
                return Ok(self.rest());
            }
            self.buffer.reserve(READ_BYTES.min(self.limit + 1));
            // `read_buf` adds to the buffer in the same step in which it takes from the stream.
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                self.ended = true;
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let end =
            self.buffer[self.searched..].iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
        if let Some(end) = end {
            self.searched = 0;
            // A short line is copied out, and the room for reading stays where it is.
            let line = if end < READ_BYTES {
                let line = self.buffer[..end].to_vec();
                self.buffer.drain(..=end);
                line
            } else {
                let rest = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.truncate(end);
                line
            };
            return Some(self.finish(line));
        }
        self.searched = self.buffer.len();
        if self.buffer.len() > self.limit || self.skipping.is_some() {
            let (bytes, scanner) = self.skipping.get_or_insert_with(|| (0, Scanner::default()));
            *bytes += self.buffer.len() as u64;
            scanner.push(&self.buffer);
            self.buffer.clear();
            self.searched = 0;
        }
        None
    }

    fn rest(&mut self) -> Line {
        self.searched = 0;
        let line = std::mem::take(&mut self.buffer);
        if line.is_empty() && self.skipping.is_none() { Line::End } else { self.finish(line) }
    }

    fn finish(&mut self, line: Vec<u8>) -> Line {
        let (bytes, mut scanner) = match self.skipping.take() {
            Some(skipped) => skipped,
            None if line.len() > self.limit => (0, Scanner::default()),
            None => return Line::Whole(line),
        };
        scanner.push(&line);
        Line::TooLong { bytes: bytes + line.len() as u64, outline: scanner.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(bytes, limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_the_last_needs_no_end() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(lines(b"a\n\nbc\nd", 10).await, [whole("a"), whole(""), whole("bc"), whole("d")]);
    }

    #[tokio::test]
    async fn a_long_line_is_counted_and_dropped_and_the_next_one_is_whole() {
        let long = format!(
            "{{\"method\":\"x\",\"params\":{{\"id\":1,\"s\":\"{}\"}},\"id\":\"a\\\"b\"}}",
            "y".repeat(300_000)
        );
        let text = format!("{long}\nnext\n");
        let mut scanner = Scanner::default();
        scanner.push(long.as_bytes());
        let expected = Line::TooLong { bytes: long.len() as u64, outline: scanner.finish() };
        assert_eq!(lines(text.as_bytes(), 1000).await, [expected, Line::Whole(b"next".to_vec())]);
    }

    #[tokio::test]
    async fn a_line_may_come_in_pieces_and_reading_may_be_interrupted() {
        let (mut sender, receiver) = tokio::io::duplex(8);
        let mut reader = LineReader::new(receiver, 100);
        let writing = tokio::spawn(async move {
            for piece in ["he", "llo", " wor", "ld\nx"] {
                tokio::io::AsyncWriteExt::write_all(&mut sender, piece.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut interrupted = 0;
        let line = loop {
            tokio::select! {
                biased;
                line = reader.next() => break line.unwrap(),
                () = tokio::task::yield_now() => interrupted += 1,
            }
        };
        writing.await.unwrap();
        assert_eq!(line, Line::Whole(b"hello world".to_vec()));
        assert!(interrupted > 0);
        assert_eq!(reader.next().await.unwrap(), Line::Whole(b"x".to_vec()));
    }
}
