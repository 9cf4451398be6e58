//! Lines off a stream, in bounded memory, and the id of a line that was too long to keep.

use tokio::io::{AsyncRead, AsyncReadExt};

/// One step of reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line longer than the limit: its length, and the JSON text of its top-level `id`, where it has one.
    TooLong { bytes: u64, id: Option<String> },
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
    skipping: Option<(u64, IdScanner)>,
    ended: bool,
}

/// A full pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads `stream`, keeping at most `limit` bytes of a line.
    pub(super) fn new(stream: R, limit: usize) -> Self {
        Self { stream, limit, buffer: Vec::new(), searched: 0, skipping: None, ended: false }
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
            let rest = self.buffer.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            line.truncate(end);
            return Some(self.finish(line));
        }
        self.searched = self.buffer.len();
        if self.buffer.len() > self.limit || self.skipping.is_some() {
            let (bytes, scanner) = self.skipping.get_or_insert_with(|| (0, IdScanner::default()));
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
            None if line.len() > self.limit => (0, IdScanner::default()),
            None => return Line::Whole(line),
        };
        scanner.push(&line);
        Line::TooLong { bytes: bytes + line.len() as u64, id: scanner.id() }
    }
}

/// Finds the value of the member `id` of a JSON object while its bytes go by, in constant memory.
#[derive(Debug, Default)]
struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at depth 1 that is being read, as far as it fits.
    token: Vec<u8>,
    /// The key whose value comes next.
    key: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
}

impl IdScanner {
    /// Longer than any id that a client uses.
    const LONGEST: usize = 128;

    fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.id.is_some() {
                return;
            }
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.value_ends();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.key = Some(std::mem::take(&mut self.token)),
            b',' if self.depth == 1 => self.value_ends(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() <= Self::LONGEST {
            self.token.push(byte);
        }
    }

    fn value_ends(&mut self) {
        let value = std::mem::take(&mut self.token);
        if self.key.take().as_deref() == Some(b"\"id\"") && value.len() <= Self::LONGEST {
            self.id = Some(value);
        }
    }

    fn id(self) -> Option<String> {
        self.id.and_then(|id| String::from_utf8(id).ok())
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
        let expected = Line::TooLong { bytes: long.len() as u64, id: Some("\"a\\\"b\"".to_owned()) };
        assert_eq!(lines(text.as_bytes(), 1000).await, [expected, Line::Whole(b"next".to_vec())]);
    }

    #[tokio::test]
    async fn the_id_is_found_before_and_after_the_bulk_and_never_inside_it() {
        for (text, id) in [
            (r#"{"id": 17, "x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#, Some("17")),
            (r#"{"x": {"id": 3, "y": ["id", 4]}, "id" : 18 }"#, Some("18")),
            (r#"{"x": "\"id\": 5, \\", "y": "id"}"#, None),
            ("no json at all, and long enough to be cut off", None),
        ] {
            let found = lines(text.as_bytes(), 8).await;
            let expected = Line::TooLong { bytes: text.len() as u64, id: id.map(str::to_owned) };
            assert_eq!(found, [expected], "{text}");
        }
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
