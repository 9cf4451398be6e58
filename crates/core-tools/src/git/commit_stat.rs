//! The size of a commit's changes.

use super::diff::FileDiff;
use super::printed_text::count_of;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// The size of a commit's changes. Those of a merge are its differences from its first parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommitStat {
    /// The files that it changes, the first 50.
    pub files: Vec<FileDiff>,
    /// The number of files that it changes, listed or not.
    pub total: usize,
    /// The number of lines added, in all files.
    pub insertions: u64,
    /// The number of lines removed, in all files.
    pub deletions: u64,
}

impl CommitStat {
    /// Returns the statistics as lines that follow a message.
    pub(super) fn to_text(&self) -> String {
        let files = count_of(self.total, "file", "files");
        let mut text = format!("\n\n    {files}, +{} -{}", self.insertions, self.deletions);
        for file in &self.files {
            let _ = write!(text, "\n    {}", file.to_text());
        }
        if self.files.len() < self.total {
            let _ = write!(text, "\n    [{} more]", self.total - self.files.len());
        }
        text
    }
}
