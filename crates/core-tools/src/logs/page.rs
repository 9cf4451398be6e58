//! [`LogPage`]: entries, and how to get the rest.

use super::entry::LogEntry;
use serde::Serialize;

/// Entries, and how to get the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LogPage {
    /// Oldest first.
    pub entries: Vec<LogEntry>,
    /// Lines that were to be JSON objects and are none, among those that were read.
    pub malformed: u64,
    /// The files that were read, oldest first.
    pub files: Vec<String>,
    /// Bytes that were read.
    pub scanned_bytes: u64,
    /// What the caller should know: what was left out, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The cursor for older entries, where there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_cursor: Option<String>,
    /// The cursor for entries that are newer than all that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_cursor: Option<String>,
}

/// Bytes of entries in an answer: about 10,000 tokens with what stands around them.
pub(super) const MOST_BYTES: usize = 36_000;

impl LogEntry {
    /// The entry as one line of JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// About how many bytes it takes in an answer.
    pub(super) fn weight(&self) -> usize {
        self.to_text().len() + 2
    }
}

impl LogPage {
    /// The page as one JSON object, an entry a line.
    pub fn to_text(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(LogEntry::to_text).collect();
        let rest = serde_json::to_string(&Self { entries: Vec::new(), ..self.clone() }).unwrap_or_default();
        if entries.is_empty() {
            return rest;
        }
        rest.replacen(r#""entries":[]"#, &format!("\"entries\":[\n{}\n]", entries.join(",\n")), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_one_json_object_with_an_entry_a_line() {
        let entry = |message: &str| LogEntry {
            timestamp: None,
            level: "info",
            message: message.to_owned(),
            fields: serde_json::Map::new(),
            line: Some(1),
            file: None,
        };
        let page = LogPage { entries: vec![entry("a\n\"entries\":[]"), entry("b")], ..LogPage::default() };
        let text = page.to_text();
        assert_eq!(text.lines().count(), 4);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::to_value(&page).unwrap());
    }
}
