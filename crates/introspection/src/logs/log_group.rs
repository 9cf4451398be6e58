//! [`LogGroup`]: entries that share a value, counted, and their text form.

use super::entry::LogEntry;
use serde::Serialize;

/// The entries of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogGroup {
    /// The number of entries.
    pub count: u64,
    /// The value that they share: a message with `<n>` and `<id>` for what differs, a level, an hour, a field's value.
    pub group: String,
    /// The level of the worst of them.
    pub level: &'static str,
    /// The time of the first, where entries have times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The time of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The most frequent messages of the group with their counts, where they differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageCount>,
    /// The number of different messages.
    #[serde(skip_serializing_if = "is_one")]
    pub distinct_messages: usize,
    /// True if there are more different messages than were counted at a time: `distinct_messages` and the counts of
    /// `messages` are then at least these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub distinct_at_least: bool,
    /// The last entry.
    pub sample: LogEntry,
}

/// A message, and the number of entries that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageCount {
    /// The message.
    pub message: String,
    /// The number of entries.
    pub count: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &usize) -> bool {
    *count <= 1
}

impl LogGroup {
    /// Formats the group as one line of JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
