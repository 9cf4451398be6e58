//! A file in conflict: its kind, the lines of its markers, and the way to resolve it.

use super::change_kind::ConflictKind;
use super::printed_text::printable_line;
use schemars::JsonSchema;
use serde::Serialize;

/// A file that both sides changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ConflictedFile {
    /// The path, relative to the folder that was named.
    pub path: String,
    /// The kind: `both modified`, `both added`, `deleted by us`, `deleted by them`, `added by us`, `added by them`,
    /// `both deleted`.
    #[schemars(with = "String")]
    pub kind: ConflictKind,
    /// The lines at which conflicts begin (`<<<<<<<`), the first 20. Empty where the file has no markers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<usize>,
    /// The conflicts themselves, from marker to marker. Those of all files have at most 3,000 bytes; further lines are left
    /// out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The way to resolve it.
    pub resolution: &'static str,
}

impl ConflictedFile {
    /// Returns the conflict of the file at `path`, whose markers begin at `lines`.
    pub(super) fn new(path: String, kind: ConflictKind, lines: Vec<usize>) -> Self {
        Self { path, kind, text: String::new(), resolution: resolution(kind, !lines.is_empty()), lines }
    }

    /// Returns the conflict in one line.
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{} ({})", printable_line(&self.path), self.kind);
        if !self.lines.is_empty() {
            let lines: Vec<_> = self.lines.iter().map(usize::to_string).collect();
            text.push_str(&format!(", markers at line {}", lines.join(", ")));
        }
        text.push_str(": ");
        text.push_str(self.resolution);
        text
    }
}

/// Returns the way to resolve a conflict. `has_markers` is true if the file shows both sides.
fn resolution(kind: ConflictKind, has_markers: bool) -> &'static str {
    match kind {
        ConflictKind::BothModified | ConflictKind::BothAdded if has_markers => {
            "edit the file until it is right and has no markers, then stage it"
        }
        ConflictKind::BothModified | ConflictKind::BothAdded => {
            "the file holds one side only: put the right content there, then stage it"
        }
        ConflictKind::DeletedByUs => {
            "deleted here and changed there: stage the file to keep it, or delete it and stage its path"
        }
        ConflictKind::DeletedByThem => {
            "changed here and deleted there: stage the file to keep it, or delete it and stage its path"
        }
        ConflictKind::AddedByUs | ConflictKind::AddedByThem => {
            "one side of a rename: stage the file to keep it, or delete it and stage its path"
        }
        ConflictKind::BothDeleted => "renamed differently on both sides: stage its path, which is deleted",
    }
}
