//! Reads entries from the end of a file, in constant memory.
//!
//! The file is read in chunks from its end, and each chunk is searched from its beginning, as searching forward runs
//! at the speed of memory and searching backward does not. A chunk begins in the middle of a line, which is read
//! again with the chunk before it. `mmap` would be no faster and would end the process (SIGBUS) when the file is
//! truncated.

use super::forward::{LogEntrySpan, LogReadLimits, classify_line, is_blank};
use super::line::{LineRole, LogEntryHead};
use super::line_classifier::LineClassifier;
use super::preceding::read_preceding;
use super::preceding_lines::PrecedingLines;
use super::read_at::ReadAt;
use std::io;

/// Reads a file from its end, chunk by chunk.
#[derive(Debug)]
pub(super) struct BackwardReader<'a, S: ?Sized> {
    source: &'a S,
    limits: LogReadLimits,
    classifier: LineClassifier,
    buffer: Vec<u8>,
    /// The buffer that the next chunk is read into, kept to save allocations.
    spare: Vec<u8>,
    /// The offset that has been read down to; a line begins there.
    position: u64,
    /// The end of the entry whose head is still to come.
    end: u64,
    /// The first continuation line of the entry whose head is still to come: its offset, and the line feeds after it.
    rest: Option<(u64, u64)>,
    /// The number of line feeds read.
    lines: u64,
    /// The offset of the first byte in `buffer`, while it is valid.
    loaded: Option<u64>,
}

/// An entry that was asked for, and the number of line feeds from its head to the end that reading began at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatchingEntry {
    pub(super) span: LogEntrySpan,
    pub(super) lines_after: u64,
}

impl<'a, S: ReadAt + ?Sized> BackwardReader<'a, S> {
    /// Creates a reader of the part of `source` before `end`, which is the end of the file or the beginning of an
    /// entry.
    pub(super) fn new(source: &'a S, end: u64, limits: LogReadLimits) -> Self {
        let classifier = LineClassifier::of(source);
        Self {
            source,
            limits,
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

    /// Returns the offset that has been read down to.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the offset from which on every entry has been found: the head of one, or the end.
    pub(super) fn boundary(&self) -> u64 {
        self.end
    }

    /// Returns the bytes of an entry of the last chunk, if all of them are still in the buffer.
    pub(super) fn bytes(&self, span: &LogEntrySpan) -> Option<&[u8]> {
        let start = usize::try_from(span.start.checked_sub(self.loaded?)?).ok()?;
        let length = usize::try_from(span.end - span.start).ok()?.min(self.limits.max_line_bytes);
        self.buffer.get(start..start + length)
    }

    /// Returns the number of line feeds read.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Reads one chunk and puts the entries that begin in it and for which `wanted` returns true into `hits`, first
    /// to last. `wanted` gets the entry's span and its first line.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter than it was (`UnexpectedEof`).
    pub(super) fn chunk(
        &mut self,
        hits: &mut Vec<MatchingEntry>,
        mut wanted: impl FnMut(&LogEntrySpan, &[u8]) -> bool,
    ) -> io::Result<()> {
        hits.clear();
        let mut start = self.load()?;
        let begin = loop {
            let length = self.buffer.len();
            if start == 0 {
                break 0;
            }
            // The last byte ends the line before the position, or belongs to a line without an end.
            let body = self.buffer.get(..length.saturating_sub(1)).unwrap_or_default();
            if let Some(feed) = memchr::memchr(b'\n', body) {
                break feed + 1;
            }
            if length > self.limits.max_line_bytes {
                return self.read_long_line(start, hits, &mut wanted);
            }
            // The chunk doubles, so that a long line is read in a number of steps that grows with its logarithm.
            start = self.position.saturating_sub(2 * length as u64);
            let length = usize::try_from(self.position - start).unwrap_or(usize::MAX);
            self.source.fill(&mut self.buffer, start, length)?;
        };
        let buffer = std::mem::take(&mut self.buffer);
        let region = buffer.get(begin..).unwrap_or_default();
        self.scan_region(region, start + begin as u64, hits, &mut wanted)?;
        self.buffer = buffer;
        self.loaded = Some(start);
        Ok(())
    }

    /// Loads the chunk before the position, which begins at a multiple of the chunk size, and returns its offset.
    ///
    /// The line that the last chunk began in the middle of is carried over from the buffer. So every read is of one
    /// whole aligned chunk, which the prefetching thread can predict.
    fn load(&mut self) -> io::Result<u64> {
        let carried = self.loaded.take().and_then(|loaded| {
            let length = usize::try_from(self.position.checked_sub(loaded)?).ok()?;
            self.buffer.get(..length)
        });
        let carried = carried.unwrap_or_default();
        let top = self.position - carried.len() as u64;
        let chunk = self.limits.chunk_bytes as u64;
        // Aligned reads match the pages of the cache and the requests of the prefetching thread.
        let start = top.saturating_sub(chunk) / chunk * chunk;
        self.source.fill(&mut self.spare, start, usize::try_from(top - start).unwrap_or(usize::MAX))?;
        self.spare.extend_from_slice(carried);
        std::mem::swap(&mut self.buffer, &mut self.spare);
        Ok(start)
    }

    /// Classifies the lines of `region`, which begins at `start`.
    fn scan_region(
        &mut self,
        region: &[u8],
        start: u64,
        hits: &mut Vec<MatchingEntry>,
        wanted: &mut impl FnMut(&LogEntrySpan, &[u8]) -> bool,
    ) -> io::Result<()> {
        let mut preceding = (start == 0).then_some(PrecedingLines::none(0, self.limits.text_distance()));
        // True while the lines belong to an entry that was asked for.
        let mut open = false;
        let (mut beginning, mut rest) = (None, None);
        let mut lines = 0;
        let mut at = 0;
        let mut feeds = memchr::memchr_iter(b'\n', region);
        while at < region.len() {
            let feed = feeds.next();
            let raw = region.get(at..feed.unwrap_or(region.len())).unwrap_or_default();
            // The fast path: a line whose prefix was seen before is a head, and needs no classification.
            if let Some(head) =
                self.classifier.remembered_head(raw).filter(|_| raw.len() <= self.limits.max_line_bytes)
            {
                // A prefix is remembered of JSON alone, after which an exception begins its own entry.
                let line_start = start + at as u64;
                let line_end = line_start + raw.len() as u64 + 1;
                preceding = Some(PrecedingLines::none(line_end, self.limits.text_distance()));
                if open && let Some(hit) = hits.last_mut() {
                    hit.span.end = line_start;
                }
                let span = LogEntrySpan { start: line_start, end: self.end, head };
                open = wanted(&span, raw);
                if open {
                    hits.push(MatchingEntry { span, lines_after: lines });
                }
                beginning.get_or_insert(line_start);
                lines += u64::from(feed.is_some());
                at += raw.len() + 1;
                continue;
            }
            let zeros =
                if raw.first() == Some(&0) { raw.iter().take_while(|byte| **byte == 0).count() } else { 0 };
            let line = raw.get(zeros..).unwrap_or_default();
            let kept = line.get(..line.len().min(self.limits.max_line_bytes)).unwrap_or_default();
            let kind = if raw.len() > self.limits.max_line_bytes {
                classify_line(&mut self.classifier, kept, raw.len() as u64, is_blank(raw), self.limits)
            } else {
                self.classifier.classify(line)
            };
            let raw_start = start + at as u64;
            let line_start = raw_start + zeros as u64;
            let raw_end = raw_start + raw.len() as u64 + u64::from(feed.is_some());
            let role = if kind.is_transparent() {
                LineRole::Blank
            } else {
                let before = match preceding {
                    Some(preceding) => preceding,
                    // Only these depend on the lines before the region, so they are read only for them.
                    None if kind.depends_on_previous() => {
                        read_preceding(self.source, start, raw_start, self.limits)?
                    }
                    None => PrecedingLines::none(start, self.limits.text_distance()),
                };
                let after = preceding.insert(before);
                let role = after.role(kind, raw_start);
                after.add(kind, raw_start, raw_end);
                role
            };
            match role {
                LineRole::Blank => {}
                LineRole::Continuation | LineRole::Rest => {
                    if beginning.is_none() {
                        rest.get_or_insert((line_start, lines));
                    }
                }
                LineRole::Head(head) => {
                    if open && let Some(hit) = hits.last_mut() {
                        hit.span.end = line_start;
                    }
                    let span = LogEntrySpan { start: line_start, end: self.end, head };
                    open = wanted(&span, kept);
                    if open {
                        hits.push(MatchingEntry { span, lines_after: lines });
                    }
                    beginning.get_or_insert(line_start);
                }
            }
            lines += u64::from(feed.is_some());
            at += raw.len() + 1;
        }
        let total = self.lines + lines;
        for hit in hits.iter_mut() {
            // The number of line feeds from the end is known only after the whole region has been counted.
            hit.lines_after = total - hit.lines_after;
        }
        let rest = rest.map(|(line_start, lines)| (line_start, total - lines));
        self.advance(start, total, beginning, rest, hits, wanted)
    }

    /// Records that everything from `start` on has been read, with `lines` line feeds in all. The first head there is
    /// at `beginning`; `rest` are the continuation lines before it.
    fn advance(
        &mut self,
        start: u64,
        lines: u64,
        beginning: Option<u64>,
        rest: Option<(u64, u64)>,
        hits: &mut Vec<MatchingEntry>,
        wanted: &mut impl FnMut(&LogEntrySpan, &[u8]) -> bool,
    ) -> io::Result<()> {
        (self.position, self.lines) = (start, lines);
        self.end = beginning.unwrap_or(self.end);
        self.rest = if beginning.is_some() { rest } else { rest.or(self.rest) };
        // At the start of the file no head can follow: the continuation lines are an entry of their own.
        if start == 0
            && let Some((line_start, lines_after)) = self.rest.take()
        {
            let span = LogEntrySpan { start: line_start, end: self.end, head: LogEntryHead::UNRECOGNIZED };
            let (content, _) = self.beginning(line_start, self.end)?;
            let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if wanted(&span, line) {
                hits.insert(0, MatchingEntry { span, lines_after });
            }
        }
        Ok(())
    }

    /// Reads the line around `start`, which is longer than a chunk, and keeps its beginning.
    fn read_long_line(
        &mut self,
        start: u64,
        hits: &mut Vec<MatchingEntry>,
        wanted: &mut impl FnMut(&LogEntrySpan, &[u8]) -> bool,
    ) -> io::Result<()> {
        let ended = self.buffer.last() == Some(&b'\n');
        let stop = self.position - u64::from(ended);
        let mut blank = is_blank(&self.buffer);
        let mut begin = start;
        while begin > 0 {
            let from = begin.saturating_sub(self.limits.chunk_bytes as u64);
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
        let (kept, line_start) = self.beginning(begin, stop)?;
        let kind = classify_line(&mut self.classifier, &kept, stop - begin, blank, self.limits);
        let before = match kind.depends_on_previous() {
            true => read_preceding(self.source, begin, begin, self.limits)?,
            false => PrecedingLines::none(begin, self.limits.text_distance()),
        };
        let lines = self.lines + u64::from(ended);
        match before.role(kind, begin) {
            LineRole::Blank => self.advance(begin, lines, None, None, hits, wanted),
            LineRole::Continuation | LineRole::Rest => {
                self.advance(begin, lines, None, Some((line_start, lines)), hits, wanted)
            }
            LineRole::Head(head) => {
                let span = LogEntrySpan { start: line_start, end: self.end, head };
                if wanted(&span, &kept) {
                    hits.push(MatchingEntry { span, lines_after: lines });
                }
                self.advance(begin, lines, Some(line_start), None, hits, wanted)
            }
        }
    }

    /// Returns the bytes from `begin` to `end` without leading zeros, at most as many as a line may have, and the
    /// offset of the first.
    fn beginning(&self, mut begin: u64, end: u64) -> io::Result<(Vec<u8>, u64)> {
        loop {
            let size = usize::try_from(end - begin).unwrap_or(usize::MAX).min(self.limits.max_line_bytes);
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

#[cfg(test)]
mod tests {
    use super::super::forward::ForwardReader;
    use super::super::read_at;
    use super::*;
    use proptest::prelude::*;

    fn backward(bytes: &[u8], limits: LogReadLimits) -> Vec<(LogEntrySpan, u64)> {
        let mut reader = BackwardReader::new(bytes, bytes.len() as u64, limits);
        let (mut all, mut hits) = (Vec::new(), Vec::new());
        while reader.position() > 0 {
            reader.chunk(&mut hits, |_, _| true).unwrap();
            all.extend(hits.iter().rev().map(|hit| (hit.span, hit.lines_after)));
        }
        all.reverse();
        let total = reader.lines();
        all.into_iter().map(|(span, after)| (span, total - after)).collect()
    }

    fn forward(bytes: &[u8], limits: LogReadLimits) -> Vec<(LogEntrySpan, u64)> {
        let from = read_at::RangeReader { source: bytes, offset: 0, end: bytes.len() as u64 };
        let mut reader = ForwardReader::new(from, 0, 0, limits);
        let mut all = Vec::new();
        while let Some(found) = reader.next().unwrap() {
            all.push((found.span, found.lines));
        }
        all
    }

    #[test]
    fn an_entry_has_its_stack_trace_wherever_a_chunk_ends() {
        let text =
            b"2026-11-20 10:00:00 ERROR failed\njava.lang.IllegalStateException: bad\n\tat a.B(B.java:1)\n\n\
            Caused by: x\n2026-11-20 10:00:01 INFO up\n{\"level\":50}\nTypeError: x\n    at f (a.js:1:2)\n";
        let expected = forward(text, LogReadLimits::DEFAULT);
        assert_eq!(
            expected.iter().map(|(span, line)| (span.start, *line)).collect::<Vec<_>>(),
            [(0, 0), (102, 5), (130, 6), (143, 7)]
        );
        for chunk in 1..text.len() + 2 {
            assert_eq!(
                backward(text, LogReadLimits { chunk_bytes: chunk, max_line_bytes: 1000 }),
                expected,
                "chunks of {chunk} bytes"
            );
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
            "more text",
            "\u{feff}text",
            "E, [2026-11-20T10:00:00.123456 #7] ERROR -- : a.rb:6:in `f': x (RuntimeError)",
            "2026-11-20 10:00:00 UTC [7] STATEMENT:  x",
            "2026-11-20T10:00:00Z stderr F 2026-11-20 10:00:00 ERROR x",
            "2026-11-20T10:00:00Z stderr F text",
            "2026-11-20T10:00:00Z stderr F ",
            "2026-11-20T10:00:00Z stdout P {\"level\":",
            "2026-11-20T10:00:00Z stdout F 50}",
            "2026-11-20T10:00:00Z stderr F   at x",
            "2026-11-20T10:00:00Z stdout F ",
            "{\"log\":\"x\",\"stream\":\"stdout\",\"time\":\"2026-11-20T10:00:00Z\"}",
            "{\"log\":\"x\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-20T10:00:00Z\"}",
            "thread 'main' panicked at a.rs:1:2:",
            "called `unwrap`",
            "Nov 20, 2026 10:00:00 AM a.B c",
            "SEVERE: x",
            "__CURSOR=s=1",
            "MESSAGE=x",
            "a.b.Cause: x",
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
            let limits = LogReadLimits { chunk_bytes: chunk, max_line_bytes: limit };
            let expected = forward(&bytes, LogReadLimits { chunk_bytes: 7, max_line_bytes: limit });
            prop_assert_eq!(backward(&bytes, limits), expected);
        }
    }
}
