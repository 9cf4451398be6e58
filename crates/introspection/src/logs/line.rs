//! Classifies lines: the head of an entry, the continuation of one, or blank.
//!
//! An entry is a head and the lines that continue it. Both readers, [`backward`](super::backward) and
//! [`forward`](super::forward), apply the rules here, and so find the same entries.

use super::container::{self, ContainerLinePiece};
use super::head::FormatFamily;
use super::json::{self, LevelScan};
use super::level::EntryLevel;
use super::{journal, logfmt, plain, stack_trace};

/// A line, judged by its own content alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineKind {
    pub(super) shape: LineShape,
    /// The part of a line that it is, if a container's runtime wrapped it.
    piece: Option<ContainerLinePiece>,
    /// How the line takes the one after it.
    next: PreviousLine,
    /// True if the line is longer than the limit, so that it is not read for the lines after it.
    is_cut: bool,
}

/// The look of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineShape {
    /// A line of white space.
    Blank,
    /// A line that continues the entry before it.
    Continuation,
    /// The name of an exception: it continues the entry before it or begins its own; [`LineKind::role`] decides.
    Exception,
    /// A line that looks like the name of a function or like a cause: part of a stack trace, or text.
    Frame,
    /// Text in no known format: a line of the message before it, or an entry of its own.
    Text,
    /// A level and a message: the second line of an entry of java.util.logging, or an entry of its own.
    LevelLine(LogEntryHead),
    /// The first line of an entry.
    Head(LogEntryHead),
}

/// The level and the format that the first line of an entry shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEntryHead {
    pub(super) level: Option<EntryLevel>,
    pub(super) format: LineFormat,
}

/// The format of the first line of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFormat {
    /// A JSON object, or a line that begins and ends like one.
    Json,
    /// Pairs of `key=value`.
    Logfmt,
    /// Text with a time or a level in front.
    Text,
    /// The beginning of an entry that is known only with its other lines: without a level, any is possible.
    Late,
    /// The beginning of a JSON object that is longer than the limit: without a level, any is possible.
    Cut,
    /// Text in no known format.
    Unrecognized,
    /// A line that begins as a JSON object and is not one.
    Malformed,
}

impl LogEntryHead {
    /// The head of a line in no known format.
    pub(super) const UNRECOGNIZED: Self = Self { level: None, format: LineFormat::Unrecognized };
    /// The head of an exception that begins its own entry.
    const EXCEPTION: Self = Self { level: Some(EntryLevel::Error), format: LineFormat::Text };
}

/// How the line before, blank lines aside, takes the line after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreviousLine {
    /// The line is part of a stack trace, or a warning in text: an exception continues it.
    TakesException {
        /// The lines in no known format that continue it too.
        text: TextLines,
    },
    /// The line announces a panic whose message stands on the next line.
    TakesMessage,
    /// The line is the first of two of java.util.logging.
    TakesLevel,
    /// The line is another one, or there is none: an exception begins its own entry.
    Other,
}

/// The lines in no known format that continue an entry. They do where a time begins the entry: its message, or that of
/// an exception, has several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLines {
    /// None: the entry has no time, so that nothing tells its lines from those of others.
    None,
    /// Those of the file itself.
    Plain,
    /// Those that a container's runtime wrapped, of this stream.
    Stream {
        /// True for the error stream.
        stderr: bool,
    },
}

/// The part that a line has in an entry, once the line before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineRole {
    /// A blank line, which changes nothing.
    Blank,
    /// A line that continues the entry.
    Continuation,
    /// The rest of a line that a container's runtime cut. It continues the entry with the beginning of that line.
    Rest,
    /// The first line of an entry.
    Head(LogEntryHead),
}

impl LineKind {
    /// A line of white space.
    pub(super) const BLANK: Self = Self::new(LineShape::Blank);

    const fn new(shape: LineShape) -> Self {
        let next = match shape {
            LineShape::Continuation | LineShape::Exception | LineShape::Frame => {
                PreviousLine::TAKES_EXCEPTION
            }
            LineShape::LevelLine(head) | LineShape::Head(head) => match (head.format, head.level) {
                (
                    LineFormat::Text | LineFormat::Logfmt,
                    Some(EntryLevel::Warn | EntryLevel::Error | EntryLevel::Fatal),
                ) => PreviousLine::TAKES_EXCEPTION,
                _ => PreviousLine::Other,
            },
            LineShape::Text | LineShape::Blank => PreviousLine::Other,
        };
        Self { shape, piece: None, next, is_cut: false }
    }

    const fn head(level: Option<EntryLevel>, format: LineFormat) -> Self {
        Self::new(LineShape::Head(LogEntryHead { level, format }))
    }

    /// Returns the same kind, for a line with a time: text continues it where an exception does.
    fn timed(self) -> Self {
        match self.next {
            PreviousLine::TakesException { .. } => {
                Self { next: PreviousLine::TakesException { text: TextLines::Plain }, ..self }
            }
            _ => self,
        }
    }

    /// Returns the kind of a line that is longer than the limit.
    pub(super) fn cut(self) -> Self {
        let shape = if self.shape == LineShape::Blank { LineShape::Continuation } else { self.shape };
        Self { shape, next: PreviousLine::Other, is_cut: true, ..self }
    }

    /// Returns the kind of a line whose content is this one, and which is a `piece`.
    fn wrapped(self, piece: ContainerLinePiece, content: &[u8], is_named: bool) -> Self {
        let mut kind = Self { piece: Some(piece), ..self };
        if let PreviousLine::TakesException { text: TextLines::Plain } = kind.next {
            // The names of services do not tell whose line the next one is.
            let stream = TextLines::Stream { stderr: piece.stderr };
            let text = if is_named { TextLines::None } else { stream };
            kind.next = PreviousLine::TakesException { text };
        }
        if piece.partial {
            // The rest of the object is in the pieces after this one.
            if let LineShape::Head(LogEntryHead { format: LineFormat::Malformed, .. }) = kind.shape {
                kind.shape =
                    LineShape::Head(LogEntryHead { level: first_level(content), format: LineFormat::Late });
            }
            kind.next = PreviousLine::Other;
        }
        kind
    }

    /// Returns whether the line changes nothing for the lines around it.
    pub(super) fn is_transparent(self) -> bool {
        self.shape == LineShape::Blank && self.piece.is_none()
    }

    /// Returns whether the part that the line has depends on the line before it.
    pub(super) fn depends_on_previous(self) -> bool {
        self.piece.is_some()
            || matches!(
                self.shape,
                LineShape::Continuation
                    | LineShape::Exception
                    | LineShape::Frame
                    | LineShape::Text
                    | LineShape::LevelLine(_)
            )
    }

    /// Returns whether the line alone tells how the line after it is taken, or nearly: no line before the one before it
    /// matters.
    pub(super) fn is_anchor(self) -> bool {
        self.is_cut || matches!(self.shape, LineShape::Head(_) | LineShape::LevelLine(_))
    }

    /// Returns whether the line, which is in no known format, continues an entry with the line `previous`.
    fn is_text_of(self, previous: PreviousLine) -> bool {
        let own = self.piece.map_or(TextLines::Plain, |piece| TextLines::Stream { stderr: piece.stderr });
        matches!(previous, PreviousLine::TakesException { text } if text == own)
    }

    /// Returns the piece that the line is, where all of it is read.
    pub(super) fn stream_piece(self) -> Option<ContainerLinePiece> {
        self.piece.filter(|_| !self.is_cut)
    }

    /// Returns the part that the line has after the line `previous`, where it is not the rest of a cut line.
    pub(super) fn role(self, previous: PreviousLine) -> LineRole {
        let joins = matches!(previous, PreviousLine::TakesException { .. } | PreviousLine::TakesMessage);
        match self.shape {
            LineShape::Blank => LineRole::Blank,
            LineShape::Head(head) => LineRole::Head(head),
            LineShape::LevelLine(_) if previous == PreviousLine::TakesLevel => LineRole::Continuation,
            LineShape::LevelLine(head) => LineRole::Head(head),
            LineShape::Text if previous == PreviousLine::TakesMessage || self.is_text_of(previous) => {
                LineRole::Continuation
            }
            LineShape::Exception | LineShape::Frame if joins => LineRole::Continuation,
            LineShape::Exception => LineRole::Head(LogEntryHead::EXCEPTION),
            LineShape::Frame | LineShape::Text => LineRole::Head(LogEntryHead::UNRECOGNIZED),
            LineShape::Continuation => LineRole::Continuation,
        }
    }

    /// Returns the part that the line has where nothing before it is known: it begins an entry, unless it is blank.
    pub(super) fn role_alone(self) -> LineRole {
        match self.role(PreviousLine::Other) {
            LineRole::Continuation | LineRole::Rest => LineRole::Head(LogEntryHead::UNRECOGNIZED),
            role => role,
        }
    }

    /// Returns how this line alone takes the line after it.
    pub(super) fn as_previous(self) -> PreviousLine {
        self.next
    }

    /// Returns how the line after this one is taken, where `previous` is how this one was.
    fn following(self, previous: PreviousLine) -> PreviousLine {
        let goes_on = self.is_cut || self.piece.is_some_and(|piece| piece.partial);
        let joined = matches!(self.next, PreviousLine::TakesException { .. });
        match self.shape {
            _ if goes_on => self.next,
            // The second line of java.util.logging has the level, and the first the time.
            LineShape::LevelLine(_) if previous == PreviousLine::TakesLevel && joined => self.timed().next,
            LineShape::Blank
            | LineShape::Text
            | LineShape::Continuation
            | LineShape::Exception
            | LineShape::Frame
                if self.is_text_of(previous) =>
            {
                previous
            }
            _ => self.next,
        }
    }
}

impl PreviousLine {
    /// A line that an exception continues, and text does not.
    pub(super) const TAKES_EXCEPTION: Self = Self::TakesException { text: TextLines::None };
}

/// The lines before a line, as far as they tell how it is taken. The streams of a container are told apart: a line
/// continues the last entry of its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrecedingLines {
    /// The lines that no runtime wrapped.
    plain: PrecedingStream,
    /// The lines of each stream of a container, standard output first, if there are any.
    streams: [Option<PrecedingStream>; 2],
    /// How far behind an anchor text still continues its entry, and how far behind a line of a stream the next one of that
    /// stream does, in bytes.
    max_distance: u64,
}

/// The lines of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrecedingStream {
    /// How the last line takes the next one, as a line of its entry.
    carried: PreviousLine,
    /// How the last line alone takes the next one.
    own: PreviousLine,
    /// The end of the last line that is an anchor.
    anchor_end: u64,
    /// The end of the last line.
    end: u64,
    /// A container's runtime cut the last line.
    is_cut: bool,
}

impl PrecedingStream {
    /// Nothing that matters stands before the offset.
    fn none(offset: u64) -> Self {
        let other = PreviousLine::Other;
        Self { carried: other, own: other, anchor_end: offset, end: offset, is_cut: false }
    }

    /// Returns how the line that begins at `offset` is taken.
    fn at(&self, offset: u64, max_distance: u64) -> PreviousLine {
        if offset.saturating_sub(self.anchor_end) > max_distance { self.own } else { self.carried }
    }

    fn add(&mut self, kind: LineKind, start: u64, end: u64, max_distance: u64) {
        (self.carried, self.own) = (kind.following(self.at(start, max_distance)), kind.as_previous());
        if kind.is_anchor() {
            self.anchor_end = end;
        }
        self.end = end;
        self.is_cut = kind.stream_piece().is_some_and(|piece| piece.partial);
    }
}

impl PrecedingLines {
    /// Nothing that matters stands before the offset. Text continues an entry up to `max_distance` behind its head.
    pub(super) fn none(offset: u64, max_distance: u64) -> Self {
        Self { plain: PrecedingStream::none(offset), streams: [None; 2], max_distance }
    }

    /// Returns the same lines, of which nothing matters but which of them were cut.
    pub(super) fn cuts_only(self) -> Self {
        let cut = |stream: Option<PrecedingStream>| {
            let stream = stream.filter(|stream| stream.is_cut)?;
            Some(PrecedingStream { end: stream.end, is_cut: true, ..PrecedingStream::none(stream.end) })
        };
        let [stdout, stderr] = self.streams;
        Self {
            plain: PrecedingStream::none(self.plain.end),
            streams: [cut(stdout), cut(stderr)],
            max_distance: self.max_distance,
        }
    }

    /// Returns the lines of a stream, if a line at `offset` may continue them.
    fn stream(&self, stderr: bool, offset: u64) -> Option<&PrecedingStream> {
        let stream = self.streams.get(usize::from(stderr))?.as_ref()?;
        (offset.saturating_sub(stream.end) <= self.max_distance).then_some(stream)
    }

    /// Returns whether a line of the stream at `offset` may continue an entry.
    pub(super) fn is_open(&self, stderr: bool, offset: u64) -> bool {
        self.stream(stderr, offset).is_some()
    }

    /// Returns the part of the line `kind`, which begins at `offset`.
    pub(super) fn role(&self, kind: LineKind, offset: u64) -> LineRole {
        let Some(piece) = kind.stream_piece() else {
            return kind.role(self.plain.at(offset, self.max_distance));
        };
        match self.stream(piece.stderr, offset) {
            Some(stream) if stream.is_cut => LineRole::Rest,
            Some(stream) => kind.role(stream.at(offset, self.max_distance)),
            None => kind.role_alone(),
        }
    }

    /// Adds the line from `start` to `end`.
    pub(super) fn add(&mut self, kind: LineKind, start: u64, end: u64) {
        if kind.is_transparent() {
            return;
        }
        let max_distance = self.max_distance;
        match kind.stream_piece() {
            Some(piece) => {
                let known = self.stream(piece.stderr, start).copied();
                let mut stream = known.unwrap_or_else(|| PrecedingStream::none(start));
                stream.add(kind, start, end, max_distance);
                if let Some(slot) = self.streams.get_mut(usize::from(piece.stderr)) {
                    *slot = Some(stream);
                }
                self.plain = PrecedingStream::none(end);
            }
            None => {
                self.plain.add(kind, start, end, max_distance);
                self.streams = [None; 2];
            }
        }
    }
}

/// Returns the level that the beginning of a JSON object states.
fn first_level(line: &[u8]) -> Option<EntryLevel> {
    match json::scan_level(line) {
        LevelScan::Found(level, _) => Some(level),
        LevelScan::Absent | LevelScan::Undecided => None,
    }
}

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
        match json::scan_level(line) {
            LevelScan::Found(level, used) => {
                self.remember(line.get(..used), level);
                LineKind::head(Some(level), LineFormat::Json)
            }
            LevelScan::Absent if line.trim_ascii_end().len() > 2 => LineKind::head(None, LineFormat::Json),
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
        let line = words(bytes);
        let same = |prefix: &&LinePrefix| {
            // Without branches between the words, the comparison costs a few cycles.
            let differs = |word: usize| (line[word] ^ prefix.words[word]) & prefix.mask[word];
            prefix.level.is_some() && differs(0) | differs(1) | differs(2) | differs(3) == 0
        };
        self.prefixes
            .iter()
            .find(same)
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

/// Returns `line` from its first byte that is neither white space, zero nor a byte order mark.
pub(super) fn trim_start(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let nothing = line.iter().take_while(|byte| **byte == 0 || byte.is_ascii_whitespace()).count();
    line.get(nothing..).unwrap_or_default()
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
// The order matters: a line of logfmt may also contain a level in capitals, and an exception may look like a frame.
fn classify_text(line: &[u8]) -> LineKind {
    let plain = without_colour(line);
    let line = plain.as_deref().unwrap_or(line);
    if let Some(pairs) = logfmt::pairs(line) {
        return LineKind::head(logfmt::level(&pairs), LineFormat::Logfmt);
    }
    // A logger may write an exception's line behind its own time.
    if stack_trace::is_exception(line) && !plain::is_timed(line) {
        return LineKind::new(LineShape::Exception);
    }
    if journal::is_part(line) {
        return match journal::is_head(line) {
            // A binary value may have any lines.
            true => LineKind {
                next: PreviousLine::TakesException { text: TextLines::Plain },
                ..LineKind::head(None, LineFormat::Late)
            },
            false => LineKind::new(LineShape::Continuation),
        };
    }
    match plain::head(line) {
        Some(head) if head.family == FormatFamily::JavaUtil => {
            LineKind { next: PreviousLine::TakesLevel, ..LineKind::head(None, LineFormat::Late) }
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
                LineShape::Head(head) if is_level_line(line) => {
                    LineKind { shape: LineShape::LevelLine(head), ..kind }
                }
                _ if stack_trace::announces_message(line) => {
                    LineKind { next: PreviousLine::TakesMessage, ..kind }
                }
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

/// Returns `line` without ANSI sequences (ECMA-48 CSI), or `None` if it has none.
pub(super) fn without_colour(line: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(0x1b, line)?;
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memmem::find(rest, b"\x1b[") {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
        let parameters = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
        let known = matches!(rest.get(parameters), Some(0x40..=0x7e));
        rest = rest.get(parameters + usize::from(known)..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(
                classifier.classify(line.as_bytes()).shape,
                head(Some(level), LineFormat::Json),
                "{line}"
            );
            assert_eq!(classifier.classify(line.as_bytes()), kind(line));
        }
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
