//! Reads the lines before a region of a file, as far as they tell how its first lines are taken.

use super::forward::{LogReadLimits, is_blank};
use super::line::{LineKind, LineShape};
use super::line_classifier::LineClassifier;
use super::preceding_lines::PrecedingLines;
use super::read_at::ReadAt;
use std::io;

/// A line before the region.
struct EarlierLogLine {
    kind: LineKind,
    start: u64,
    end: u64,
}

/// Reads the lines before `end` that tell how the line which begins at `next` is taken; between both is nothing but
/// blank lines.
pub(super) fn read_preceding<S: ReadAt + ?Sized>(
    source: &S,
    end: u64,
    next: u64,
    limits: LogReadLimits,
) -> io::Result<PrecedingLines> {
    // Last to first.
    let mut lines = Vec::new();
    let mut at = end;
    let mut window = Window::default();
    // Of the lines that nothing wrapped, and of each stream of a container.
    let mut found_of = [EarlierStream::default(); 3];
    // The second line of java.util.logging has its time on the first, however far that is.
    let needs_first = |lines: &[EarlierLogLine]| {
        lines.last().is_some_and(|line| matches!(line.kind.shape, LineShape::LevelLine(_)))
    };
    while at > 0 && (lines.is_empty() || next - at <= limits.text_distance() || needs_first(&lines)) {
        let found = match window.line_before(at, limits) {
            Some(found) => found,
            None => match last_line(source, at, limits)? {
                Some(found) => found,
                None => {
                    at = 0;
                    break;
                }
            },
        };
        at = found.start;
        if found.kind.is_transparent() {
            continue;
        }
        let stderr = found.kind.stream_piece().map(|piece| piece.stderr);
        let index = stderr.map_or(0, |stderr| 1 + usize::from(stderr));
        if let Some(stream) = found_of.get_mut(index) {
            stream.add(found.kind);
        }
        lines.push(found);
        let [plain, stdout, stderr] = found_of;
        let is_settled = match index {
            // A line that nothing wrapped ends what goes on in a container, and the other way round.
            0 => plain.is_settled || stdout.is_known || stderr.is_known,
            _ => plain.is_known || stdout.is_settled && stderr.is_settled,
        };
        if is_settled {
            break;
        }
        if lines.len() == 1 {
            window = Window::read(source, at, limits)?;
        }
    }
    let mut preceding = PrecedingLines::none(at, limits.text_distance());
    for line in lines.iter().rev() {
        preceding.add(line.kind, line.start, line.end);
    }
    Ok(preceding)
}

/// The lines of one stream that were found before the region, last to first.
#[derive(Clone, Copy, Debug, Default)]
struct EarlierStream {
    is_known: bool,
    /// No line before these matters.
    is_settled: bool,
    /// The first of them is the second line of java.util.logging, which depends on the first.
    after_level: bool,
}

impl EarlierStream {
    fn add(&mut self, kind: LineKind) {
        let is_enough = self.after_level || kind.is_anchor();
        self.after_level = matches!(kind.shape, LineShape::LevelLine(_));
        self.is_settled |= is_enough && !self.after_level;
        self.is_known = true;
    }
}

/// The bytes before a line.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn read<S: ReadAt + ?Sized>(source: &S, end: u64, limits: LogReadLimits) -> io::Result<Self> {
        let start = end.saturating_sub(limits.text_distance() + 1);
        Ok(Self { start, bytes: read(source, start, end)? })
    }

    /// Returns the line that ends at `end`, if the window has the whole of it.
    fn line_before(&self, end: u64, limits: LogReadLimits) -> Option<EarlierLogLine> {
        let length = usize::try_from(end.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(..length)?;
        let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let begin = match memchr::memrchr(b'\n', body) {
            Some(feed) => feed + 1,
            None if self.start == 0 && !bytes.is_empty() => 0,
            None => return None,
        };
        let kind = classify(body.get(begin..)?, limits);
        Some(EarlierLogLine { kind, start: self.start + begin as u64, end })
    }
}

/// Reads the last line before `end` that is not blank.
fn last_line<S: ReadAt + ?Sized>(
    source: &S,
    end: u64,
    limits: LogReadLimits,
) -> io::Result<Option<EarlierLogLine>> {
    let mut stop = end;
    let last = loop {
        if stop == 0 {
            return Ok(None);
        }
        let start = stop.saturating_sub(4096);
        match read(source, start, stop)?.iter().rposition(|byte| !is_blank(&[*byte])) {
            Some(last) => break start + last as u64,
            None => stop = start,
        }
    };
    // A longer line counts as cut off, exactly as when reading forward.
    let start = last.saturating_sub(limits.max_line_bytes as u64 + 1);
    let window_end = end.min(last + limits.max_line_bytes as u64 + 2);
    let window = read(source, start, window_end)?;
    let (head, tail) = window.split_at(usize::try_from(last - start).unwrap_or_default());
    let begin = memchr::memrchr(b'\n', head).map(|feed| feed + 1).or((start == 0).then_some(0));
    let feed = memchr::memchr(b'\n', tail).map(|feed| feed + head.len());
    let long = EarlierLogLine { kind: LineKind::BLANK.cut(), start, end: window_end };
    let (Some(begin), Some(feed)) = (begin, feed) else { return Ok(Some(long)) };
    let kind = classify(window.get(begin..feed).unwrap_or_default(), limits);
    Ok(Some(EarlierLogLine { kind, start: start + begin as u64, end: start + feed as u64 + 1 }))
}

fn classify(line: &[u8], limits: LogReadLimits) -> LineKind {
    if is_blank(line) {
        return LineKind::BLANK;
    }
    if line.len() > limits.max_line_bytes {
        return LineKind::BLANK.cut();
    }
    let zeros = line.iter().take_while(|byte| **byte == 0).count();
    LineClassifier::default().classify(line.get(zeros..).unwrap_or_default())
}

fn read<S: ReadAt + ?Sized>(source: &S, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.fill(&mut bytes, start, usize::try_from(end - start).unwrap_or_default())?;
    Ok(bytes)
}
