//! Entries from the end of a file, in constant memory.
//!
//! The file is read in chunks from its end, each chunk from its beginning: searching forward runs at the speed
//! of memory, searching backward does not. A chunk begins in the middle of a line, which is read again with the
//! chunk below. `mmap` would be no faster and would end the process (SIGBUS) when the file is truncated.

use super::forward::{Bounds, Group, is_blank, judge};
use super::line::{Before, Classifier, Head, Kind, Place};
use super::source::ReadAt;
use std::io;

/// Reads a file from its end, chunk by chunk.
#[derive(Debug)]
pub(super) struct Backward<'a, S: ?Sized> {
    source: &'a S,
    bounds: Bounds,
    classifier: Classifier,
    buffer: Vec<u8>,
    /// What the next chunk is read into.
    spare: Vec<u8>,
    /// Everything from here on has been read. The beginning of a line.
    position: u64,
    /// Where the entry ends whose beginning is still to come.
    end: u64,
    /// Where lines begin that go on with an entry whose beginning is still to come, and the line feeds after it.
    rest: Option<(u64, u64)>,
    lines: u64,
    /// Where the bytes in `buffer` begin.
    loaded: Option<u64>,
}

/// An entry, and how many line feeds lie between its beginning and the end that reading began at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) group: Group,
    pub(super) lines_after: u64,
}

impl<'a, S: ReadAt + ?Sized> Backward<'a, S> {
    /// Of `source` what lies before `end`, which is the end of the file or the beginning of an entry.
    pub(super) fn new(source: &'a S, end: u64, bounds: Bounds) -> Self {
        let classifier = Classifier::default();
        Self {
            source,
            bounds,
            classifier,
            buffer: Vec::new(),
            spare: Vec::new(),
            position: end,
            end,
            rest: None,
            lines: 0,
            loaded: None,
        }
    }

    /// Everything from here on has been read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Every entry from here on has been found. The beginning of one, or the end.
    pub(super) fn boundary(&self) -> u64 {
        self.end
    }

    /// The bytes of an entry that was found last, if they are still at hand whole.
    pub(super) fn bytes(&self, group: &Group) -> Option<&[u8]> {
        let start = usize::try_from(group.start.checked_sub(self.loaded?)?).ok()?;
        let length = usize::try_from(group.end - group.start).ok()?.min(self.bounds.line);
        self.buffer.get(start..start + length)
    }

    /// Line feeds that have been read.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads one chunk, and puts the entries that begin in it and that `wanted` wants into `hits`, first to
    /// last. `wanted` gets the first line of an entry and whether that is all of it that it can see.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter than it was (`UnexpectedEof`).
    pub(super) fn chunk(
        &mut self,
        hits: &mut Vec<Hit>,
        mut wanted: impl FnMut(&Group, &[u8]) -> bool,
    ) -> io::Result<()> {
        hits.clear();
        let mut start = self.load()?;
        let begin = loop {
            let length = self.buffer.len();
            if start == 0 {
                break 0;
            }
            // The last byte ends the line before the position, or belongs to a line that has not ended.
            let body = self.buffer.get(..length.saturating_sub(1)).unwrap_or_default();
            if let Some(feed) = memchr::memchr(b'\n', body) {
                break feed + 1;
            }
            if length > self.bounds.line {
                return self.long_line(start, hits, &mut wanted);
            }
            start = self.position.saturating_sub(2 * length as u64);
            let length = usize::try_from(self.position - start).unwrap_or(usize::MAX);
            self.source.fill(&mut self.buffer, start, length)?;
        };
        let buffer = std::mem::take(&mut self.buffer);
        let region = buffer.get(begin..).unwrap_or_default();
        self.region(region, start + begin as u64, hits, &mut wanted)?;
        self.buffer = buffer;
        self.loaded = Some(start);
        Ok(())
    }

    /// Reads what lies before the position, from a multiple of the size of chunks on. Where that begins.
    ///
    /// The beginning of the line that the last chunk began in the middle of is at hand: so chunk after chunk is read
    /// in whole, which may be done before it is asked for.
    fn load(&mut self) -> io::Result<u64> {
        let carried = self.loaded.take().and_then(|loaded| {
            let length = usize::try_from(self.position.checked_sub(loaded)?).ok()?;
            self.buffer.get(..length)
        });
        let carried = carried.unwrap_or_default();
        let top = self.position - carried.len() as u64;
        let chunk = self.bounds.chunk as u64;
        let start = top.saturating_sub(chunk) / chunk * chunk;
        self.source.fill(&mut self.spare, start, usize::try_from(top - start).unwrap_or(usize::MAX))?;
        self.spare.extend_from_slice(carried);
        std::mem::swap(&mut self.buffer, &mut self.spare);
        Ok(start)
    }

    /// Looks at the lines of `region`, which begins at `start`.
    fn region(
        &mut self,
        region: &[u8],
        start: u64,
        hits: &mut Vec<Hit>,
        wanted: &mut impl FnMut(&Group, &[u8]) -> bool,
    ) -> io::Result<()> {
        let mut before = (start == 0).then_some(Before::Stands);
        // Whether the entry that the lines belong to is wanted.
        let mut open = false;
        let (mut beginning, mut rest) = (None, None);
        let mut lines = 0;
        let mut at = 0;
        let mut feeds = memchr::memchr_iter(b'\n', region);
        while at < region.len() {
            let feed = feeds.next();
            let raw = region.get(at..feed.unwrap_or(region.len())).unwrap_or_default();
            // The common case, in few instructions.
            if let Some(head) = self.classifier.known(raw).filter(|_| raw.len() <= self.bounds.line) {
                before = Some(Kind::Head(head).before());
                let place = start + at as u64;
                if open && let Some(hit) = hits.last_mut() {
                    hit.group.end = place;
                }
                let group = Group { start: place, end: self.end, head };
                open = wanted(&group, raw);
                if open {
                    hits.push(Hit { group, lines_after: lines });
                }
                beginning.get_or_insert(place);
                lines += u64::from(feed.is_some());
                at += raw.len() + 1;
                continue;
            }
            let zeros =
                if raw.first() == Some(&0) { raw.iter().take_while(|byte| **byte == 0).count() } else { 0 };
            let line = raw.get(zeros..).unwrap_or_default();
            let kept = line.get(..line.len().min(self.bounds.line)).unwrap_or_default();
            let (kind, after) = if raw.len() > self.bounds.line {
                judge(&mut self.classifier, kept, raw.len() as u64, is_blank(raw), self.bounds)
            } else {
                let kind = self.classifier.kind(line);
                (kind, kind.before())
            };
            let stands = match before {
                Some(before) => before,
                // What stands before the region matters only to these, where they come first.
                None if matches!(kind, Kind::Exception | Kind::Frame) => {
                    look_back(self.source, start, self.bounds)?
                }
                None => Before::Stands,
            };
            let place = start + (at + zeros) as u64;
            match kind.place(stands) {
                Place::Blank => {}
                Place::Rest => {
                    before = Some(after);
                    if beginning.is_none() {
                        rest.get_or_insert((place, lines));
                    }
                }
                Place::Head(head) => {
                    before = Some(after);
                    if open && let Some(hit) = hits.last_mut() {
                        hit.group.end = place;
                    }
                    let group = Group { start: place, end: self.end, head };
                    open = wanted(&group, kept);
                    if open {
                        hits.push(Hit { group, lines_after: lines });
                    }
                    beginning.get_or_insert(place);
                }
            }
            lines += u64::from(feed.is_some());
            at += raw.len() + 1;
        }
        let total = self.lines + lines;
        for hit in hits.iter_mut() {
            hit.lines_after = total - hit.lines_after;
        }
        let rest = rest.map(|(place, lines)| (place, total - lines));
        self.passed(start, total, beginning, rest, hits, wanted)
    }

    /// All from `start` on has been read, `lines` line feeds in all. The first entry there begins at
    /// `beginning`, and before that, at `rest`, there are lines that go on with one that is still to come.
    fn passed(
        &mut self,
        start: u64,
        lines: u64,
        beginning: Option<u64>,
        rest: Option<(u64, u64)>,
        hits: &mut Vec<Hit>,
        wanted: &mut impl FnMut(&Group, &[u8]) -> bool,
    ) -> io::Result<()> {
        (self.position, self.lines) = (start, lines);
        self.end = beginning.unwrap_or(self.end);
        self.rest = if beginning.is_some() { rest } else { rest.or(self.rest) };
        // There is none to come: they are an entry.
        if start == 0
            && let Some((place, lines_after)) = self.rest.take()
        {
            let group = Group { start: place, end: self.end, head: Head::LOOSE };
            let (content, _) = self.beginning(place, self.end)?;
            let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if wanted(&group, line) {
                hits.insert(0, Hit { group, lines_after });
            }
        }
        Ok(())
    }

    /// A line longer than a chunk, of which the beginning is kept. There is no line feed from `start` to its end.
    fn long_line(
        &mut self,
        start: u64,
        hits: &mut Vec<Hit>,
        wanted: &mut impl FnMut(&Group, &[u8]) -> bool,
    ) -> io::Result<()> {
        let ended = self.buffer.last() == Some(&b'\n');
        let stop = self.position - u64::from(ended);
        let mut blank = is_blank(&self.buffer);
        let mut begin = start;
        while begin > 0 {
            let from = begin.saturating_sub(self.bounds.chunk as u64);
            let size = usize::try_from(begin - from).unwrap_or_default();
            self.buffer.resize(size, 0);
            if self.source.read_at(&mut self.buffer, from)? < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let feed = memchr::memrchr(b'\n', &self.buffer);
            let line = self.buffer.get(feed.map_or(0, |feed| feed + 1)..).unwrap_or_default();
            blank &= is_blank(line);
            begin -= line.len() as u64;
            if feed.is_some() {
                break;
            }
        }
        let (kept, place) = self.beginning(begin, stop)?;
        let (kind, _) = judge(&mut self.classifier, &kept, stop - begin, blank, self.bounds);
        let stands = match kind {
            Kind::Exception | Kind::Frame => look_back(self.source, begin, self.bounds)?,
            _ => Before::Stands,
        };
        let lines = self.lines + u64::from(ended);
        match kind.place(stands) {
            Place::Blank => self.passed(begin, lines, None, None, hits, wanted),
            Place::Rest => self.passed(begin, lines, None, Some((place, lines)), hits, wanted),
            Place::Head(head) => {
                let group = Group { start: place, end: self.end, head };
                if wanted(&group, &kept) {
                    hits.push(Hit { group, lines_after: lines });
                }
                self.passed(begin, lines, Some(place), None, hits, wanted)
            }
        }
    }

    /// What lies between the two without the zeros in front, and where that begins; as much of it as is kept of
    /// a line.
    fn beginning(&self, mut begin: u64, end: u64) -> io::Result<(Vec<u8>, u64)> {
        loop {
            let size = usize::try_from(end - begin).unwrap_or(usize::MAX).min(self.bounds.line);
            let mut content = vec![0; size];
            if self.source.read_at(&mut content, begin)? < size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let zeros = content.iter().take_while(|byte| **byte == 0).count();
            begin += zeros as u64;
            if zeros == 0 || begin == end {
                return Ok((content, begin));
            }
        }
    }
}

/// What stands before the line that begins at `end`: the last line there that is not blank.
fn look_back<S: ReadAt + ?Sized>(source: &S, end: u64, bounds: Bounds) -> io::Result<Before> {
    let read = |start: u64, end: u64| {
        let mut buffer = vec![0; usize::try_from(end - start).unwrap_or_default()];
        match source.read_at(&mut buffer, start)? < buffer.len() {
            true => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            false => Ok(buffer),
        }
    };
    let mut stop = end;
    let last = loop {
        if stop == 0 {
            return Ok(Before::Stands);
        }
        let start = stop.saturating_sub(4096);
        match read(start, stop)?.iter().rposition(|byte| !is_blank(&[*byte])) {
            Some(last) => break start + last as u64,
            None => stop = start,
        }
    };
    // If it is longer than this, it is too long.
    let start = last.saturating_sub(bounds.line as u64 + 1);
    let window = read(start, end.min(last + bounds.line as u64 + 2))?;
    let (head, tail) = window.split_at(usize::try_from(last - start).unwrap_or_default());
    let begin = memchr::memrchr(b'\n', head).map(|feed| feed + 1).or((start == 0).then_some(0));
    let feed = memchr::memchr(b'\n', tail).map(|feed| feed + head.len());
    let (Some(begin), Some(feed)) = (begin, feed) else { return Ok(Before::Stands) };
    let line = window.get(begin..feed).unwrap_or_default();
    if line.len() > bounds.line {
        return Ok(Before::Stands);
    }
    let zeros = line.iter().take_while(|byte| **byte == 0).count();
    Ok(Classifier::default().kind(line.get(zeros..).unwrap_or_default()).before())
}

#[cfg(test)]
mod tests {
    use super::super::forward::Forward;
    use super::super::source;
    use super::*;
    use proptest::prelude::*;

    fn backward(bytes: &[u8], bounds: Bounds) -> Vec<(Group, u64)> {
        let mut reader = Backward::new(bytes, bytes.len() as u64, bounds);
        let (mut all, mut hits) = (Vec::new(), Vec::new());
        while reader.position() > 0 {
            reader.chunk(&mut hits, |_, _| true).unwrap();
            all.extend(hits.iter().rev().map(|hit| (hit.group, hit.lines_after)));
        }
        all.reverse();
        let total = reader.lines();
        all.into_iter().map(|(group, after)| (group, total - after)).collect()
    }

    fn forward(bytes: &[u8], bounds: Bounds) -> Vec<(Group, u64)> {
        let from = source::From { source: bytes, offset: 0, end: bytes.len() as u64 };
        let mut reader = Forward::new(from, 0, 0, bounds);
        let mut all = Vec::new();
        while let Some(found) = reader.next().unwrap() {
            all.push((found.group, found.lines));
        }
        all
    }

    #[test]
    fn an_entry_has_its_stack_trace_wherever_a_chunk_ends() {
        let text =
            b"2026-11-20 10:00:00 ERROR failed\njava.lang.IllegalStateException: bad\n\tat a.B(B.java:1)\n\n\
            Caused by: x\n2026-11-20 10:00:01 INFO up\n{\"level\":50}\nTypeError: x\n    at f (a.js:1:2)\n";
        let expected = forward(text, Bounds::DEFAULT);
        assert_eq!(
            expected.iter().map(|(group, line)| (group.start, *line)).collect::<Vec<_>>(),
            [(0, 0), (102, 5), (130, 6), (143, 7)]
        );
        for chunk in 1..text.len() + 2 {
            assert_eq!(backward(text, Bounds { chunk, line: 1000 }), expected, "chunks of {chunk} bytes");
        }
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let known = prop::sample::select(vec![
            "{\"level\":50,\"msg\":\"x\"}",
            "{\"level\":30}",
            "{\"level\":30,",
            "{",
            "}",
            "",
            " ",
            "\r",
            "\0\0",
            "\0{\"level\":40}",
            "2026-11-20 10:00:00 ERROR x",
            "2026-11-20 10:00:00 INFO x",
            "INFO x",
            " WARN x",
            "level=error msg=x",
            "ValueError: bad",
            "Traceback (most recent call last):",
            "  File \"a\"",
            "\tat a.B",
            "Caused by: y",
            "main.serve",
            "text",
            "\u{feff}text",
            "\u{1b}[31mERROR\u{1b}[0m x",
            "\0  indented",
            "\0",
            "\u{b}",
        ]);
        prop_oneof![
            8 => known.prop_map(|line| line.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..40),
            1 => "[ \\x00]{0,60}".prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]
        #[test]
        fn both_directions_find_the_same_entries_in_any_bytes_with_any_chunks(
            lines in prop::collection::vec(line(), 0..24),
            ended: bool,
            chunk in 1_usize..80,
            limit in 1_usize..80,
        ) {
            let mut bytes = lines.join(&b'\n');
            if ended {
                bytes.push(b'\n');
            }
            let bounds = Bounds { chunk, line: limit };
            let expected = forward(&bytes, Bounds { chunk: 7, line: limit });
            prop_assert_eq!(backward(&bytes, bounds), expected);
        }
    }
}
