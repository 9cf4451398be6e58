//! Splits a stream of chunks into lines without copying whole lines.

use std::borrow::Cow;

/// One line of a stream, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLine<'a> {
    /// The line, at most as long as the splitter's limit.
    pub bytes: &'a [u8],
    /// The bytes of the line beyond the limit, which were dropped. 0 unless the line was too long.
    pub dropped: u64,
    /// True if a line end followed. False only for the last line of a stream that does not end in one.
    pub terminated: bool,
}

impl<'a> OutputLine<'a> {
    /// Returns true if the line was longer than the limit.
    pub fn truncated(&self) -> bool {
        self.dropped > 0
    }

    /// Returns the line as text, with each sequence that is not UTF-8 replaced by U+FFFD. A character that the limit
    /// cut in two is left out.
    pub fn text(&self) -> Cow<'a, str> {
        let cut = if self.truncated() { crate::lossy_text::unfinished_suffix(self.bytes) } else { 0 };
        String::from_utf8_lossy(&self.bytes[..self.bytes.len() - cut])
    }
}

/// A splitter of a stream into lines, as its chunks come.
///
/// A line ends at LF, and a CR before it belongs to the line end. A line within one chunk is borrowed from the chunk,
/// and only a line that crosses chunks is copied. The splitter never holds more bytes than its limit. A longer line is
/// given once, cut at the limit, with the number of dropped bytes. The next line is intact.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    /// The start of a line whose end has not come yet, at most `limit` bytes.
    partial: Vec<u8>,
    /// The length of that line so far, with the bytes that `partial` has no room for.
    partial_length: u64,
    /// The last byte of that line, which may be the CR of a CR LF.
    last_byte: u8,
}

impl LineSplitter {
    /// Returns a splitter whose lines are at most `limit` bytes long.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), partial_length: 0, last_byte: 0 }
    }

    /// Takes the next chunk and calls `on_line` for every line that ends in it, in order.
    pub fn push(&mut self, chunk: &[u8], mut on_line: impl FnMut(OutputLine<'_>)) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            let piece = &chunk[start..end];
            start = end + 1;
            if self.partial_length > 0 {
                self.append(piece);
                self.emit_partial(true, &mut on_line);
                continue;
            }
            // The usual case: the whole line lies in this chunk and need not be copied.
            let line = piece.strip_suffix(b"\r").unwrap_or(piece);
            let kept = line.len().min(self.limit);
            on_line(OutputLine {
                bytes: &line[..kept],
                dropped: (line.len() - kept) as u64,
                terminated: true,
            });
        }
        self.append(&chunk[start..]);
    }

    /// Ends the stream: calls `on_line` for a last line without a line end, if there is one.
    pub fn finish(&mut self, mut on_line: impl FnMut(OutputLine<'_>)) {
        if self.partial_length > 0 {
            self.emit_partial(false, &mut on_line);
        }
    }

    /// Adds a piece to the line whose end has not come yet.
    fn append(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        self.last_byte = *last;
        self.partial_length += piece.len() as u64;
        let room = self.limit - self.partial.len();
        self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Gives the line that crossed chunks, and starts the next.
    fn emit_partial(&mut self, terminated: bool, on_line: &mut impl FnMut(OutputLine<'_>)) {
        // The CR may have been beyond the limit, so it is known only by `last_byte`.
        let carriage_return = u64::from(terminated && self.last_byte == b'\r');
        let length = self.partial_length - carriage_return;
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(self.partial.len());
        on_line(OutputLine { bytes: &self.partial[..kept], dropped: length - kept as u64, terminated });
        self.partial.clear();
        self.partial_length = 0;
        // One very long line must not keep its memory for the rest of the run.
        self.partial.shrink_to(4096);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type OwnedLine = (String, u64, bool);

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<OwnedLine> {
        let mut lines = Vec::new();
        let mut on_line = |line: OutputLine<'_>| {
            let text = String::from_utf8(line.bytes.to_vec()).expect("the tests write text");
            lines.push((text, line.dropped, line.terminated));
        };
        let mut splitter = LineSplitter::new(limit);
        for chunk in chunks {
            splitter.push(chunk, &mut on_line);
        }
        splitter.finish(&mut on_line);
        lines
    }

    fn whole(text: &str) -> OwnedLine {
        (text.to_owned(), 0, true)
    }

    #[test]
    fn both_line_ends_are_removed_and_a_lone_cr_is_not() {
        assert_eq!(
            split(99, &[b"a\nb\r\n\n\r\nc\rd\r\r\n"]),
            [whole("a"), whole("b"), whole(""), whole(""), whole("c\rd\r")]
        );
    }

    #[test]
    fn a_last_line_without_an_end_comes_at_the_end() {
        assert_eq!(split(99, &[b"a\nb\r"]), [whole("a"), ("b\r".to_owned(), 0, false)]);
        assert_eq!(split(99, &[b"a\n"]), [whole("a")]);
        assert_eq!(split(99, &[b""]), []);
    }

    #[test]
    fn a_line_longer_than_the_limit_is_cut_and_counted_and_the_next_is_intact() {
        assert_eq!(split(4, &[b"abcdef\r\ngh\n"]), [("abcd".to_owned(), 2, true), whole("gh")]);
        assert_eq!(
            split(4, &[b"ab", b"cd", b"ef\r", b"\ngh\n"]),
            [("abcd".to_owned(), 2, true), whole("gh")]
        );
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_not_cut() {
        assert_eq!(split(4, &[b"abcd\r\n"]), [whole("abcd")]);
        assert_eq!(split(4, &[b"abc", b"d\r", b"\n"]), [whole("abcd")]);
    }

    #[test]
    fn a_line_that_lies_within_a_chunk_is_not_copied() {
        let chunk = b"one\ntwo\n";
        LineSplitter::new(9).push(chunk, |line| assert!(chunk.as_ptr_range().contains(&line.bytes.as_ptr())));
    }

    #[test]
    fn a_cut_character_is_left_out_of_the_text() {
        let mut texts = Vec::new();
        LineSplitter::new(4).push("abc€\nabcé\n".as_bytes(), |line| texts.push(line.text().into_owned()));
        assert_eq!(texts, ["abc", "abc"]);
    }

    #[test]
    fn an_endless_line_holds_no_more_than_the_limit() {
        let mut splitter = LineSplitter::new(1000);
        for _ in 0..1000 {
            splitter.push(&[b'x'; 4096], |_| panic!("no line has ended"));
        }
        assert!(splitter.partial.capacity() <= 2048, "{}", splitter.partial.capacity());
        let mut dropped = None;
        splitter.finish(|line| dropped = Some((line.bytes.len(), line.dropped)));
        assert_eq!(dropped, Some((1000, 4_096_000 - 1000)));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_stream_is_cut(
            text in "[ab\r\n]{0,40}", limit in 0..6_usize, cuts in prop::collection::vec(0..40_usize, 0..6)
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            // The definition, by the standard library.
            let expected: Vec<OwnedLine> = text
                .split_inclusive('\n')
                .map(|line| {
                    let terminated = line.ends_with('\n');
                    let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
                    let kept = line.len().min(limit);
                    (line[..kept].to_owned(), (line.len() - kept) as u64, terminated)
                })
                .collect();
            prop_assert_eq!(split(limit, &chunks), expected);
        }
    }
}
