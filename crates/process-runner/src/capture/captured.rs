//! What is left of a stream when its run is over.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use super::kept::{Snapshot, snapshot};
use crate::text;

/// One stream of a finished run: its head, its tail, and what is known about the rest.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Captured {
    /// What was kept: a string, or `{"base64": "..."}` if it is not UTF-8.
    #[cfg_attr(feature = "serde", serde(with = "json"))]
    #[cfg_attr(feature = "schemars", schemars(with = "json::Bytes<'_>"))]
    pub(super) bytes: Vec<u8>,
    /// How much of `bytes` comes from the start of the stream; the rest comes from its end.
    pub(super) head_length: usize,
    /// Bytes of the stream, with secrets hidden.
    pub total_bytes: u64,
    /// Lines of the stream; a last line without a line end counts.
    pub total_lines: u64,
    /// Bytes between the head and the tail that were not kept.
    pub omitted_bytes: u64,
    /// Line ends among those.
    pub omitted_lines: u64,
    /// The stream ended by itself. False if something still held it when its time was up, whether or not
    /// that was killed then.
    pub complete: bool,
    /// Sequences of the kept bytes that are not UTF-8, which [`Captured::text`] shows as U+FFFD.
    pub lossy: u64,
    /// There is a NUL among the kept bytes: this is hardly text.
    pub binary: bool,
    /// The file that holds the whole stream, or as much as its limit allowed. Made only for a stream that
    /// was not kept whole, and the caller's to remove.
    pub spill: Option<PathBuf>,
    /// Why there is no such file, or not all of it.
    pub spill_error: Option<String>,
}

/// Shows the text, and the figures that a short whole stream does not have.
impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Captured");
        shown.field("text", &self.text()).field("complete", &self.complete);
        if self.truncated() {
            shown.field("total_bytes", &self.total_bytes).field("omitted_bytes", &self.omitted_bytes);
        }
        if self.lossy > 0 || self.binary {
            shown.field("lossy", &self.lossy).field("binary", &self.binary);
        }
        if let Some(error) = &self.spill_error {
            shown.field("spill_error", error);
        }
        shown.finish_non_exhaustive()
    }
}

impl Captured {
    /// The kept bytes: head and tail, with nothing between them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The kept bytes, taken out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes from the start of the stream; all of them if nothing was left out.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head_length.min(self.bytes.len())]
    }

    /// The bytes from the end of the stream that are not in the head.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.head_length.min(self.bytes.len())..]
    }

    /// Something was left out.
    pub fn truncated(&self) -> bool {
        self.omitted_bytes > 0
    }

    /// The stream was empty.
    pub fn is_empty(&self) -> bool {
        self.total_bytes == 0
    }

    /// The kept text. What is not UTF-8 is shown as U+FFFD. If something was left out, a line such as
    /// `[... 4137 lines, 1.2 MB left out ...]` stands in its place; no character is cut in two there.
    pub fn text(&self) -> Cow<'_, str> {
        if !self.truncated() {
            return text::lossy(&self.bytes).0;
        }
        let (head, tail) = self.whole_characters();
        let mut text = String::with_capacity(self.bytes.len() + 128);
        text.push_str(&text::lossy(head).0);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.seam());
        text.push('\n');
        text.push_str(&text::lossy(tail).0);
        Cow::Owned(text)
    }

    /// The text as it would stand on a screen: without colours and other control sequences, carriage
    /// returns and backspaces applied, so that of a progress bar the last state is left.
    pub fn clean(&self) -> Cow<'_, str> {
        match self.text() {
            Cow::Borrowed(text) => text::clean(text),
            Cow::Owned(text) => Cow::Owned(text::clean(&text).into_owned()),
        }
    }

    /// At most `max` bytes (but room for one character) from position `cursor` on; as
    /// [`Capture::snapshot`](super::Capture::snapshot) does while the program runs.
    pub fn snapshot(&self, cursor: u64, max: usize) -> Snapshot {
        snapshot([self.head(), self.tail(), &[]], self.omitted_bytes, cursor, max, true)
    }

    /// Head and tail without the characters that the cut between them went through.
    pub(super) fn whole_characters(&self) -> (&[u8], &[u8]) {
        let (head, tail) = (self.head(), self.tail());
        if !self.truncated() {
            return (head, tail);
        }
        (&head[..head.len() - text::unfinished_suffix(head)], &tail[text::orphaned_prefix(tail)..])
    }

    fn seam(&self) -> String {
        let (head, tail) = self.whole_characters();
        let bytes = text::human_bytes(self.total_bytes - (head.len() + tail.len()) as u64);
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

/// Bytes in JSON: as a string if they are one, else in base64. Exact both ways.
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
    pub(super) enum Bytes<'b> {
        Text(Cow<'b, str>),
        Base64 { base64: String },
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(Cow::Borrowed(text)),
            Err(_) => Bytes::Base64 { base64: STANDARD.encode(bytes) },
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        match Bytes::deserialize(deserializer)? {
            Bytes::Text(text) => Ok(text.into_owned().into_bytes()),
            Bytes::Base64 { base64 } => STANDARD.decode(base64).map_err(D::Error::custom),
        }
    }
}
