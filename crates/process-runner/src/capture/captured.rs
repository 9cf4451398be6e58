//! The captured stream of a run that is over.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use super::snapshot::{OutputSnapshot, snapshot};
use crate::{lossy_text, terminal_text};

/// One stream of a run that is over: its head, its tail, and the size of the rest.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CapturedStream {
    /// The kept bytes: a string, or `{"base64": "..."}` if they are not UTF-8.
    #[cfg_attr(feature = "serde", serde(with = "json"))]
    #[cfg_attr(feature = "schemars", schemars(with = "json::EncodedBytes<'_>"))]
    pub(super) bytes: Vec<u8>,
    /// The number of `bytes` from the start of the stream. The others are from its end.
    pub(super) head_length: usize,
    /// The bytes of the stream, after secrets were hidden.
    pub total_bytes: u64,
    /// The lines of the stream. A last line without a line end counts.
    pub total_lines: u64,
    /// The bytes between the head and the tail that were not kept.
    pub omitted_bytes: u64,
    /// The line ends among the omitted bytes.
    pub omitted_lines: u64,
    /// True if the stream ended by itself. False if a process still held it when its time was up, whether or not
    /// that was killed then.
    pub complete: bool,
    /// The sequences among the kept bytes that are not UTF-8. [`CapturedStream::text`] shows each as U+FFFD.
    pub invalid_sequences: u64,
    /// True if there is a NUL among the kept bytes, so that they are hardly text.
    pub binary: bool,
    /// The file with the whole stream, or as much of it as its limit allowed. It is created only for a stream that
    /// was not kept whole, and the caller must remove it.
    pub spill: Option<PathBuf>,
    /// The reason that there is no such file, or not all of it.
    pub spill_error: Option<String>,
}

impl fmt::Debug for CapturedStream {
    /// Writes the text, and the figures that say more than it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("CapturedStream");
        shown.field("text", &self.text()).field("complete", &self.complete);
        if self.truncated() {
            shown.field("total_bytes", &self.total_bytes).field("omitted_bytes", &self.omitted_bytes);
        }
        if self.invalid_sequences > 0 || self.binary {
            shown.field("invalid_sequences", &self.invalid_sequences).field("binary", &self.binary);
        }
        if let Some(error) = &self.spill_error {
            shown.field("spill_error", error);
        }
        shown.finish_non_exhaustive()
    }
}

impl CapturedStream {
    /// Returns the kept bytes: head and tail, with nothing between them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the kept bytes out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the bytes from the start of the stream: all of them if nothing was left out.
    pub fn head(&self) -> &[u8] {
        // A value that came from JSON may have any `head_length`.
        &self.bytes[..self.head_length.min(self.bytes.len())]
    }

    /// Returns the bytes from the end of the stream that are not in the head.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.head_length.min(self.bytes.len())..]
    }

    /// Returns true if bytes were left out.
    pub fn truncated(&self) -> bool {
        self.omitted_bytes > 0
    }

    /// Returns true if the stream was empty.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }

    /// Returns the kept text. Bytes that are not UTF-8 are shown as U+FFFD. A line such as `[... 4137 lines, 1.2 MB
    /// left out ...]` replaces the omitted bytes. No character is cut in two at that line.
    pub fn text(&self) -> Cow<'_, str> {
        // The usual case: the whole stream is text and is borrowed.
        if !self.truncated() {
            return lossy_text::lossy(&self.bytes).0;
        }
        let (head, tail) = self.whole_characters();
        let mut text = String::with_capacity(self.bytes.len() + 128);
        text.push_str(&lossy_text::lossy(head).0);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.omission_marker());
        text.push('\n');
        text.push_str(&lossy_text::lossy(tail).0);
        Cow::Owned(text)
    }

    /// Returns the text as a terminal would show it: without colours and other control sequences, with carriage
    /// returns and backspaces applied, so that a progress bar is shown in its last state. See [`clean`](crate::clean).
    pub fn clean(&self) -> Cow<'_, str> {
        match self.text() {
            Cow::Borrowed(text) => terminal_text::clean(text),
            Cow::Owned(text) => Cow::Owned(terminal_text::clean(&text).into_owned()),
        }
    }

    /// Returns at most `max` bytes (at least 4, the room for one character) from position `cursor` on, as
    /// [`Running::snapshot`](crate::Running::snapshot) does while the program runs.
    pub fn snapshot(&self, cursor: u64, max: usize) -> OutputSnapshot {
        snapshot([self.head(), self.tail(), &[]], self.omitted_bytes, cursor, max, true)
    }

    /// Returns head and tail without the characters that the cut between them divides.
    pub(super) fn whole_characters(&self) -> (&[u8], &[u8]) {
        let (head, tail) = (self.head(), self.tail());
        if !self.truncated() {
            return (head, tail);
        }
        (
            &head[..head.len() - lossy_text::unfinished_suffix(head)],
            &tail[lossy_text::orphaned_prefix(tail)..],
        )
    }

    /// Returns the line that stands for what was left out.
    fn omission_marker(&self) -> String {
        let (head, tail) = self.whole_characters();
        let bytes = lossy_text::human_bytes(self.total_bytes - (head.len() + tail.len()) as u64);
        let lines = match self.omitted_lines {
            0 => String::new(),
            1 => "1 line, ".to_owned(),
            lines => format!("{lines} lines, "),
        };
        match &self.spill {
            Some(path) => format!("[... {lines}{bytes} left out; full output: {} ...]", path.display()),
            None => format!("[... {lines}{bytes} left out ...]"),
        }
    }
}

/// The form of bytes in JSON: a string if they are UTF-8, else base64. It is exact both ways.
#[cfg(feature = "serde")]
mod json {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::borrow::Cow;

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    #[serde(untagged)]
    pub(super) enum EncodedBytes<'b> {
        Text(Cow<'b, str>),
        Base64 { base64: String },
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => EncodedBytes::Text(Cow::Borrowed(text)),
            Err(_) => EncodedBytes::Base64 { base64: STANDARD.encode(bytes) },
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        match EncodedBytes::deserialize(deserializer)? {
            EncodedBytes::Text(text) => Ok(text.into_owned().into_bytes()),
            EncodedBytes::Base64 { base64 } => STANDARD.decode(base64).map_err(D::Error::custom),
        }
    }
}
