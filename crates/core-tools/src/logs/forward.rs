//! Entries in the order they were written: of what is compressed, and of what is new.

use super::line::{Before, Classifier, Head, Kind, Place};
use std::io::{self, Read};

/// What bounds the memory of both readers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes that are read at once.
    pub(super) chunk: usize,
    /// Bytes of a line that are looked at; the rest is passed over.
    pub(super) line: usize,
}

impl Bounds {
    /// Chunks of 2 MiB: for smaller ones two threads wake each other more often than they work. Lines of 1 MiB.
    pub(super) const DEFAULT: Self = Self { chunk: 2 << 20, line: 1 << 20 };
}

/// An entry's place in what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The first byte of its first line.
    pub(super) start: u64,
    /// The first byte of the next entry.
    pub(super) end: u64,
    pub(super) head: Head,
}

/// An entry and its first bytes: as many as a line may have.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) group: Group,
    pub(super) bytes: Vec<u8>,
    /// Line feeds that were read before it, and before the next one.
    pub(super) lines: u64,
    pub(super) lines_end: u64,
    /// Whether its last line has ended.
    pub(super) ended: bool,
}

/// Reads entries from first to last.
pub(super) struct Forward<R> {
    from: R,
    bounds: Bounds,
    classifier: Classifier,
    buffer: Vec<u8>,
    /// What of `buffer` has been read and not yet looked at.
    begin: usize,
    filled: usize,
    /// Where the next line begins.
    offset: u64,
    lines: u64,
    before: Before,
    /// Whether an entry has begun.
    open: Option<Found>,
}

struct Line {
    content: Vec<u8>,
    start: u64,
    kind: Kind,
    before: Before,
    ended: bool,
}

impl<R: Read> Forward<R> {
    /// `offset` is where `from` begins; nothing is known of what lies before it. `lines` are the line feeds there.
    pub(super) fn new(from: R, offset: u64, lines: u64, bounds: Bounds) -> Self {
        Self {
            from,
            bounds,
            classifier: Classifier::default(),
            buffer: vec![0; bounds.chunk],
            begin: 0,
            filled: 0,
            offset,
            lines,
            before: Before::Stands,
            open: None,
        }
    }

    /// The next entry. None at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        loop {
            let lines = self.lines;
            let Some(line) = self.line()? else { return Ok(self.open.take()) };
            let mut place = line.kind.place(self.before);
            if place != Place::Blank {
                self.before = line.before;
            }
            if place == Place::Rest && self.open.is_none() {
                place = Place::Head(Head::LOOSE);
            }
            match place {
                Place::Head(head) => {
                    let group = Group { start: line.start, end: self.offset, head };
                    let found =
                        Found { group, bytes: line.content, lines, lines_end: self.lines, ended: line.ended };
                    if let Some(mut before) = self.open.replace(found) {
                        before.group.end = line.start;
                        return Ok(Some(before));
                    }
                }
                Place::Rest | Place::Blank => {
                    if let Some(open) = &mut self.open {
                        let room = self.bounds.line.saturating_sub(open.bytes.len() + 1);
                        if room > 0 && !line.content.is_empty() {
                            open.bytes.push(b'\n');
                            open.bytes.extend(line.content.iter().take(room));
                        }
                        open.group.end = self.offset;
                        open.lines_end = self.lines;
                        open.ended = line.ended;
                    }
                }
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        let start = self.offset;
        let (mut content, mut length) = (Vec::new(), 0_u64);
        let (mut skipped, mut blank, mut ended) = (0_u64, true, false);
        loop {
            if self.begin == self.filled {
                self.begin = 0;
                self.filled = self.from.read(&mut self.buffer)?;
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
            // A hole that a truncation left is as long as the file was.
            if content.is_empty() {
                let zeros = piece.iter().take_while(|byte| **byte == 0).count();
                skipped += zeros as u64;
                piece = piece.get(zeros..).unwrap_or_default();
            }
            let room = self.bounds.line.saturating_sub(content.len());
            content.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
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
        let (kind, before) = judge(&mut self.classifier, &content, length, blank, self.bounds);
        Ok(Some(Line { content, start: start + skipped, kind, before, ended }))
    }
}

/// What a line is of which `content` is kept, `length` bytes long with all that is not.
pub(super) fn judge(
    classifier: &mut Classifier,
    content: &[u8],
    length: u64,
    blank: bool,
    bounds: Bounds,
) -> (Kind, Before) {
    if blank {
        return (Kind::Blank, Before::Stands);
    }
    let kind = classifier.kind(content);
    if length <= bounds.line as u64 {
        return (kind, kind.before());
    }
    // All that is kept of it may be blank.
    (if kind == Kind::Blank { Kind::Continuation } else { kind }, Before::Stands)
}

pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}
