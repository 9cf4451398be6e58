//! [`LineClassifier`]: judges a line by its own content alone.

use super::head::FormatFamily;
use super::json::{self, LevelScan};
use super::level::EntryLevel;
use super::line::{LineFormat, LineKind, LineShape, LogEntryHead, PreviousLine, TextLines, first_level};
use super::line_bytes::{trim_start, without_colour};
use super::read_at::ReadAt;
use super::w3c::W3cLayout;
use super::{container, journal, logfmt, plain, stack_trace};

// A log rarely has lines of more than four loggers or levels at a time, and each costs a comparison a line.
/// The number of line prefixes that are remembered with their levels.
const MAX_PREFIXES: usize = 4;

/// Classifies lines. It remembers how the last ones began, as most lines of a log state their level in the same
/// bytes as a line before them.
#[derive(Debug, Default)]
pub(super) struct LineClassifier {
    prefixes: [LinePrefix; MAX_PREFIXES],
    /// The index of the prefix that is replaced next.
    oldest: usize,
    /// The columns of the lines, where a line before them named these.
    layout: Option<W3cLayout>,
}

/// The first bytes of a line, as four words that are compared at once, and a mask of the bits that count.
#[derive(Clone, Copy, Debug, Default)]
struct LinePrefix {
    words: [u64; 4],
    mask: [u64; 4],
    level: Option<EntryLevel>,
}

/// The number of bytes at the beginning of a line that are compared.
const COMPARED_BYTES: usize = 32;

/// The number of bytes at the beginning of a file in which a line may name the columns of the others.
const HEADER_BYTES: usize = 4096;

/// Splits bytes into words.
fn words(bytes: &[u8; COMPARED_BYTES]) -> [u64; 4] {
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

impl LineClassifier {
    /// Creates a classifier of the lines of `source`, whose beginning may name their columns.
    pub(super) fn of<S: ReadAt + ?Sized>(source: &S) -> Self {
        let mut beginning = [0; HEADER_BYTES];
        // A source that cannot be read is an error where its lines are read.
        let read = source.read_at(&mut beginning, 0).unwrap_or_default();
        Self { layout: W3cLayout::find(beginning.get(..read).unwrap_or_default()), ..Self::default() }
    }

    /// Classifies `line`, which comes without its line feed and without zeros in front.
    pub(super) fn classify(&mut self, line: &[u8]) -> LineKind {
        match container::open(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)) {
            Some(wrapped) => {
                let is_named = wrapped.field.0 == "service";
                self.content(&wrapped.content).wrapped(wrapped.piece, &wrapped.content, is_named)
            }
            None => self.content(line),
        }
    }

    /// Classifies the beginning of a line that is longer than the limit.
    pub(super) fn classify_cut(&mut self, line: &[u8]) -> LineKind {
        let content = trim_start(line);
        if content.first() == Some(&b'{') && !matches!(line.first(), Some(b' ' | b'\t')) {
            return LineKind::head(first_level(content), LineFormat::Cut).cut();
        }
        self.classify(line).cut()
    }

    /// Classifies a line whose hole of zeros is longer than the limit, and whose text is not.
    pub(super) fn classify_after_hole(&mut self, line: &[u8]) -> LineKind {
        self.classify(line).cut()
    }

    /// Classifies what an application wrote.
    fn content(&mut self, line: &[u8]) -> LineKind {
        if line.starts_with(W3cLayout::DIRECTIVE) {
            self.layout = W3cLayout::parse(line);
        }
        if let Some(kind) = self.layout.and_then(|layout| columns(layout, line)) {
            return kind;
        }
        match line.first() {
            Some(b'{') => self.json(line),
            // White space, or a byte order mark.
            None | Some(0..=b' ' | 0xef) => {
                let content = trim_start(line);
                match content.first() {
                    None => LineKind::BLANK,
                    Some(_) if content.len() == line.len() => classify_text(content),
                    Some(b'{') if !matches!(line.first(), Some(b' ' | b'\t')) => self.json(content),
                    Some(_) => classify_indented(line, content),
                }
            }
            Some(_) => classify_text(line),
        }
    }

    /// Classifies a line that begins with a brace.
    fn json(&mut self, line: &[u8]) -> LineKind {
        let ended = match line {
            [.., b'}'] => true,
            [.., b'\r' | b' ' | b'\t'] => line.trim_ascii_end().last() == Some(&b'}'),
            _ => false,
        };
        if !ended {
            // A pretty-printed object begins with a brace on a line of its own.
            return if line.trim_ascii_end() == b"{" {
                LineKind::new(LineShape::Continuation)
            } else {
                LineKind::head(None, LineFormat::Malformed)
            };
        }
        if let Some(known) = self.remembered_head(line) {
            return LineKind::new(LineShape::Head(known));
        }
        let may_hold_another = may_hold_another_record(line);
        if may_hold_another && json::parse(line).is_none() {
            return LineKind::head(None, LineFormat::Malformed);
        }
        match json::scan_level(line) {
            LevelScan::Found(level, used) => {
                if !may_hold_another {
                    self.remember(line.get(..used), level);
                }
                LineKind::head(Some(level), LineFormat::Json)
            }
            LevelScan::Absent if line.trim_ascii_end().len() > 2 => {
                LineKind::head(json::request_level(line), LineFormat::Json)
            }
            LevelScan::Absent => LineKind::new(LineShape::Continuation),
            LevelScan::Undecided => match json::parse(line) {
                Some(parsed) => LineKind::head(parsed.level, LineFormat::Json),
                None => LineKind::head(None, LineFormat::Malformed),
            },
        }
    }

    /// Returns the head of `line` if the line begins with a remembered prefix.
    // Called for every line of a log, so it compares words and never parses.
    #[inline]
    pub(super) fn remembered_head(&self, line: &[u8]) -> Option<LogEntryHead> {
        let (bytes, [.., b'}']) = (line.first_chunk::<COMPARED_BYTES>()?, line) else { return None };
        let own = words(bytes);
        let same = |prefix: &&LinePrefix| {
            // Without branches between the words, the comparison costs a few cycles.
            let differs = |word: usize| (own[word] ^ prefix.words[word]) & prefix.mask[word];
            prefix.level.is_some() && differs(0) | differs(1) | differs(2) | differs(3) == 0
        };
        self.prefixes
            .iter()
            .find(same)
            .filter(|_| !may_hold_another_record(line))
            .map(|prefix| LogEntryHead { level: prefix.level, format: LineFormat::Json })
    }

    /// Remembers that lines which begin with `prefix` have this level.
    fn remember(&mut self, prefix: Option<&[u8]>, level: EntryLevel) {
        let (mut bytes, mut mask) = ([0; COMPARED_BYTES], [0; COMPARED_BYTES]);
        let prefix = prefix.unwrap_or_default();
        if let (Some(kept), Some(masked)) = (bytes.get_mut(..prefix.len()), mask.get_mut(..prefix.len()))
            && let Some(slot) = self.prefixes.get_mut(self.oldest)
            && !prefix.is_empty()
        {
            kept.copy_from_slice(prefix);
            masked.fill(0xff);
            *slot = LinePrefix { words: words(&bytes), mask: words(&mask), level: Some(level) };
            self.oldest = (self.oldest + 1) % MAX_PREFIXES;
        }
    }
}

/// Returns whether `line`, which begins with a brace, may have the beginning of another record within: writers that do not
/// wait for each other end a record within another one, or leave out the line feed between two. The level at the beginning
/// of the line says nothing of the other record then.
// Called for every line of a log: most have no second brace. Where it returns true, the line is parsed.
#[inline]
fn may_hold_another_record(line: &[u8]) -> bool {
    /// The number of bytes with which records of one writer begin.
    const BEGINNING_BYTES: usize = 6;
    let beginning = line.get(..BEGINNING_BYTES).unwrap_or(line);
    memchr::memchr_iter(b'{', line).skip(1).any(|at| {
        let (before, rest) = line.split_at(at);
        let previous = before.trim_ascii_end().last();
        // A quote within a text is escaped.
        let is_object = matches!(rest, [_, b'"', ..]);
        previous == Some(&b'}')
            || is_object && (!matches!(previous, Some(b':' | b',' | b'[')) || rest.starts_with(beginning))
    })
}

/// Classifies a line whose columns have the layout, if it has as many.
fn columns(layout: W3cLayout, line: &[u8]) -> Option<LineKind> {
    // Other directives, such as `#Date`, tell of the file and not of a request.
    if layout.is_directive(line) {
        return Some(LineKind::head(Some(EntryLevel::Info), LineFormat::Unrecognized));
    }
    Some(LineKind::head(layout.row(line)?.level, LineFormat::W3c(layout)))
}

/// Classifies a line that begins with white space or a byte order mark.
fn classify_indented(line: &[u8], content: &[u8]) -> LineKind {
    // Loggers that pad their levels to one width: ` INFO app > up`.
    let padded = line.len() - content.len() == 1 && line.first() == Some(&b' ');
    let kind = classify_text(content);
    match kind.shape {
        LineShape::Head(LogEntryHead { level: Some(_), .. }) if padded || is_pretty(line, content) => kind,
        _ if line.first() == Some(&0xef) || content.starts_with(b"+ Exception Group Traceback") => kind,
        _ => LineKind::new(LineShape::Continuation),
    }
}

/// Returns whether `line` is the first of a record that `tracing-subscriber` writes `pretty`: two spaces, and a time
/// like `2026-11-20T10:00:00.123456Z`.
fn is_pretty(line: &[u8], content: &[u8]) -> bool {
    let plain = without_colour(content);
    let content = plain.as_deref().unwrap_or(content);
    line.starts_with(b"  ")
        && line.get(2).is_some_and(|byte| *byte != b' ')
        && content.get(10) == Some(&b'T')
        && plain::is_timed(content)
}

/// Classifies a line of text.
fn classify_text(line: &[u8]) -> LineKind {
    let text = line.trim_ascii_end();
    match memchr::memchr(b'\r', text) {
        None => classify_text_line(line),
        Some(end) => {
            let (first, rest) = text.split_at(end);
            classify_pieces(first, rest)
        }
    }
}

/// Classifies a line that has carriage returns within: a terminal overwrites what stands before one, and old programs end
/// their lines with them. The worst level of the pieces is that of the line.
fn classify_pieces(first: &[u8], rest: &[u8]) -> LineKind {
    let level = |kind: LineKind| match kind.shape {
        LineShape::Head(head) | LineShape::LevelLine(head) => head.level,
        LineShape::Exception => LogEntryHead::EXCEPTION.level,
        LineShape::Blank | LineShape::Continuation | LineShape::Frame | LineShape::Text => None,
    };
    let kind = classify_text_line(first);
    let pieces = rest.split(|byte| *byte == b'\r').map(<[u8]>::trim_ascii).filter(|piece| !piece.is_empty());
    let worst = pieces.filter_map(|piece| level(classify_text_line(piece))).max();
    match (worst, kind.shape) {
        (None, _) => kind,
        (Some(worst), LineShape::Head(head)) if head.level.is_none_or(|level| level < worst) => {
            kind.with_shape(LineShape::Head(LogEntryHead { level: Some(worst), ..head }))
        }
        (Some(_), LineShape::Head(_)) => kind,
        (Some(worst), _) => LineKind::head(Some(worst), LineFormat::Text),
    }
}

/// Classifies a line of text without carriage returns within.
// The order matters: a line of logfmt may also contain a level in capitals, and an exception may look like a frame.
fn classify_text_line(line: &[u8]) -> LineKind {
    let plain = without_colour(line);
    let line = plain.as_deref().unwrap_or(line);
    if let Some(pairs) = logfmt::pairs(line) {
        return LineKind::head(logfmt::level(&pairs), LineFormat::Logfmt);
    }
    // The machine itself writes this of an exception that nobody caught, whatever stands before.
    if line.starts_with(b"Exception in thread \"") {
        return LineKind::head(Some(EntryLevel::Error), LineFormat::Text);
    }
    // A logger may write an exception's line behind its own time.
    if stack_trace::is_exception(line) && !plain::is_timed(line) {
        return LineKind::new(LineShape::Exception);
    }
    if journal::is_part(line) {
        return match journal::is_head(line) {
            // A binary value may have any lines.
            true => LineKind::head(None, LineFormat::Late)
                .taking(PreviousLine::TakesException { text: TextLines::Plain }),
            false => LineKind::new(LineShape::Continuation),
        };
    }
    match plain::head(line) {
        Some(head) if head.family == FormatFamily::JavaUtil => {
            LineKind::head(None, LineFormat::Late).taking(PreviousLine::TakesLevel)
        }
        Some(head) => {
            // An application that writes JSON to syslog knows its level better than the daemon.
            let level = match head.family {
                FormatFamily::Syslog => embedded_level(line, head.message).or(head.level),
                _ => head.level.or_else(|| embedded_level(line, head.message)),
            };
            if level.is_none() && is_postgres_detail(line, head.message) {
                return LineKind::new(LineShape::Continuation);
            }
            let kind = LineKind::head(level, LineFormat::Text);
            let is_timed = head.stamp.is_some() && head.family == FormatFamily::Plain;
            let kind = if is_timed { kind.timed() } else { kind };
            match kind.shape {
                LineShape::Head(head) if is_level_line(line) => kind.with_shape(LineShape::LevelLine(head)),
                _ if stack_trace::announces_message(line) => kind.taking(PreviousLine::TakesMessage),
                _ => kind,
            }
        }
        None if stack_trace::continues(line) => LineKind::new(LineShape::Continuation),
        None if stack_trace::is_frame(line) || stack_trace::is_cause(line) => LineKind::new(LineShape::Frame),
        None => LineKind::new(LineShape::Text),
    }
}

/// Returns the level of a JSON object that ends a line of text, where the text before it names none.
fn embedded_level(line: &[u8], message: usize) -> Option<EntryLevel> {
    let object = line.get(json::embedded(line).filter(|at| *at >= message)?..)?;
    match json::scan_level(object) {
        LevelScan::Found(level, _) => Some(level),
        LevelScan::Absent => None,
        LevelScan::Undecided => json::parse(object)?.level,
    }
}

/// Returns whether `line` is one of those that PostgreSQL writes behind an error, each with a time of its own:
/// `2026-11-20 10:00:00.123 UTC [7] STATEMENT:  SELECT 1/0`. It writes them at once, so nothing stands between.
fn is_postgres_detail(line: &[u8], message: usize) -> bool {
    const NAMES: [&[u8]; 7] =
        [b"DETAIL", b"HINT", b"QUERY", b"CONTEXT", b"LOCATION", b"STATEMENT", b"BACKTRACE"];
    let window = line.get(message..line.len().min(message + 200)).unwrap_or_default();
    let Some(colon) = memchr::memmem::find(window, b":  ") else { return false };
    let before = window.get(..colon).unwrap_or_default();
    let is_word = |at: usize| at == 0 || before.get(at - 1) == Some(&b' ');
    NAMES.iter().any(|name| before.ends_with(name) && is_word(before.len() - name.len()))
}

/// Returns whether `line` begins as the second line of an entry of java.util.logging: `SEVERE: message`.
fn is_level_line(line: &[u8]) -> bool {
    const LEVELS: [&[u8]; 7] =
        [b"SEVERE: ", b"WARNING: ", b"INFO: ", b"CONFIG: ", b"FINE: ", b"FINER: ", b"FINEST: "];
    matches!(line.first(), Some(b'S' | b'W' | b'I' | b'C' | b'F'))
        && LEVELS.iter().any(|level| line.starts_with(level))
}

#[cfg(test)]
mod tests {
    use super::super::line::LineRole;
    use super::*;

    fn kind(line: &str) -> LineKind {
        LineClassifier::default().classify(line.as_bytes())
    }

    fn head(level: Option<EntryLevel>, format: LineFormat) -> LineShape {
        LineShape::Head(LogEntryHead { level, format })
    }

    #[test]
    fn a_line_is_what_it_looks_like() {
        for (line, expected) in [
            (r#"{"level":50}"#, head(Some(EntryLevel::Error), LineFormat::Json)),
            ("{\"level\":50}\r", head(Some(EntryLevel::Error), LineFormat::Json)),
            ("\u{feff}{\"level\":50}", head(Some(EntryLevel::Error), LineFormat::Json)),
            (r#"{"a":1}"#, head(None, LineFormat::Json)),
            (r#"{"level":50,"#, head(None, LineFormat::Malformed)),
            ("{not json}", head(None, LineFormat::Malformed)),
            ("{", LineShape::Continuation),
            ("{}", LineShape::Continuation),
            (r#"  "a": 1,"#, LineShape::Continuation),
            ("level=warn msg=x", head(Some(EntryLevel::Warn), LineFormat::Logfmt)),
            ("\u{1b}[31mERROR\u{1b}[0m boom", head(Some(EntryLevel::Error), LineFormat::Text)),
            (" INFO app > up", head(Some(EntryLevel::Info), LineFormat::Text)),
            ("    INFO is not here", LineShape::Continuation),
            ("listening", LineShape::Text),
            ("ValueError: bad", LineShape::Exception),
            ("", LineShape::Blank),
            (" \t\r", LineShape::Blank),
            // Two records on one line, and one within another.
            (r#"{"level":30,"msg":"a"}{"level":50,"msg":"b"}"#, head(None, LineFormat::Malformed)),
            (r#"{"level":30,"msg":"a"} {"level":50,"msg":"b"}"#, head(None, LineFormat::Malformed)),
            (r#"{"level":30,"msg":"half {"level":50,"msg":"b"}"#, head(None, LineFormat::Malformed)),
            (r#"{"level":30,"msg":"half, {"level":50,"msg":"b"}"#, head(None, LineFormat::Malformed)),
            (
                r#"{"level":30,"a":{"b":[{"c":{"level":50}}]},"msg":"x{\"y\"} {z} {"}"#,
                head(Some(EntryLevel::Info), LineFormat::Json),
            ),
            ("10%\r20%\rERROR failed\r", head(Some(EntryLevel::Error), LineFormat::Text)),
            (
                "2026-11-20 10:00:00 INFO a\r2026-11-20 10:00:01 ERROR b",
                head(Some(EntryLevel::Error), LineFormat::Text),
            ),
            (
                "2026-11-20 10:00:00 WARN a\r2026-11-20 10:00:01 INFO b\r",
                head(Some(EntryLevel::Warn), LineFormat::Text),
            ),
            ("10%\r20%", LineShape::Text),
        ] {
            assert_eq!(kind(line).shape, expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_remembered_of_a_line_is_enough_to_tell_the_next() {
        let mut classifier = LineClassifier::default();
        for (line, level) in [
            (r#"{"level":5,"a":1}"#, EntryLevel::Info),
            (r#"{"level":50,"a":1}"#, EntryLevel::Error),
            (r#"{"level":"warn"}"#, EntryLevel::Warn),
            (r#"{"level":"warning"}"#, EntryLevel::Warn),
            (r#"{"level":"error","level":"info"}"#, EntryLevel::Error),
            (r#"{"level":50}"#, EntryLevel::Error),
            (r#"{"level":30,"time":1795773601000,"msg":"aaaaaaaaaaaaaaaaa"}"#, EntryLevel::Info),
        ] {
            assert_eq!(
                classifier.classify(line.as_bytes()).shape,
                head(Some(level), LineFormat::Json),
                "{line}"
            );
            assert_eq!(classifier.classify(line.as_bytes()), kind(line));
        }
        let torn = br#"{"level":30,"time":1795773601000,"msg":"half {"level":50,"msg":"boom"}"#;
        assert_eq!(classifier.remembered_head(torn), None);
        assert_eq!(classifier.classify(torn).shape, head(None, LineFormat::Malformed));
    }

    #[test]
    fn an_exception_joins_a_stack_trace_or_a_warning_and_else_stands_for_itself() {
        let exception = kind("ValueError: bad");
        for previous in ["  File \"a.py\", line 1", "2026-11-20 10:00:00 ERROR failed", "TypeError: x"] {
            assert_eq!(exception.role(kind(previous).as_previous()), LineRole::Continuation, "{previous}");
        }
        for previous in [r#"{"level":50}"#, "2026-11-20 10:00:00 INFO up", "listening"] {
            assert_eq!(
                exception.role(kind(previous).as_previous()),
                LineRole::Head(LogEntryHead::EXCEPTION),
                "{previous}"
            );
        }
    }
}
