//! The input and the output of `edit_file`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text file and the replacements to make in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EditFile {
    /// File to edit
    pub path: String,
    /// All or none
    #[schemars(length(min = 1))]
    pub edits: Vec<Edit>,
    /// Only show the diff
    #[serde(default)]
    pub dry_run: bool,
}

impl EditFile {
    /// An input that makes `edits` in the file at `path` and writes the result.
    pub fn new(path: impl Into<String>, edits: Vec<Edit>) -> Self {
        Self { path: path.into(), edits, dry_run: false }
    }
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct Edit {
    /// Exact text; must occur once
    pub old_string: String,
    /// Text in its place
    pub new_string: String,
    /// Any number of times
    #[serde(default)]
    pub replace_all: bool,
}

impl Edit {
    /// A replacement of `old`, which must occur exactly once, by `new`.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self { old_string: old.into(), new_string: new.into(), replace_all: false }
    }
}

/// The changes that an edit made, or would make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct EditResult {
    /// The file, relative to its root.
    pub path: String,
    /// The difference, in unified format.
    pub diff: String,
    /// The number of pieces replaced.
    pub replacements: u64,
    /// True if nothing was written because the caller asked for the difference only.
    pub dry_run: bool,
    /// Remarks: parts that were left out, and peculiarities of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl EditResult {
    /// Returns the difference under a line that summarizes the edit, with the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let verb = if self.dry_run { "would change" } else { "changed" };
        let plural = if self.replacements == 1 { "" } else { "s" };
        let mut text =
            format!("{verb} {} ({} replacement{plural})\n{}", self.path, self.replacements, self.diff);
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}
