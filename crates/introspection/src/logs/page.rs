//! [`LogPage`]: a page of entries, and its text form.

use super::entry::LogEntry;
use super::log_group::LogGroup;
use super::query::{LogEntryFilter, OmittedCounts};
use super::skipped::{NotUnderstood, UnknownPart};
use serde::Serialize;

/// A page of entries, with cursors that lead to older and newer ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogPage {
    /// The entries, oldest first.
    pub entries: Vec<LogEntry>,
    /// The groups of entries, the largest first, where entries were counted and not answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<LogGroup>,
    /// The number of entries that match, where all of them were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The number of lines read that begin as JSON objects and are not.
    pub malformed: u64,
    /// The entries that were left out because their level or their time was not understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<NotUnderstood>,
    /// The files that were read, oldest first.
    pub files: Vec<String>,
    /// The number of bytes that were read.
    pub scanned_bytes: u64,
    /// Notes for the caller, such as what was left out and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The cursor for older entries, where there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_cursor: Option<String>,
    /// The cursor for entries that are newer than all that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_cursor: Option<String>,
}

/// The maximum size of the entries of a page, in bytes: about 10,000 tokens with the rest of the answer.
pub(super) const MAX_PAGE_BYTES: usize = 36_000;

impl LogEntry {
    /// Formats the entry as one line of JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns about how many bytes the entry takes in a page.
    pub(super) fn page_bytes(&self) -> usize {
        self.to_text().len() + 2
    }
}

impl LogPage {
    /// Adds what was left out because it was not understood, and how to see it.
    pub(super) fn add_omissions(&mut self, omissions: &OmittedCounts, filter: &LogEntryFilter) {
        self.malformed = omissions.malformed;
        self.not_understood = omissions.skipped.report();
        for left_out in &mut self.not_understood {
            left_out.sample = filter.mask_text(&left_out.sample).into_owned();
        }
        if self.malformed > 0 && !filter.includes_malformed() {
            self.notes.push("`malformed: true` shows the broken lines".to_owned());
        }
        for left_out in &self.not_understood {
            let at_least = if left_out.at_least { "at least " } else { "" };
            let reason = match left_out.part {
                UnknownPart::Level => "have no known level; `level: \"info\"` shows them",
                UnknownPart::Time => "have no known time; a query without `since` and `until` shows them",
                UnknownPart::Rest => {
                    "do not have the text of `contains` in their first 1 MiB, and more behind it"
                }
            };
            self.notes.push(format!("{at_least}{} entries were left out that {reason}", left_out.count));
        }
        if omissions.older_bytes > 0 {
            let mebibytes = omissions.older_bytes.div_ceil(1 << 20);
            self.notes.push(format!(
                "the first {mebibytes} MiB were read in places only, all older than `since`; a query without `since` \
                 reads them"
            ));
        }
    }

    /// Formats the page as one JSON object with one entry, or one group, a line.
    pub fn to_text(&self) -> String {
        let (lines, member): (Vec<String>, &str) = match self.groups.is_empty() {
            true => (self.entries.iter().map(LogEntry::to_text).collect(), "entries"),
            false => (self.groups.iter().map(LogGroup::to_text).collect(), "groups"),
        };
        let empty = Self { entries: Vec::new(), groups: Vec::new(), ..self.clone() };
        let rest = serde_json::to_string(&empty).unwrap_or_default();
        if lines.is_empty() {
            return rest;
        }
        // One entry a line lets a reader search the answer by lines. The first match is the empty list, as
        // `entries` is the first field.
        rest.replacen(r#""entries":[]"#, &format!("\"{member}\":[\n{}\n]", lines.join(",\n")), 1)
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
