//! Cuts a stream into lines, in bounded memory. The reader of the stream, blocking or not, fills the buffer and takes lines
//! from it.

use crate::message_outline::{MessageOutline, OutlineScanner};
use std::ops::Range;

/// The capacity of a pipe on Linux: no read returns more.
const READ_BYTES: usize = 64 * 1024;

/// One line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line, without its end.
    Whole(&'a [u8]),
    /// A line longer than the limit, which is gone.
    TooLong {
        /// The length of the line.
        bytes: u64,
        /// The outline of the line, with the id that an answer to it needs.
        outline: MessageOutline,
    },
    /// The stream has ended. A last line without an end has been returned before.
    End,
}

/// A buffer that bytes are read into and lines are taken from.
///
/// ```
/// use json_rpc::line_buffer::{Line, LineBuffer};
///
/// let mut lines = LineBuffer::new(1000);
/// lines.space()[..6].copy_from_slice(b"one\ntw");
/// lines.advance(6);
/// assert_eq!(lines.take(), Some(Line::Whole(b"one")));
/// assert_eq!(lines.take(), None);
/// lines.advance(0);
/// assert_eq!(lines.take(), Some(Line::Whole(b"tw")));
/// assert_eq!(lines.take(), Some(Line::End));
/// ```
#[derive(Debug)]
pub struct LineBuffer {
    limit: usize,
    buffer: Vec<u8>,
    /// The start of the next line in `buffer`.
    start: usize,
    /// The end of the part after `start` that was searched and holds no line end.
    searched: usize,
    /// The number of bytes in `buffer` that were read.
    filled: usize,
    /// The bytes of a line that is too long, as far as they have been dropped, and its outline so far.
    skipping: Option<(u64, OutlineScanner)>,
    at_end: bool,
}

/// A line that was found, and is shown by [`LineBuffer::line`].
#[derive(Debug)]
pub struct FoundLine(LineBounds);

#[derive(Debug)]
enum LineBounds {
    Whole(Range<usize>),
    TooLong { bytes: u64, outline: MessageOutline },
    End,
}

impl LineBuffer {
    /// An empty buffer that keeps at most `limit` bytes of a line.
    pub fn new(limit: usize) -> Self {
        let buffer = Vec::new();
        Self { limit, buffer, start: 0, searched: 0, filled: 0, skipping: None, at_end: false }
    }

    /// Returns the next line of what was read already.
    pub fn take(&mut self) -> Option<Line<'_>> {
        let found = self.find()?;
        Some(self.line(found))
    }

    /// Finds the next line in the bytes that were read already. The method is for a caller that reads on if there is no
    /// line, and therefore cannot hold a borrow of the buffer. The caller has to show the line before looking for the
    /// next line.
    pub fn find(&mut self) -> Option<FoundLine> {
        let end = memchr::memchr(b'\n', &self.buffer[self.searched..self.filled]);
        let end = end.map(|at| self.searched + at);
        let (from, to) = (self.start, end.unwrap_or(self.filled));
        if end.is_some() || self.at_end && to > from {
            self.start = (to + 1).min(self.filled);
            self.searched = self.start;
            if self.skipping.is_some() || to - from > self.limit {
                let (bytes, mut scanner) = self.skipping.take().unwrap_or_default();
                scanner.push(&self.buffer[from..to]);
                let bytes = bytes + (to - from) as u64;
                return Some(FoundLine(LineBounds::TooLong { bytes, outline: scanner.finish() }));
            }
            return Some(FoundLine(LineBounds::Whole(from..to)));
        }
        self.searched = self.filled;
        if !self.at_end {
            return None;
        }
        Some(FoundLine(match self.skipping.take() {
            Some((bytes, scanner)) => LineBounds::TooLong { bytes, outline: scanner.finish() },
            None => LineBounds::End,
        }))
    }

    /// Returns a line that [`Self::find`] has found.
    pub fn line(&self, found: FoundLine) -> Line<'_> {
        match found.0 {
            LineBounds::Whole(place) => Line::Whole(self.buffer.get(place).unwrap_or_default()),
            LineBounds::TooLong { bytes, outline } => Line::TooLong { bytes, outline },
            LineBounds::End => Line::End,
        }
    }

    /// Returns room to read into, which is never empty. Nothing changes until [`Self::advance`] says how much was read, so
    /// a read may be given up.
    pub fn space(&mut self) -> &mut [u8] {
        let has_line = self.searched < self.filled;
        if !has_line && (self.skipping.is_some() || self.filled - self.start > self.limit) {
            let (bytes, scanner) = self.skipping.get_or_insert_default();
            *bytes += (self.filled - self.start) as u64;
            scanner.push(&self.buffer[self.start..self.filled]);
            self.start = self.filled;
        }
        if self.start == self.filled {
            (self.start, self.searched, self.filled) = (0, 0, 0);
            // One long line must not hold its memory for ever.
            self.buffer.resize(READ_BYTES, 0);
            self.buffer.shrink_to(READ_BYTES);
        } else if self.filled == self.buffer.len() {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.searched -= self.start;
            self.start = 0;
            // A line is given up as too long once it is past the limit, so more room than this is never used.
            let max_len = self.limit.saturating_add(READ_BYTES);
            if self.filled > self.buffer.len() / 2 && self.buffer.len() < max_len {
                // Fourfold, not twofold: while it is moved, the old buffer is a quarter of the new one and not half.
                let len = self.buffer.len().saturating_mul(4).min(max_len);
                self.buffer.reserve_exact(len - self.buffer.len());
                self.buffer.resize(len, 0);
            }
        }
        &mut self.buffer[self.filled..]
    }

    /// Takes note that so many bytes were read into the room; 0 is the end of the stream.
    pub fn advance(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.buffer.len());
        self.at_end = bytes == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in pieces of at most `piece` bytes.
    fn lines(text: &[u8], limit: usize, piece: usize) -> Vec<String> {
        let (mut buffer, mut rest, mut found) = (LineBuffer::new(limit), text, Vec::new());
        loop {
            let space = buffer.space();
            let bytes = rest.len().min(piece).min(space.len());
            space[..bytes].copy_from_slice(&rest[..bytes]);
            rest = &rest[bytes..];
            // Room that was not used is asked for again.
            let _ = buffer.space();
            buffer.advance(bytes);
            while let Some(line) = buffer.take() {
                match line {
                    Line::Whole(line) => found.push(String::from_utf8(line.to_vec()).unwrap()),
                    Line::TooLong { bytes, outline } => {
                        found.push(format!("{bytes} bytes: {:?}", outline.id));
                    }
                    Line::End => return found,
                }
            }
        }
    }

    #[test]
    fn lines_come_whole_in_any_pieces_and_the_last_needs_no_end() {
        let long = "x".repeat(300_000);
        let text = format!("{long}\nb\n\n{long}");
        for piece in [1_000, 65_537, 1 << 20] {
            assert_eq!(lines(b"a\n\nbc\nd", 10, piece), ["a", "", "bc", "d"]);
            assert_eq!(lines(text.as_bytes(), 300_000, piece), [&long, "b", "", &long]);
        }
        assert_eq!(lines(b"ab\nc\n", 10, 1), ["ab", "c"]);
        assert!(lines(b"", 10, 1).is_empty());
    }

    #[test]
    fn a_line_past_the_limit_is_gone_but_for_its_outline_and_the_next_is_whole() {
        for length in [1_001, 70_000, 300_000] {
            let long = format!("{{\"result\":\"{}\",\"id\":7}}", "y".repeat(length));
            let expected = format!("{} bytes: Some(Number(\"7\"))", long.len());
            for piece in [100, 1 << 20] {
                let text = format!("a\n{long}\nnext\n{long}");
                assert_eq!(lines(text.as_bytes(), 1000, piece), ["a", &expected, "next", &expected]);
            }
        }
    }

    #[test]
    fn a_long_line_does_not_keep_its_memory() {
        let mut buffer = LineBuffer::new(1 << 20);
        for _ in 0..3 {
            let bytes = buffer.space().len();
            buffer.advance(bytes);
        }
        assert!(buffer.buffer.capacity() > READ_BYTES);
        buffer.space()[0] = b'\n';
        buffer.advance(1);
        assert!(buffer.take().is_some());
        buffer.space();
        assert_eq!(buffer.buffer.capacity(), READ_BYTES);
    }
}
