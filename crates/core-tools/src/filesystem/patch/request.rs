//! The input and the output of `apply_patch`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A patch of several files.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ApplyPatch {
    /// The patch: `*** Begin Patch`, then for each file `*** Update File: src/a.rs`, `*** Add File: …` or
    /// `*** Delete File: …`, then `*** End Patch`. An update has hunks: `@@` (or `@@ fn main() {`, a line before the hunk),
    /// then lines that begin with a blank (stays), `-` (goes) or `+` (comes). `*** Move to: …` below an update renames. A
    /// unified diff with `--- a/src/a.rs` and `+++ b/src/a.rs` is taken as well.
    #[schemars(extend("alias" = "input"))]
    pub patch: String,
    /// Returns the diff of every file and writes nothing. Default false.
    #[serde(default)]
    pub dry_run: bool,
}

impl ApplyPatch {
    /// An input that applies `patch`.
    pub fn new(patch: impl Into<String>) -> Self {
        Self { patch: patch.into(), dry_run: false }
    }
}

/// The files that a patch changed, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PatchResult {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
    /// True if nothing was written because the caller asked for the difference only.
    pub dry_run: bool,
    /// The difference in unified format, for a dry run.
    pub diff: String,
    /// Remarks on hunks that fit otherwise than their text says, and peculiarities of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A file that a patch changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PatchedFile {
    /// The file, relative to its root; of a moved one its new path.
    pub path: String,
    /// The change.
    pub action: PatchAction,
    /// The old path of a moved file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The number of lines that came.
    pub added: u64,
    /// The number of lines that went.
    pub removed: u64,
}

/// The change of a file, with the letter of `git status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PatchAction {
    /// It is new.
    Added,
    /// Its content changed.
    Modified,
    /// It was removed.
    Deleted,
    /// It has another path, and maybe another content.
    Renamed,
}

impl PatchAction {
    fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Renamed => 'R',
        }
    }
}

impl PatchResult {
    /// Returns one line for each file, as `git status --short` marks them, with the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let mut text = if self.dry_run { "would change:\n" } else { "changed:\n" }.to_owned();
        for file in &self.files {
            let from = file.moved_from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
            text.push_str(&format!("{} {from}{}", file.action.letter(), file.path));
            if file.added + file.removed > 0 {
                text.push_str(&format!(" (+{} -{})", file.added, file.removed));
            }
            text.push('\n');
        }
        text.push_str(&self.diff);
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}
