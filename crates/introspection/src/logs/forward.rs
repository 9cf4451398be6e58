//! Reads entries in the order they were written: from compressed files, and from what is new in a followed one.

use super::journal;
use super::line::{LineKind, LineRole, LogEntryHead};
use super::line_classifier::LineClassifier;
use super::preceding_lines::PrecedingLines;
use std::collections::VecDeque;
use std::io::{self, Read};

/// The limits on the memory of both readers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogReadLimits {
    /// The number of bytes read at once.
    pub(super) chunk_bytes: usize,
    /// The number of bytes of a line that are kept; the rest is skipped.
    pub(super) max_line_bytes: usize,
}

impl LogReadLimits {
    /// Chunks of 2 MiB and lines of 1 MiB.
    // With smaller chunks the reading and the searching thread spend their time waking each other.
    pub(super) const DEFAULT: Self = Self { chunk_bytes: 2 << 20, max_line_bytes: 1 << 20 };

    // What stands before a region is read again where it is read backward.
    /// Returns how far behind the head of an entry lines in no known format continue it: at most 64 KiB.
    pub(super) fn text_distance(self) -> u64 {
        self.max_line_bytes.min(64 << 10) as u64
    }
}

/// The bytes that an entry takes in its file, and the head it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEntrySpan {
    /// The offset of its first byte.
    pub(super) start: u64,
    /// The offset of the first byte after it, where the next entry begins.
    pub(super) end: u64,
    pub(super) head: LogEntryHead,
}

/// An entry and its first bytes, at most as many as a line may have.
#[derive(Clone, Debug)]
pub(super) struct RawLogEntry {
    pub(super) span: LogEntrySpan,
    pub(super) bytes: Vec<u8>,
    /// The number of line feeds before it.
    pub(super) lines: u64,
    /// The number of line feeds before the entry after it.
    pub(super) lines_end: u64,
    /// True if its last line ends with a line feed.
    pub(super) ended: bool,
    /// The end of the text of its last line that is not blank.
    pub(super) text_end: u64,
    /// The stream of a container that its head is of: true for the error stream.
    stderr: Option<bool>,
    /// True if a container's runtime cut its last line.
    is_cut: bool,
    /// Counts the entries of one reader.
    number: u64,
}

impl RawLogEntry {
    /// Returns whether the rest of a line that a container's runtime cut is missing.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_cut
    }

    /// Adds a line, as much of it as an entry may have.
    fn add(&mut self, line: &BoundedLine, limits: LogReadLimits) {
        let free_bytes = limits.max_line_bytes.saturating_sub(self.bytes.len() + 1);
        // The lengths of binary values count blank lines too.
        let is_kept = !line.content.is_empty() || journal::is_head(&self.bytes);
        if free_bytes > 0 && is_kept {
            self.bytes.push(b'\n');
            self.bytes.extend(line.content.iter().take(free_bytes));
        }
        self.is_cut = line.kind.stream_piece().is_some_and(|piece| piece.partial);
        if line.kind != LineKind::BLANK {
            self.text_end = line.text_end;
        }
    }
}

/// Reads entries from first to last.
pub(super) struct ForwardReader<R> {
    input: R,
    limits: LogReadLimits,
    classifier: LineClassifier,
    buffer: Vec<u8>,
    /// The unprocessed bytes of `buffer` begin here, and end at `filled`.
    begin: usize,
    filled: usize,
    /// The offset of the next line.
    offset: u64,
    lines: u64,
    preceding: PrecedingLines,
    /// The entries that are being read. The last one gets the lines that come, but for those of the other stream of a
    /// container, which continue the last entry of that stream.
    open: VecDeque<RawLogEntry>,
    /// The number of the last entry of each stream, standard output first.
    last_of_stream: [Option<u64>; 2],
    /// The number of entries that were begun.
    begun: u64,
}

/// A line, of which `content` is at most as much as the limits allow.
struct BoundedLine {
    content: Vec<u8>,
    start: u64,
    /// The end of its text, without white space behind it.
    text_end: u64,
    kind: LineKind,
    ended: bool,
}

impl<R: Read> ForwardReader<R> {
    /// Creates a reader of `input`, which begins at `offset` of its file, after `lines` line feeds.
    pub(super) fn new(input: R, offset: u64, lines: u64, limits: LogReadLimits) -> Self {
        Self {
            input,
            limits,
            classifier: LineClassifier::default(),
            buffer: vec![0; limits.chunk_bytes],
            begin: 0,
            filled: 0,
            offset,
            lines,
            preceding: PrecedingLines::none(offset, limits.text_distance()),
            open: VecDeque::new(),
            last_of_stream: [None; 2],
            begun: 0,
        }
    }

    /// Sets the lines before the input, which tell how its first lines are taken. None by default.
    #[must_use]
    pub(super) fn after(mut self, preceding: PrecedingLines) -> Self {
        self.preceding = preceding;
        self
    }

    /// Sets the classifier of the lines, where those before the input name their columns.
    #[must_use]
    pub(super) fn classifier(mut self, classifier: LineClassifier) -> Self {
        self.classifier = classifier;
        self
    }

    /// Returns the next entry, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<RawLogEntry>> {
        loop {
            if self.open.len() > 1 && self.open.front().is_some_and(|entry| !self.may_continue(entry)) {
                return Ok(self.open.pop_front());
            }
            let (lines, raw_start) = (self.lines, self.offset);
            let Some(line) = self.line()? else { return Ok(self.open.pop_front()) };
            let role = self.preceding.role(line.kind, raw_start);
            self.preceding.add(line.kind, raw_start, self.offset);
            let stderr = line.kind.stream_piece().map(|piece| piece.stderr);
            let role = match role {
                // The entry that the line belongs to was read before.
                LineRole::Continuation | LineRole::Rest if self.open.is_empty() => line.kind.role_alone(),
                role => role,
            };
            if let LineRole::Head(head) = role {
                self.begin(line, head, lines, stderr);
                continue;
            }
            let limits = self.limits;
            let target = match stderr {
                Some(stderr) => {
                    let number = self.last_of_stream.get(usize::from(stderr)).copied().flatten();
                    self.open.iter_mut().rfind(|entry| Some(entry.number) == number)
                }
                None => self.open.back_mut(),
            };
            // The beginning of a cut line may stand before the input: then its entry has the rest already.
            if let Some(target) = target {
                target.add(&line, limits);
            }
            if let Some(last) = self.open.back_mut() {
                (last.span.end, last.lines_end, last.ended) = (self.offset, self.lines, line.ended);
            }
        }
    }

    /// Begins the entry whose first line is `line`, after `lines` line feeds.
    fn begin(&mut self, line: BoundedLine, head: LogEntryHead, lines: u64, stderr: Option<bool>) {
        if let Some(previous) = self.open.back_mut() {
            previous.span.end = line.start;
        }
        self.begun += 1;
        match stderr {
            Some(stderr) => {
                if let Some(last) = self.last_of_stream.get_mut(usize::from(stderr)) {
                    *last = Some(self.begun);
                }
            }
            None => self.last_of_stream = [None; 2],
        }
        self.open.push_back(RawLogEntry {
            span: LogEntrySpan { start: line.start, end: self.offset, head },
            bytes: line.content,
            lines,
            lines_end: self.lines,
            ended: line.ended,
            text_end: line.text_end,
            stderr,
            is_cut: line.kind.stream_piece().is_some_and(|piece| piece.partial),
            number: self.begun,
        });
    }

    /// Returns whether a line that is not read yet may continue `entry`, which is not the last one.
    fn may_continue(&self, entry: &RawLogEntry) -> bool {
        entry.stderr.is_some_and(|stderr| {
            self.last_of_stream.get(usize::from(stderr)) == Some(&Some(entry.number))
                && self.preceding.is_open(stderr, self.offset)
        })
    }

    /// Reads the next line, of any length, and keeps as much of it as the limits allow.
    fn line(&mut self) -> io::Result<Option<BoundedLine>> {
        let start = self.offset;
        let (mut content, mut length) = (Vec::new(), 0_u64);
        let (mut skipped, mut blank, mut ended) = (0_u64, true, false);
        loop {
            if self.begin == self.filled {
                self.begin = 0;
                self.filled = self.input.read(&mut self.buffer)?;
                if self.filled == 0 {
                    break;
                }
            }
            let rest = self.buffer.get(self.begin..self.filled).unwrap_or_default();
            let found = memchr::memchr(b'\n', rest);
            let mut piece = rest.get(..found.unwrap_or(rest.len())).unwrap_or_default();
            self.begin += piece.len() + usize::from(found.is_some());
            length += piece.len() as u64;
            blank &= is_blank(piece);
            // A writer that keeps its offset after a truncation leaves a hole of zeros as long as the file was.
            if content.is_empty() {
                let zeros = piece.iter().take_while(|byte| **byte == 0).count();
                skipped += zeros as u64;
                piece = piece.get(zeros..).unwrap_or_default();
            }
            let free_bytes = self.limits.max_line_bytes.saturating_sub(content.len());
            content.extend_from_slice(piece.get(..piece.len().min(free_bytes)).unwrap_or_default());
            if found.is_some() {
                ended = true;
                break;
            }
        }
        if length == 0 && !ended {
            return Ok(None);
        }
        self.offset = start + length + u64::from(ended);
        self.lines += u64::from(ended);
        let kind = classify_line(&mut self.classifier, &content, length, blank, self.limits);
        let is_whole = skipped + content.len() as u64 == length;
        let trailing = if is_whole { content.len() - content.trim_ascii_end().len() } else { 0 };
        let text_end = start + length - trailing as u64;
        Ok(Some(BoundedLine { content, start: start + skipped, text_end, kind, ended }))
    }
}

/// Classifies a line of `length` bytes, of which `content` was kept.
pub(super) fn classify_line(
    classifier: &mut LineClassifier,
    content: &[u8],
    length: u64,
    blank: bool,
    limits: LogReadLimits,
) -> LineKind {
    if blank {
        return LineKind::BLANK;
    }
    match () {
        () if length <= limits.max_line_bytes as u64 => classifier.classify(content),
        () if content.len() < limits.max_line_bytes => classifier.classify_after_hole(content),
        () => classifier.classify_cut(content),
    }
}

/// Returns whether `bytes` are only white space and zeros.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}
