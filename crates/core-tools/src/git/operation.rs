//! Operations of git that take several commands.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;

/// The progress of a rebase, or of `git am`, that is not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OperationProgress {
    /// The branch that is rebased. Absent for `am`, and where HEAD was detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that it is rebased onto.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// The number of the commit or patch that is being applied, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The number of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

impl fmt::Display for OperationProgress {
    /// Writes ` of topic onto 78981922, step 2 of 5`, as far as it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(branch) = &self.branch {
            write!(f, " of {branch}")?;
        }
        if let Some(onto) = &self.onto {
            write!(f, " onto {}", onto.chars().take(10).collect::<String>())?;
        }
        if let (Some(step), Some(steps)) = (self.step, self.steps) {
            write!(f, ", step {step} of {steps}")?;
        }
        Ok(())
    }
}

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
