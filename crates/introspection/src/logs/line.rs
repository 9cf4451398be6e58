//! [`LineKind`]: the kinds of lines, and the part that each has in an entry: its head, a continuation, or blank.
//!
//! An entry is a head and the lines that continue it. Both readers, [`backward`](super::backward) and
//! [`forward`](super::forward), apply the rules here, and so find the same entries.

use super::container::ContainerLinePiece;
use super::json::{self, LevelScan};
use super::level::EntryLevel;
use super::w3c::W3cLayout;

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
    /// Columns that a `#Fields` line of the file names.
    W3c(W3cLayout),
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
    pub(super) const EXCEPTION: Self = Self { level: Some(EntryLevel::Error), format: LineFormat::Text };
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

    /// Returns the kind of a line of this shape that nothing wraps.
    pub(super) const fn new(shape: LineShape) -> Self {
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

    /// Returns the kind of the first line of an entry.
    pub(super) const fn head(level: Option<EntryLevel>, format: LineFormat) -> Self {
        Self::new(LineShape::Head(LogEntryHead { level, format }))
    }

    /// Returns the same kind, for a line that takes the one after it in this way.
    pub(super) const fn taking(self, next: PreviousLine) -> Self {
        Self { next, ..self }
    }

    /// Returns the same kind, for a line of this shape.
    pub(super) const fn with_shape(self, shape: LineShape) -> Self {
        Self { shape, ..self }
    }

    /// Returns the same kind, for a line with a time: text continues it where an exception does.
    pub(super) fn timed(self) -> Self {
        match self.next {
            PreviousLine::TakesException { .. } => {
                Self { next: PreviousLine::TakesException { text: TextLines::Plain }, ..self }
            }
            _ => self,
        }
    }

    /// Returns the kind of a line that is longer than the limit.
    pub(super) fn cut(self) -> Self {
        // Only the beginning of a long line is read. The rest may hold text, so the line does not count as blank.
        let shape = if self.shape == LineShape::Blank { LineShape::Continuation } else { self.shape };
        Self { shape, next: PreviousLine::Other, is_cut: true, ..self }
    }

    /// Returns the kind of a line whose content is this one, and which is a `piece`.
    pub(super) fn wrapped(self, piece: ContainerLinePiece, content: &[u8], is_named: bool) -> Self {
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
    pub(super) fn following(self, previous: PreviousLine) -> PreviousLine {
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

/// Returns the level that the beginning of a JSON object states.
pub(super) fn first_level(line: &[u8]) -> Option<EntryLevel> {
    match json::scan_level(line) {
        LevelScan::Found(level, _) => Some(level),
        LevelScan::Absent | LevelScan::Undecided => None,
    }
}
