//! The kinds of changes and conflicts that git reports by letters.

use serde::{Serialize, Serializer};
use std::fmt;

/// A kind of change to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GitChangeKind {
    /// The path is new.
    Added,
    /// The content or the mode changed.
    Modified,
    /// The path is gone.
    Deleted,
    /// The file had another path before.
    Renamed,
    /// The file is a copy of another.
    Copied,
    /// The path was a file and is a link, or the reverse.
    TypeChanged,
    /// The path is in conflict.
    Unmerged,
    /// git does not know the path.
    Untracked,
}

impl GitChangeKind {
    /// Returns the kind that git's letter stands for (git-diff(1), `--diff-filter`).
    pub(super) fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'A' => Self::Added,
            b'M' => Self::Modified,
            b'D' => Self::Deleted,
            b'R' => Self::Renamed,
            b'C' => Self::Copied,
            b'T' => Self::TypeChanged,
            b'U' => Self::Unmerged,
            _ => return None,
        })
    }

    /// Returns the kind in words: `type changed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Copied => "copied",
            Self::TypeChanged => "type changed",
            Self::Unmerged => "unmerged",
            Self::Untracked => "untracked",
        }
    }
}

impl fmt::Display for GitChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for GitChangeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A kind of conflict between two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictKind {
    /// Both sides deleted the path.
    BothDeleted,
    /// Our side added the path.
    AddedByUs,
    /// Their side deleted the path, ours changed it.
    DeletedByThem,
    /// Their side added the path.
    AddedByThem,
    /// Our side deleted the path, theirs changed it.
    DeletedByUs,
    /// Both sides added the path.
    BothAdded,
    /// Both sides changed the path.
    BothModified,
}

impl ConflictKind {
    /// Returns the kind that git's two letters stand for (git-status(1), "Short Format").
    pub(super) fn from_letters(letters: &[u8]) -> Self {
        match letters {
            b"DD" => Self::BothDeleted,
            b"AU" => Self::AddedByUs,
            b"UD" => Self::DeletedByThem,
            b"UA" => Self::AddedByThem,
            b"DU" => Self::DeletedByUs,
            b"AA" => Self::BothAdded,
            _ => Self::BothModified,
        }
    }

    /// Returns the kind in words: `deleted by them`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BothDeleted => "both deleted",
            Self::AddedByUs => "added by us",
            Self::DeletedByThem => "deleted by them",
            Self::AddedByThem => "added by them",
            Self::DeletedByUs => "deleted by us",
            Self::BothAdded => "both added",
            Self::BothModified => "both modified",
        }
    }
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ConflictKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
