//! The changes of a repository, typed, so that a document never says "none" where git could not be asked.

use serde::Serialize;

/// The changes of a repository since a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryChanges {
    /// The result of asking git.
    pub outcome: RepositoryChangesOutcome,
    /// The revision to compare with, as the caller named it, such as `HEAD`.
    pub base: String,
    /// The changed and the untracked files, in byte order of their paths.
    pub files: Vec<ChangedFile>,
    /// True if some hunks or some files are missing because a limit was reached. The line counts of the files that are
    /// there are complete.
    pub truncated: bool,
    /// True if the repository configures content filters. CoreTools does not run filters, so a file that a filter
    /// rewrites is shown as changed.
    pub filters_disabled: bool,
}

/// The result of asking git for changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepositoryChangesOutcome {
    /// git answered: nothing changed and nothing is untracked.
    #[default]
    Clean,
    /// git answered: something changed or is untracked.
    Changed,
    /// The root is not in a repository.
    NotARepository,
    /// The repository has no commits yet, so everything in the index is new.
    Unborn,
    /// There is no program `git`.
    GitMissing,
    /// git ran past its time limit.
    TimedOut,
    /// git failed, or its answer could not be read.
    Failed {
        /// The reason, for the reader of the document.
        #[serde(rename = "said")]
        reason: String,
    },
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// The path beneath the root, with `/` between components.
    pub path: String,
    /// The kind of change.
    pub kind: FileChangeKind,
    /// The lines added and removed; `None` for a binary file and for an untracked one.
    pub line_counts: Option<ChangedLineCounts>,
    /// The hunks of a unified diff, each beginning with its `@@` line. Empty where only the mode changed, and for an
    /// untracked file.
    pub hunks: Vec<String>,
}

/// The lines that a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedLineCounts {
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
}

/// The kind of a change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are git's")]
#[non_exhaustive]
pub enum FileChangeKind {
    Added,
    Modified,
    Deleted,
    Untracked,
}

impl RepositoryChanges {
    /// Changes since `base` of which only the outcome is known; the caller adds the files.
    pub fn new(base: impl Into<String>, outcome: RepositoryChangesOutcome) -> Self {
        Self { outcome, base: base.into(), ..Self::default() }
    }

    /// Returns the lines added and removed in all files that git counts.
    pub(crate) fn total_lines(&self) -> ChangedLineCounts {
        let counts = self.files.iter().filter_map(|file| file.line_counts);
        counts.fold(ChangedLineCounts::default(), |total, file| ChangedLineCounts {
            added: total.added + file.added,
            removed: total.removed + file.removed,
        })
    }
}

impl ChangedFile {
    /// A change to the file at `path` without line counts or hunks.
    pub fn new(path: impl Into<String>, kind: FileChangeKind) -> Self {
        Self { path: path.into(), kind, line_counts: None, hunks: Vec::new() }
    }
}

impl FileChangeKind {
    /// Returns true for a file that was not there before.
    pub(crate) fn is_new(self) -> bool {
        matches!(self, Self::Added | Self::Untracked)
    }

    /// Returns the letter that `git status --short` uses.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Untracked => '?',
        }
    }
}

impl RepositoryChangesOutcome {
    /// Describes the outcome to the reader of a document.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Clean => "none".to_owned(),
            Self::Changed => "some".to_owned(),
            Self::NotARepository => "not known: this is no git repository".to_owned(),
            Self::Unborn => "everything: there are no commits yet".to_owned(),
            Self::GitMissing => "not known: there is no git".to_owned(),
            Self::TimedOut => "not known: git took too long".to_owned(),
            Self::Failed { reason } => format!("not known: {reason}"),
        }
    }
}
