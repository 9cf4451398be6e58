//! Operations of git that take several commands.

use serde::{Serialize, Serializer};
use std::fmt;

/// An operation that was begun and is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnfinishedOperation {
    /// `git merge` stopped at conflicts.
    Merge,
    /// `git rebase` stopped.
    Rebase,
    /// `git am` stopped: patches are being applied.
    Am,
    /// `git cherry-pick` stopped at conflicts.
    CherryPick,
    /// `git revert` stopped at conflicts.
    Revert,
    /// `git bisect` is under way.
    Bisect,
}

impl UnfinishedOperation {
    /// Returns the name of git's command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
        }
    }

    /// Returns true if the next commit belongs to the operation, even if it changes no file.
    pub(super) fn is_concluded_by_commit(self) -> bool {
        self != Self::Bisect
    }
}

impl fmt::Display for UnfinishedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for UnfinishedOperation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
