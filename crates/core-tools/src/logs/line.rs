//! What a line is: the beginning of an entry, the rest of one, or nothing.
//!
//! An entry is a beginning and the lines that go on with it. Both readers, [`Backward`](super::backward) and
//! [`Forward`](super::forward), find entries by the rules here and so find the same ones.

use super::json::{self, Glance};
use super::level::Level;
use super::{logfmt, plain};

/// What a line is, as far as it can tell itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// White space.
    Blank,
    /// It goes on with the entry before it.
    Continuation,
    /// It names an exception: a part of the entry before it, or the beginning of its own; see [`joins`].
    Exception,
    /// It looks like the name of a function: a part of a stack trace, or a word.
    Frame,
    /// It begins an entry.
    Head(Head),
}

/// The beginning of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) level: Option<Level>,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A JSON object, or what begins as one.
    Json,
    Logfmt,
    /// Text with a time or a level in front.
    Text,
    /// Text of which nothing is known.
    Loose,
    /// It was to be a JSON object, and is none.
    Malformed,
}

impl Head {
    /// What goes on with nothing.
    pub(super) const LOOSE: Self = Self { level: None, shape: Shape::Loose };
    /// An exception that goes on with nothing.
    const EXCEPTION: Self = Self { level: Some(Level::Error), shape: Shape::Text };
}

/// What stands before a line, blank lines aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// A line that an exception goes on with: a part of a stack trace, or text that warns of something.
    Joins,
    /// Anything else, or nothing.
    Stands,
}

/// A line among others: what it is once it is known what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Blank,
    Rest,
    Head(Head),
}

impl Kind {
    pub(super) fn place(self, before: Before) -> Place {
        match (self, before) {
            (Self::Blank, _) => Place::Blank,
            (Self::Head(head), _) => Place::Head(head),
            (Self::Exception, Before::Stands) => Place::Head(Head::EXCEPTION),
            (Self::Frame, Before::Stands) => Place::Head(Head::LOOSE),
            (Self::Exception | Self::Frame, Before::Joins) | (Self::Continuation, _) => Place::Rest,
        }
    }

    /// What this line is to the one after it.
    pub(super) fn before(self) -> Before {
        match self {
            Self::Continuation | Self::Exception | Self::Frame => Before::Joins,
            Self::Head(Head { level: Some(level), shape: Shape::Text | Shape::Logfmt })
                if level >= Level::Warn =>
            {
                Before::Joins
            }
            Self::Head(_) | Self::Blank => Before::Stands,
        }
    }
}

/// Beginnings of lines that were seen to say a level.
const REMEMBERED: usize = 4;

/// Tells what lines are. Remembers how the last ones began: most lines of a log say their level in the same
/// bytes as one before them.
#[derive(Debug, Default)]
pub(super) struct Classifier {
    known: [Prefix; REMEMBERED],
    oldest: usize,
}

/// The beginning of a line, to be compared in one go: four words, and which of their bits count.
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    words: [u64; 4],
    mask: [u64; 4],
    level: Option<Level>,
}

/// Bytes of a line that are compared.
const COMPARED: usize = 32;

fn words(bytes: &[u8; COMPARED]) -> [u64; 4] {
    let (chunks, _) = bytes.as_chunks::<8>();
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

impl Classifier {
    /// What `line` is, without its line feed and the zeros before it.
    pub(super) fn kind(&mut self, line: &[u8]) -> Kind {
        match line.first() {
            Some(b'{') => self.json(line),
            // White space, or a byte order mark.
            None | Some(0..=b' ' | 0xef) => {
                let content = trim_start(line);
                match content.first() {
                    None => Kind::Blank,
                    Some(_) if content.len() == line.len() => text(content),
                    Some(b'{') if !matches!(line.first(), Some(b' ' | b'\t')) => self.json(content),
                    Some(_) => indented(line, content),
                }
            }
            Some(_) => text(line),
        }
    }

    fn json(&mut self, line: &[u8]) -> Kind {
        let head = |level, shape| Kind::Head(Head { level, shape });
        let ended = match line {
            [.., b'}'] => true,
            [.., b'\r' | b' ' | b'\t'] => line.trim_ascii_end().last() == Some(&b'}'),
            _ => false,
        };
        if !ended {
            // What prints objects over several lines begins them so.
            return if line.trim_ascii_end() == b"{" {
                Kind::Continuation
            } else {
                head(None, Shape::Malformed)
            };
        }
        if let Some(known) = self.known(line) {
            return Kind::Head(known);
        }
        match json::glance(line) {
            Glance::Level(level, used) => {
                self.remember(line.get(..used), level);
                head(Some(level), Shape::Json)
            }
            Glance::Nothing if line.trim_ascii_end().len() > 2 => head(None, Shape::Json),
            Glance::Nothing => Kind::Continuation,
            Glance::Unsure => match json::parse(line) {
                Some(parsed) => head(parsed.level, Shape::Json),
                None => head(None, Shape::Malformed),
            },
        }
    }

    /// The beginning of an entry, where `line` is one that says its level in bytes that were seen before.
    #[inline]
    pub(super) fn known(&self, line: &[u8]) -> Option<Head> {
        let (bytes, [.., b'}']) = (line.first_chunk::<COMPARED>()?, line) else { return None };
        let line = words(bytes);
        let same = |prefix: &&Prefix| {
            let differs = |place: usize| (line[place] ^ prefix.words[place]) & prefix.mask[place];
            prefix.level.is_some() && differs(0) | differs(1) | differs(2) | differs(3) == 0
        };
        self.known.iter().find(same).map(|prefix| Head { level: prefix.level, shape: Shape::Json })
    }

    fn remember(&mut self, begins: Option<&[u8]>, level: Level) {
        let (mut bytes, mut mask) = ([0; COMPARED], [0; COMPARED]);
        let begins = begins.unwrap_or_default();
        if let (Some(kept), Some(masked)) = (bytes.get_mut(..begins.len()), mask.get_mut(..begins.len()))
            && let Some(slot) = self.known.get_mut(self.oldest)
            && !begins.is_empty()
        {
            kept.copy_from_slice(begins);
            masked.fill(0xff);
            *slot = Prefix { words: words(&bytes), mask: words(&mask), level: Some(level) };
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
    }
}

/// `line` from its first byte that says something.
pub(super) fn trim_start(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let nothing = line.iter().take_while(|byte| **byte == 0 || byte.is_ascii_whitespace()).count();
    line.get(nothing..).unwrap_or_default()
}

/// A line that begins with white space or worse.
fn indented(line: &[u8], content: &[u8]) -> Kind {
    // Loggers that pad their levels to one width: ` INFO app > up`.
    let padded = line.len() - content.len() == 1 && line.first() == Some(&b' ');
    match text(content) {
        kind @ Kind::Head(Head { level: Some(_), .. }) if padded => kind,
        kind if line.first() == Some(&0xef) => kind,
        _ => Kind::Continuation,
    }
}

fn text(line: &[u8]) -> Kind {
    let plain = without_colour(line);
    let line = plain.as_deref().unwrap_or(line);
    if let Some(pairs) = logfmt::pairs(line) {
        return Kind::Head(Head { level: logfmt::level(&pairs), shape: Shape::Logfmt });
    }
    if plain::is_exception(line) {
        return Kind::Exception;
    }
    match plain::head(line) {
        Some(head) => Kind::Head(Head { level: head.level, shape: Shape::Text }),
        None if plain::continues(line) => Kind::Continuation,
        None if plain::is_frame(line) => Kind::Frame,
        None => Kind::Head(Head::LOOSE),
    }
}

/// `line` without ANSI sequences (ECMA-48 CSI), if it has any.
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

    fn kind(line: &str) -> Kind {
        Classifier::default().kind(line.as_bytes())
    }

    fn head(level: Option<Level>, shape: Shape) -> Kind {
        Kind::Head(Head { level, shape })
    }

    #[test]
    fn a_line_is_what_it_looks_like() {
        for (line, expected) in [
            (r#"{"level":50}"#, head(Some(Level::Error), Shape::Json)),
            ("{\"level\":50}\r", head(Some(Level::Error), Shape::Json)),
            ("\u{feff}{\"level\":50}", head(Some(Level::Error), Shape::Json)),
            (r#"{"a":1}"#, head(None, Shape::Json)),
            (r#"{"level":50,"#, head(None, Shape::Malformed)),
            ("{not json}", head(None, Shape::Malformed)),
            ("{", Kind::Continuation),
            ("{}", Kind::Continuation),
            (r#"  "a": 1,"#, Kind::Continuation),
            ("level=warn msg=x", head(Some(Level::Warn), Shape::Logfmt)),
            ("\u{1b}[31mERROR\u{1b}[0m boom", head(Some(Level::Error), Shape::Text)),
            (" INFO app > up", head(Some(Level::Info), Shape::Text)),
            ("    INFO is not here", Kind::Continuation),
            ("listening", head(None, Shape::Loose)),
            ("ValueError: bad", Kind::Exception),
            ("", Kind::Blank),
            (" \t\r", Kind::Blank),
        ] {
            assert_eq!(kind(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_remembered_of_a_line_is_enough_to_tell_the_next() {
        let mut classifier = Classifier::default();
        for (line, level) in [
            (r#"{"level":5,"a":1}"#, Level::Info),
            (r#"{"level":50,"a":1}"#, Level::Error),
            (r#"{"level":"warn"}"#, Level::Warn),
            (r#"{"level":"warning"}"#, Level::Warn),
            (r#"{"level":"error","level":"info"}"#, Level::Error),
            (r#"{"level":50}"#, Level::Error),
        ] {
            assert_eq!(classifier.kind(line.as_bytes()), head(Some(level), Shape::Json), "{line}");
            assert_eq!(classifier.kind(line.as_bytes()), kind(line));
        }
    }

    #[test]
    fn an_exception_joins_a_stack_trace_or_a_warning_and_else_stands_for_itself() {
        let exception = kind("ValueError: bad");
        for before in ["  File \"a.py\", line 1", "2026-11-20 10:00:00 ERROR failed", "TypeError: x"] {
            assert_eq!(exception.place(kind(before).before()), Place::Rest, "{before}");
        }
        for before in [r#"{"level":50}"#, "2026-11-20 10:00:00 INFO up", "listening"] {
            assert_eq!(exception.place(kind(before).before()), Place::Head(Head::EXCEPTION), "{before}");
        }
    }
}
