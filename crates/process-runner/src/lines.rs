//! Splits a stream of chunks into lines without copying whole lines.

use std::borrow::Cow;

/// One line of a stream, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// The line, at most as long as the splitter's limit.
    pub bytes: &'a [u8],
    /// Bytes of the line past the limit, which were dropped. 0 unless the line was too long.
    pub dropped: u64,
    /// A line end followed. False only for the last line of a stream that does not end in one.
    pub terminated: bool,
}

impl<'a> Line<'a> {
    /// The line was longer than the limit.
    pub fn truncated(&self) -> bool {
        self.dropped > 0
    }

    /// The line as text, each sequence that is not UTF-8 replaced by U+FFFD. A character that the limit
    /// cut in two is left out.
    pub fn text(&self) -> Cow<'a, str> {
        let cut = if self.truncated() { crate::text::unfinished_suffix(self.bytes) } else { 0 };
        String::from_utf8_lossy(&self.bytes[..self.bytes.len() - cut])
    }
}

/// Splits a stream into lines as its chunks come.
///
/// A line ends at LF; a CR before it belongs to the line end. A line that lies within one chunk is
/// borrowed from it; only one that crosses chunks is copied. No more than the limit is ever held, and a
/// longer line comes out once, cut at the limit, with the count of what was dropped; the next is intact.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// The start of a line whose end has not come yet; at most `limit` bytes.
    partial: Vec<u8>,
    /// Length of that line so far, with what `partial` had no room for.
    partial_length: u64,
    /// Its last byte, which may be the CR of a CR LF.
    last_byte: u8,
}

impl LineSplitter {
    /// A splitter whose lines are at most `limit` bytes long.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), partial_length: 0, last_byte: 0 }
    }

    /// Takes the next chunk and calls `each` for every line that ends in it, in order.
    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..end];
            start = end + 1;
            if self.partial_length > 0 {
                self.keep(piece);
                self.emit_partial(true, &mut each);
                continue;
            }
            let line = piece.strip_suffix(b"\r").unwrap_or(piece);
            let kept = line.len().min(self.limit);
            each(Line { bytes: &line[..kept], dropped: (line.len() - kept) as u64, terminated: true });
        }
        self.keep(&chunk[start..]);
    }

    /// Ends the stream: calls `each` for a last line without a line end, if there is one.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if self.partial_length > 0 {
            self.emit_partial(false, &mut each);
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        self.last_byte = *last;
        self.partial_length += piece.len() as u64;
        let room = self.limit - self.partial.len();
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn emit_partial(&mut self, terminated: bool, each: &mut impl FnMut(Line<'_>)) {
        let carriage_return = u64::from(terminated && self.last_byte == b'\r');
        let length = self.partial_length - carriage_return;
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(self.partial.len());
        each(Line { bytes: &self.partial[..kept], dropped: length - kept as u64, terminated });
        self.partial.clear();
        self.partial_length = 0;
        // One very long line must not cost its memory for the rest of the run.
        self.partial.shrink_to(4096);
    }
}
