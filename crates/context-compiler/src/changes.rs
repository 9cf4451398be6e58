//! What changed in a repository: typed, so that "no changes" is never said where nobody could look.

use serde::Serialize;

/// What changed since a commit, as git tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// How asking went.
    pub outcome: Outcome,
    /// What is compared with, as the caller named it: `HEAD`.
    pub base: String,
    /// Changed and untracked files, in byte order of their paths.
    pub files: Vec<ChangedFile>,
    /// There is more than was read: statistics are whole, and some lines are missing.
    pub truncated: bool,
    /// The repository names filters of its own, which were not run: a file that they change shows as changed.
    pub filters_off: bool,
}

/// How asking git went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing changed and nothing is untracked. Said in no other case.
    #[default]
    Clean,
    /// Something did.
    Changed,
    /// The root is in no repository.
    NotARepository,
    /// There are no commits yet: everything in the index is new.
    Unborn,
    /// There is no git.
    GitMissing,
    /// git took too long.
    TimedOut,
    /// git failed, or said what cannot be read.
    Failed {
        /// In words for the reader.
        said: String,
    },
}

/// One file that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Beneath the root, with `/`.
    pub path: String,
    /// What happened to it.
    pub status: Status,
    /// Lines added and removed; nothing for a binary file.
    pub lines: Option<(u64, u64)>,
    /// What changed in it, as a unified diff has it: each begins with its `@@` line. None where only names or modes
    /// changed, and of untracked files.
    pub hunks: Vec<String>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Status {
    Added,
    Modified,
    Deleted,
    Untracked,
}

impl Status {
    /// In one letter, as `git status --short` has it.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Untracked => '?',
        }
    }
}

impl Outcome {
    /// For a reader.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Clean => "none".to_owned(),
            Self::Changed => "some".to_owned(),
            Self::NotARepository => "not known: this is no git repository".to_owned(),
            Self::Unborn => "everything: there are no commits yet".to_owned(),
            Self::GitMissing => "not known: there is no git".to_owned(),
            Self::TimedOut => "not known: git took too long".to_owned(),
            Self::Failed { said } => format!("not known: {said}"),
        }
    }
}
