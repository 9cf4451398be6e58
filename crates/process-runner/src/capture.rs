//! The head and the tail of a stream, within a fixed memory, and what is known about the rest.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use crate::secrets::{Redactor, Secrets};
use crate::spill::{Spill, SpillWriter};
use crate::text;

/// How much of a stream is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureLimits {
    /// The most bytes of a stream kept in memory: a quarter from its start and the rest from its end,
    /// where a failing program says why. 256 KiB by default. Memory is taken as output comes.
    pub max_bytes: usize,
    /// Where a longer stream is written in full. Nowhere by default.
    pub spill: Option<Spill>,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self { max_bytes: 256 * 1024, spill: None }
    }
}

impl CaptureLimits {
    /// Keeps at most this many bytes of a stream, and spills nothing.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, spill: None }
    }

    /// Writes a stream that is longer than that to a file, from its first byte.
    #[must_use]
    pub fn spill(mut self, spill: Spill) -> Self {
        self.spill = Some(spill);
        self
    }
}

/// A part of a stream, for a reader that comes back for more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What was asked for, as far as it is still kept. Never ends within a UTF-8 character, unless the
    /// stream itself does.
    pub bytes: Vec<u8>,
    /// The position to ask for next: that of the first byte after `bytes`.
    pub next_cursor: u64,
    /// Bytes between the position asked for and `bytes` that are not kept any more.
    pub lost_bytes: u64,
}

/// Takes one stream in, as it comes, within a fixed memory.
///
/// Positions ("cursors") count the bytes of the stream from 0, after secrets were hidden.
#[derive(Debug)]
pub struct Capture {
    redactor: Redactor,
    kept: Kept,
    newlines: u64,
    ends_in_newline: bool,
    spill: Spilling,
}

#[derive(Debug)]
enum Spilling {
    Never,
    Later(Spill),
    Now(SpillWriter),
    Failed(String),
}

impl Capture {
    /// An empty capture. `secrets` are hidden before anything is kept, spilled or observed.
    pub fn new(limits: &CaptureLimits, secrets: &Secrets) -> Self {
        Self {
            redactor: secrets.redactor(),
            kept: Kept::new(limits.max_bytes),
            newlines: 0,
            ends_in_newline: true,
            spill: limits.spill.clone().map_or(Spilling::Never, Spilling::Later),
        }
    }

    /// Takes the next chunk of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        self.push_and(chunk, |_| {});
    }

    /// Takes the next chunk and shows `observe` what of the stream is now known to hold no secret: the
    /// same bytes, in the same order, as are kept. Feed a [`LineSplitter`](crate::LineSplitter) from it.
    pub fn push_and(&mut self, chunk: &[u8], mut observe: impl FnMut(&[u8])) {
        let Self { redactor, kept, newlines, ends_in_newline, spill } = self;
        redactor.push(chunk, |bytes| {
            take(kept, newlines, ends_in_newline, spill, bytes);
            observe(bytes);
        });
    }

    /// Ends the stream: shows `observe` what was held back because it could have been the start of a
    /// secret. [`Capture::finish`] does it too, without an observer.
    pub fn flush(&mut self, mut observe: impl FnMut(&[u8])) {
        let Self { redactor, kept, newlines, ends_in_newline, spill } = self;
        redactor.finish(|bytes| {
            take(kept, newlines, ends_in_newline, spill, bytes);
            observe(bytes);
        });
    }

    /// Bytes taken so far, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.kept.total
    }

    /// The spill file is behind: push no more until [`Capture::drained`] resolves. The program is then
    /// held back by its full pipe, as if its output went to that disk directly.
    pub fn backlogged(&self) -> bool {
        matches!(&self.spill, Spilling::Now(writer) if writer.backlogged())
    }

    /// Resolves when the spill file has caught up, or cannot be written any more. At once without one.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let drained = match &self.spill {
            Spilling::Now(writer) => Some(writer.drained()),
            _ => None,
        };
        async move {
            if let Some(drained) = drained {
                drained.await;
            }
        }
    }

    /// At most `max` bytes (but room for one character) from position `cursor` on.
    ///
    /// A cursor past the end gives nothing. One that points to bytes that are not kept any more is moved
    /// to the first that are, and `lost_bytes` counts the ones between.
    pub fn snapshot(&self, cursor: u64, max: usize) -> Snapshot {
        self.kept.snapshot(cursor, max, false)
    }

    /// Ends the capture. `complete` says that the end of the stream was seen.
    pub fn finish(mut self, complete: bool) -> Captured {
        self.flush(|_| {});
        let (spill, spill_error) = match self.spill {
            Spilling::Never | Spilling::Later(_) => (None, None),
            Spilling::Now(writer) => {
                let (path, error) = writer.finish();
                (Some(path), error)
            }
            Spilling::Failed(error) => (None, Some(error)),
        };
        let total_bytes = self.kept.total;
        let total_lines = self.newlines + u64::from(!self.ends_in_newline);
        let (bytes, head_length) = self.kept.into_linear();
        let omitted_bytes = total_bytes - bytes.len() as u64;
        let omitted_lines = match omitted_bytes {
            0 => 0,
            _ => self.newlines - memchr::memchr_iter(b'\n', &bytes).count() as u64,
        };
        let mut captured = Captured {
            binary: memchr::memchr(0, &bytes).is_some(),
            bytes,
            head_length,
            total_bytes,
            total_lines,
            omitted_bytes,
            omitted_lines,
            complete,
            lossy: 0,
            spill,
            spill_error,
        };
        let (head, tail) = captured.whole_characters();
        captured.lossy = text::lossy(head).1 + text::lossy(tail).1;
        captured
    }
}

/// A closure cannot borrow the redactor and the rest of the capture at once; a function of the parts can.
fn take(kept: &mut Kept, newlines: &mut u64, ends_in_newline: &mut bool, spill: &mut Spilling, bytes: &[u8]) {
    let Some(last) = bytes.last() else { return };
    *ends_in_newline = *last == b'\n';
    *newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
    if let Spilling::Later(settings) = spill
        && kept.total + bytes.len() as u64 > kept.cap as u64
    {
        *spill = match SpillWriter::create(settings) {
            // Nothing has been left out yet, so what is kept is the stream from its first byte.
            Ok(mut writer) => {
                writer.write(&kept.buffer);
                Spilling::Now(writer)
            }
            Err(error) => Spilling::Failed(format!("no file in {}: {error}", settings.dir.display())),
        };
    }
    if let Spilling::Now(writer) = spill {
        writer.write(bytes);
    }
    kept.push(bytes);
}

/// The first and the last bytes of a stream in one buffer: `head_cap` bytes that never change, then a ring.
#[derive(Debug)]
struct Kept {
    buffer: Vec<u8>,
    cap: usize,
    head_cap: usize,
    /// Where in the ring the oldest byte stands, counted from `head_cap`. 0 until the buffer is full.
    oldest: usize,
    total: u64,
}

impl Kept {
    fn new(cap: usize) -> Self {
        Self { buffer: Vec::new(), cap, head_cap: cap / 4, oldest: 0, total: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (fits, mut rest) = bytes.split_at(bytes.len().min(self.cap - self.buffer.len()));
        if !fits.is_empty() {
            self.grow_for(fits.len());
            self.buffer.extend_from_slice(fits);
        }
        if rest.is_empty() {
            return;
        }
        // Something did not fit, so the buffer is at its cap and the ring behind the head is full.
        let ring = &mut self.buffer[self.head_cap..];
        if ring.is_empty() {
            return;
        }
        if rest.len() >= ring.len() {
            rest = &rest[rest.len() - ring.len()..];
            ring.copy_from_slice(rest);
            self.oldest = 0;
            return;
        }
        let (to_end, wrapped) = rest.split_at(rest.len().min(ring.len() - self.oldest));
        ring[self.oldest..self.oldest + to_end.len()].copy_from_slice(to_end);
        ring[..wrapped.len()].copy_from_slice(wrapped);
        self.oldest = (self.oldest + rest.len()) % ring.len();
    }

    /// Doubles the buffer when it must grow, but never past the cap.
    fn grow_for(&mut self, more: usize) {
        let needed = self.buffer.len() + more;
        if needed > self.buffer.capacity() {
            let capacity = needed.max(self.buffer.capacity().saturating_mul(2)).min(self.cap);
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
    }

    /// The kept bytes in the order of the stream, in place, and how many of them are the head. All of them
    /// if nothing was left out.
    fn into_linear(mut self) -> (Vec<u8>, usize) {
        if self.total == self.buffer.len() as u64 {
            let length = self.buffer.len();
            return (self.buffer, length);
        }
        self.buffer[self.head_cap..].rotate_left(self.oldest);
        (self.buffer, self.head_cap)
    }

    fn snapshot(&self, cursor: u64, max: usize, ended: bool) -> Snapshot {
        let left_out = self.total - self.buffer.len() as u64;
        let (head, newest, oldest) = if left_out == 0 {
            (&self.buffer[..], &[][..], &[][..])
        } else {
            let (head, ring) = self.buffer.split_at(self.head_cap);
            let (newest, oldest) = ring.split_at(self.oldest);
            (head, newest, oldest)
        };
        snapshot([head, oldest, newest], left_out, cursor, max, ended)
    }
}

/// Reads from `head`, then (after `left_out` bytes) from the two following pieces.
fn snapshot(pieces: [&[u8]; 3], left_out: u64, cursor: u64, max: usize, ended: bool) -> Snapshot {
    let [head, middle, end] = pieces;
    let head_end = head.len() as u64;
    let tail_start = head_end + left_out;
    let total = tail_start + (middle.len() + end.len()) as u64;
    let cursor = cursor.min(total);
    // An empty read at the edge of the head would never get further: the tail is next.
    let in_head = cursor < head_end;
    let mut start = if in_head || left_out == 0 { cursor } else { cursor.max(tail_start) };
    let max = max.max(4);
    let mut bytes = Vec::new();
    let mut position = start;
    let mut read = |piece: &[u8], piece_start: u64| {
        // Pieces are contiguous, apart from the gap, over which `position` does not reach.
        if position < piece_start || position > piece_start + piece.len() as u64 {
            return;
        }
        let offset = usize::try_from(position - piece_start).unwrap_or(piece.len());
        let length = (piece.len() - offset).min(max - bytes.len());
        bytes.extend_from_slice(&piece[offset..offset + length]);
        position += length as u64;
    };
    read(head, 0);
    read(middle, tail_start);
    read(end, tail_start + middle.len() as u64);
    if start > cursor {
        // After a gap the rest of a character that began in it is lost too.
        let orphans = text::orphaned_prefix(&bytes);
        bytes.drain(..orphans);
        start += orphans as u64;
    }
    // A character that goes on after this part is left for the next, unless nothing more can come there.
    let at_edge = left_out > 0 && position == head_end || ended && position == total;
    if !at_edge {
        let cut = text::unfinished_suffix(&bytes);
        bytes.truncate(bytes.len() - cut);
        position -= cut as u64;
    }
    Snapshot { bytes, next_cursor: position, lost_bytes: start - cursor }
}

/// One stream of a finished run: its head, its tail, and what is known about the rest.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Captured {
    /// What was kept: a string, or `{"base64": "..."}` if it is not UTF-8.
    #[cfg_attr(feature = "serde", serde(with = "crate::capture::json"))]
    #[cfg_attr(feature = "schemars", schemars(with = "json::Bytes<'_>"))]
    bytes: Vec<u8>,
    /// How much of `bytes` comes from the start of the stream; the rest comes from its end.
    head_length: usize,
    /// Bytes of the stream, with secrets hidden.
    pub total_bytes: u64,
    /// Lines of the stream; a last line without a line end counts.
    pub total_lines: u64,
    /// Bytes between the head and the tail that were not kept.
    pub omitted_bytes: u64,
    /// Line ends among those.
    pub omitted_lines: u64,
    /// The stream ended by itself. False if something still held it when its time was up, whether or not
    /// that was killed then.
    pub complete: bool,
    /// Sequences of the kept bytes that are not UTF-8, which [`Captured::text`] shows as U+FFFD.
    pub lossy: u64,
    /// There is a NUL among the kept bytes: this is hardly text.
    pub binary: bool,
    /// The file that holds the whole stream, or as much as its limit allowed. Made only for a stream that
    /// was not kept whole, and the caller's to remove.
    pub spill: Option<PathBuf>,
    /// Why there is no such file, or not all of it.
    pub spill_error: Option<String>,
}

/// Shows the text, and the figures that a short whole stream does not have.
impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Captured");
        shown.field("text", &self.text()).field("complete", &self.complete);
        if self.truncated() {
            shown.field("total_bytes", &self.total_bytes).field("omitted_bytes", &self.omitted_bytes);
        }
        if self.lossy > 0 || self.binary {
            shown.field("lossy", &self.lossy).field("binary", &self.binary);
        }
        if let Some(error) = &self.spill_error {
            shown.field("spill_error", error);
        }
        shown.finish_non_exhaustive()
    }
}

impl Captured {
    /// The kept bytes: head and tail, with nothing between them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The kept bytes, taken out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes from the start of the stream; all of them if nothing was left out.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head_length.min(self.bytes.len())]
    }

    /// The bytes from the end of the stream that are not in the head.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.head_length.min(self.bytes.len())..]
    }

    /// Something was left out.
    pub fn truncated(&self) -> bool {
        self.omitted_bytes > 0
    }

    /// The stream was empty.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }

    /// The kept text. What is not UTF-8 is shown as U+FFFD. If something was left out, a line such as
    /// `[... 4137 lines, 1.2 MB left out ...]` stands in its place; no character is cut in two there.
    pub fn text(&self) -> Cow<'_, str> {
        if !self.truncated() {
            return text::lossy(&self.bytes).0;
        }
        let (head, tail) = self.whole_characters();
        let mut text = String::with_capacity(self.bytes.len() + 128);
        text.push_str(&text::lossy(head).0);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.seam());
        text.push('\n');
        text.push_str(&text::lossy(tail).0);
        Cow::Owned(text)
    }

    /// The text as it would stand on a screen: without colours and other control sequences, carriage
    /// returns and backspaces applied, so that of a progress bar the last state is left.
    pub fn clean(&self) -> Cow<'_, str> {
        match self.text() {
            Cow::Borrowed(text) => text::clean(text),
            Cow::Owned(text) => Cow::Owned(text::clean(&text).into_owned()),
        }
    }

    /// At most `max` bytes (but room for one character) from position `cursor` on; as
    /// [`Capture::snapshot`] does while the program runs.
    pub fn snapshot(&self, cursor: u64, max: usize) -> Snapshot {
        snapshot([self.head(), self.tail(), &[]], self.omitted_bytes, cursor, max, true)
    }

    /// Head and tail without the characters that the cut between them went through.
    fn whole_characters(&self) -> (&[u8], &[u8]) {
        let (head, tail) = (self.head(), self.tail());
        if !self.truncated() {
            return (head, tail);
        }
        (&head[..head.len() - text::unfinished_suffix(head)], &tail[text::orphaned_prefix(tail)..])
    }

    fn seam(&self) -> String {
        let (head, tail) = self.whole_characters();
        let bytes = text::human_bytes(self.total_bytes - (head.len() + tail.len()) as u64);
        let lines = match self.omitted_lines {
            0 => String::new(),
            1 => "1 line, ".to_owned(),
            lines => format!("{lines} lines, "),
        };
        match &self.spill {
            Some(path) => format!("[... {lines}{bytes} left out; full output: {} ...]", path.display()),
            None => format!("[... {lines}{bytes} left out ...]"),
        }
    }
}

/// Bytes in JSON: as a string if they are one, else in base64. Exact both ways.
#[cfg(feature = "serde")]
mod json {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::borrow::Cow;

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    #[serde(untagged)]
    pub(super) enum Bytes<'b> {
        Text(Cow<'b, str>),
        Base64 { base64: String },
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(Cow::Borrowed(text)),
            Err(_) => Bytes::Base64 { base64: STANDARD.encode(bytes) },
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        match Bytes::deserialize(deserializer)? {
            Bytes::Text(text) => Ok(text.into_owned().into_bytes()),
            Bytes::Base64 { base64 } => STANDARD.decode(base64).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capture(max_bytes: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(&CaptureLimits::new(max_bytes), &Secrets::default());
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish(true)
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let captured = capture(100, &[b"one\n", b"two"]);
        assert_eq!(captured.text(), "one\ntwo");
        assert!(matches!(captured.text(), Cow::Borrowed(_)));
        assert_eq!((captured.head(), captured.tail()), (&b"one\ntwo"[..], &b""[..]));
        assert_eq!((captured.total_bytes, captured.total_lines), (7, 2));
        assert_eq!((captured.omitted_bytes, captured.omitted_lines, captured.truncated()), (0, 0, false));
        assert!(captured.complete && !captured.binary && captured.lossy == 0);
    }

    #[test]
    fn an_empty_stream_has_no_lines() {
        let captured = capture(100, &[]);
        assert_eq!((captured.total_bytes, captured.total_lines, &*captured.text()), (0, 0, ""));
        assert!(captured.is_empty());
    }

    #[test]
    fn of_a_long_stream_a_quarter_is_head_and_the_rest_is_tail() {
        let lines: String = (0..1000).map(|n| format!("{n:03}\n")).collect();
        let captured = capture(400, &[lines.as_bytes()]);
        assert_eq!(captured.head(), &lines.as_bytes()[..100]);
        assert_eq!(captured.tail(), &lines.as_bytes()[4000 - 300..]);
        assert_eq!((captured.total_bytes, captured.total_lines), (4000, 1000));
        assert_eq!((captured.omitted_bytes, captured.omitted_lines), (3600, 900));
        let text = captured.text();
        assert!(text.contains("\n024\n[... 900 lines, 3.6 kB left out ...]\n925\n"), "{text}");
    }

    #[test]
    fn the_default_keeps_256_kib() {
        let captured = {
            let mut capture = Capture::new(&CaptureLimits::default(), &Secrets::default());
            capture.push(&[b'x'; 1_000_000]);
            capture.finish(true)
        };
        assert_eq!((captured.head().len(), captured.tail().len()), (64 * 1024, 192 * 1024));
    }

    #[test]
    fn a_seam_within_one_line_names_no_lines_and_one_within_two_names_one() {
        let text = capture(8, &[b"aaaaaaaaaaaaaaaaaaaa"]).text().into_owned();
        assert_eq!(text, "aa\n[... 12 B left out ...]\naaaaaa");
        let text = capture(8, &[b"aaaaaaa\naaaaaaaaaaaa"]).text().into_owned();
        assert_eq!(text, "aa\n[... 1 line, 12 B left out ...]\naaaaaa");
    }

    #[test]
    fn memory_grows_with_the_stream_and_never_past_the_limit() {
        let mut capture = Capture::new(&CaptureLimits::new(100_000), &Secrets::default());
        assert_eq!(capture.kept.buffer.capacity(), 0);
        capture.push(&[b'x'; 1000]);
        assert!(capture.kept.buffer.capacity() <= 2000);
        for _ in 0..1000 {
            capture.push(&[b'x'; 777]);
            assert!(capture.kept.buffer.capacity() <= 100_000);
        }
        assert!(capture.finish(true).bytes.capacity() <= 100_000);
    }

    #[test]
    fn a_limit_of_nothing_counts_all_the_same() {
        let captured = capture(0, &[b"a\nb\n", b"c"]);
        assert_eq!((captured.total_bytes, captured.total_lines, captured.omitted_bytes), (5, 3, 5));
        assert_eq!(captured.text(), "[... 2 lines, 5 B left out ...]\n");
    }

    #[test]
    fn bytes_that_are_not_text_are_kept_exactly_counted_and_shown_as_replacements() {
        let captured = capture(100, &[b"a\xFF\xFEb\0\xE2\x82"]);
        assert_eq!(captured.bytes(), b"a\xFF\xFEb\0\xE2\x82");
        assert_eq!(captured.text(), "a\u{fffd}\u{fffd}b\0\u{fffd}");
        assert_eq!((captured.lossy, captured.binary), (3, true));
    }

    #[test]
    fn a_character_over_a_chunk_edge_or_over_the_seam_is_never_split() {
        assert_eq!(capture(100, &[b"a\xF0\x9F", b"\x98\x80b"]).text(), "a😀b");
        for limit in 8..24 {
            let captured = capture(limit, &["😀".repeat(50).as_bytes()]);
            assert_eq!(captured.lossy, 0);
            assert!(!captured.text().contains('\u{fffd}'), "{limit}: {}", captured.text());
        }
    }

    #[test]
    fn clean_text_of_a_build_log_is_its_last_state() {
        let captured = capture(100, &[b"\x1b[32mok\x1b[0m\r\n 5%\r50%\r100%\n"]);
        assert_eq!(captured.clean(), "ok\n100%\n");
        assert_eq!(captured.total_bytes, 26);
    }

    #[test]
    fn a_reader_with_a_cursor_gets_everything_once() {
        let mut capture = Capture::new(&CaptureLimits::new(1000), &Secrets::default());
        let (mut cursor, mut read) = (0, Vec::new());
        for n in 0..50 {
            capture.push(format!("line {n}\n").as_bytes());
            let part = capture.snapshot(cursor, 1000);
            assert_eq!(part.lost_bytes, 0);
            read.extend(part.bytes);
            cursor = part.next_cursor;
        }
        let captured = capture.finish(true);
        assert_eq!(read, captured.bytes());
        assert_eq!(captured.snapshot(cursor, 10), Snapshot { next_cursor: cursor, ..Snapshot::default() });
    }

    #[test]
    fn a_late_reader_gets_the_head_then_the_tail_and_the_number_lost_between() {
        let mut capture = Capture::new(&CaptureLimits::new(8), &Secrets::default());
        capture.push(b"0123456789abcdefghij");
        let first = capture.snapshot(0, 100);
        assert_eq!((&first.bytes[..], first.next_cursor, first.lost_bytes), (&b"01"[..], 2, 0));
        let second = capture.snapshot(first.next_cursor, 4);
        assert_eq!((&second.bytes[..], second.next_cursor, second.lost_bytes), (&b"efgh"[..], 18, 12));
        let third = capture.finish(true).snapshot(second.next_cursor, 100);
        assert_eq!((&third.bytes[..], third.next_cursor, third.lost_bytes), (&b"ij"[..], 20, 0));
    }

    #[test]
    fn a_cursor_past_the_end_gives_nothing_and_comes_back_to_it() {
        let captured = capture(100, &[b"abc"]);
        assert_eq!(captured.snapshot(99, 10), Snapshot { next_cursor: 3, ..Snapshot::default() });
    }

    #[test]
    fn a_snapshot_waits_for_the_rest_of_a_character_unless_the_stream_has_ended() {
        let mut capture = Capture::new(&CaptureLimits::new(100), &Secrets::default());
        capture.push(b"ab\xE2\x82");
        assert_eq!(capture.snapshot(0, 100).bytes, b"ab");
        let mut whole = Capture::new(&CaptureLimits::new(100), &Secrets::default());
        whole.push(b"ab\xE2\x82");
        assert_eq!(whole.finish(true).snapshot(2, 100).bytes, b"\xE2\x82");
        capture.push(b"\xAC!");
        assert_eq!(capture.snapshot(2, 0).bytes, "€!".as_bytes());
    }

    #[test]
    fn secrets_are_hidden_before_anything_is_kept_or_observed() {
        let secret = "0123456789abcdef0123456789abcdefABCDEFGH";
        for at in 0..40 {
            for limit in [20, 30, 60, 1000] {
                let mut capture = Capture::new(&CaptureLimits::new(limit), &Secrets::new([secret]));
                let mut observed = Vec::new();
                for chunk in ["--------", &secret[..at], &secret[at..], "--------------------", &secret[..at]]
                {
                    capture.push_and(chunk.as_bytes(), |bytes| observed.extend_from_slice(bytes));
                }
                capture.flush(|bytes| observed.extend_from_slice(bytes));
                let captured = capture.finish(true);
                assert_eq!(captured.total_bytes, observed.len() as u64);
                for shown in [&observed, &captured.bytes().to_vec(), &format!("{captured:?}").into_bytes()] {
                    let seen =
                        secret.as_bytes().windows(8).any(|part| memchr::memmem::find(shown, part).is_some());
                    assert!(!seen, "split at {at}, {limit} kept: {}", String::from_utf8_lossy(shown));
                }
            }
        }
    }

    #[test]
    fn a_stream_longer_than_memory_keeps_is_spilled_from_its_first_byte_with_secrets_hidden() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let limits = CaptureLimits::new(100).spill(Spill::new(dir.path()));
        let mut capture = Capture::new(&limits, &Secrets::new(["hunter2-hunter2"]));
        let mut expected = String::new();
        for n in 0..100 {
            capture.push(format!("{n} hunter2-").as_bytes());
            capture.push(b"hunter2\n");
            expected += &format!("{n} [hidden]\n");
        }
        let captured = capture.finish(true);
        let path = captured.spill.clone().expect("a file");
        assert_eq!(captured.spill_error, None);
        #[allow(clippy::disallowed_methods, reason = "the test looks at the file")]
        let written = std::fs::read_to_string(&path).expect("reads");
        assert_eq!(written, expected);
        assert!(captured.text().contains(&format!("left out; full output: {} ...]", path.display())));
    }

    #[test]
    fn a_stream_that_memory_keeps_whole_makes_no_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let limits = CaptureLimits::new(100).spill(Spill::new(dir.path()));
        let mut capture = Capture::new(&limits, &Secrets::default());
        capture.push(&[b'x'; 100]);
        assert_eq!(capture.finish(true).spill, None);
        #[allow(clippy::disallowed_methods, reason = "the test looks at the folder")]
        let files = dir.path().read_dir().expect("reads").count();
        assert_eq!(files, 0);
    }

    #[test]
    fn a_spill_that_fails_leaves_the_capture_whole_and_says_why() {
        let limits = CaptureLimits::new(8).spill(Spill::new("/nonexistent/folder"));
        let mut capture = Capture::new(&limits, &Secrets::default());
        capture.push(b"0123456789abcdefghij");
        let captured = capture.finish(true);
        assert_eq!((captured.head(), captured.tail()), (&b"01"[..], &b"efghij"[..]));
        let error = captured.spill_error.expect("says why");
        assert!(error.starts_with("no file in /nonexistent/folder: "), "{error}");
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_and_back_is_exact_for_text_and_for_any_bytes() {
        for chunks in [&[&b"text \xc3\xa9"[..]][..], &[b"\xFF\0\xFE"], &[b"0123456789", b"abcdefghij"], &[]] {
            let captured = capture(8, chunks);
            let json = serde_json::to_string(&captured).expect("serializes");
            assert_eq!(serde_json::from_str::<Captured>(&json).expect("deserializes"), captured, "{json}");
        }
        let json = serde_json::to_value(capture(100, &[b"text"])).expect("serializes");
        assert_eq!(json["bytes"], "text");
        let json = serde_json::to_value(capture(100, &[b"\xFF"])).expect("serializes");
        assert_eq!(json["bytes"]["base64"], "/w==");
    }

    proptest! {
        #[test]
        fn head_tail_counts_and_snapshots_follow_from_the_whole_stream(
            limit in 0..40_usize,
            chunks in prop::collection::vec("[a\n]{0,30}", 0..8),
            cursor in 0..200_u64,
            max in 4..50_usize,
        ) {
            let mut capture = Capture::new(&CaptureLimits::new(limit), &Secrets::default());
            for chunk in &chunks {
                capture.push(chunk.as_bytes());
            }
            let whole = chunks.concat().into_bytes();
            let live = capture.snapshot(cursor, max);
            let captured = capture.finish(true);
            prop_assert_eq!(&live, &captured.snapshot(cursor, max));

            let (head, tail) = match whole.len() > limit {
                true => (&whole[..limit / 4], &whole[whole.len() - (limit - limit / 4)..]),
                false => (&whole[..], &[][..]),
            };
            prop_assert_eq!(captured.head(), head);
            prop_assert_eq!(captured.tail(), tail);
            prop_assert_eq!(captured.total_bytes, whole.len() as u64);
            prop_assert_eq!(captured.total_lines, String::from_utf8_lossy(&whole).lines().count() as u64);
            prop_assert_eq!(captured.omitted_bytes, (whole.len() - head.len() - tail.len()) as u64);
            let omitted = &whole[head.len()..whole.len() - tail.len()];
            prop_assert_eq!(captured.omitted_lines, omitted.iter().filter(|byte| **byte == b'\n').count() as u64);

            // What a snapshot gives stands in the stream right before its next cursor.
            let end = usize::try_from(live.next_cursor).expect("within the stream");
            prop_assert_eq!(&whole[end - live.bytes.len()..end], &live.bytes[..]);
            let asked = cursor.min(whole.len() as u64);
            prop_assert_eq!(asked + live.lost_bytes + live.bytes.len() as u64, live.next_cursor);
            prop_assert!(live.bytes.len() <= max);
            prop_assert!(!live.bytes.is_empty() || live.next_cursor == whole.len() as u64);
        }
    }
}
