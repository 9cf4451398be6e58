//! [`TextHead`]: the first line of an entry in text, as the parser of its family of formats read it.

use super::level::EntryLevel;
use super::log_time::WrittenTime;

/// The time and the level at the beginning of a line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextHead {
    pub(super) stamp: Option<WrittenTime>,
    pub(super) level: Option<EntryLevel>,
    /// The offset of the message in the line.
    pub(super) message: usize,
    pub(super) family: FormatFamily,
}

/// The families of formats whose lines have fields that are read only when an entry is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatFamily {
    /// A time, a level and text.
    Plain,
    /// An access log of a web server.
    Access,
    /// Syslog: host, program and process stand before the message.
    Syslog,
    /// The first of two lines of java.util.logging: its level stands on the next line.
    JavaUtil,
}

impl TextHead {
    /// Creates the head of a line without a time.
    pub(super) fn untimed(level: Option<EntryLevel>, message: usize) -> Self {
        Self { stamp: None, level, message, family: FormatFamily::Plain }
    }
}
