//! `git_restore`: discards or unstages changes.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, nul_fields};
use super::revision::check_paths;
use super::untracked::refuse_existing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Files whose changes to discard or unstage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitRestore {
    /// The files or folders, relative to `repository_path`; `.` is everything.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Vec<String>,
    /// Unstage the files instead, which stay as they are. Default: false.
    pub staged: Option<bool>,
    /// The commit, branch or tag to take the content from, such as `HEAD~1` or `main`. Default: what is staged; with
    /// `staged`, the last commit.
    pub source: Option<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

impl GitRestore {
    /// An input that discards the unstaged changes of these files and folders.
    pub fn new<P: Into<String>>(files: impl IntoIterator<Item = P>) -> Self {
        Self { files: files.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// The result of discarding or unstaging changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RestoreResult {
    /// The number of tracked paths that were named.
    pub paths: usize,
    /// The number of those that differed from what they were restored from.
    pub changed: usize,
    /// True if changes were unstaged; the files stayed as they were.
    pub staged: bool,
}

impl RestoreResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let verb = if self.staged { "unstaged changes of" } else { "restored" };
        let paths = count_of(self.paths, "tracked path", "tracked paths");
        if self.changed == self.paths {
            format!("{verb} {paths}")
        } else {
            format!("{verb} {} of {paths}; the others had no such changes", self.changed)
        }
    }
}

impl Git {
    /// Restores files from the index or a commit. Their unstaged changes are lost. With `staged`, restores the index from
    /// a commit, and changes no file.
    ///
    /// # Errors
    /// No tracked file is named, one of them is protected or would take the place of an untracked one, the
    /// repository's own configuration names filters, or git fails.
    pub async fn restore(
        &self,
        input: &GitRestore,
        cancel: &CancellationToken,
    ) -> Result<RestoreResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let top = repository.top_level("git_restore")?;
        repository.check_writable()?;
        check_paths("files", &input.files)?;
        if input.files.is_empty() {
            return Err(Error::InvalidArgument { name: "files", reason: "it names no file".to_owned() });
        }
        let staged = input.staged == Some(true);
        let source = match &input.source {
            Some(source) => Some(self.resolve_commit(&repository, source, cancel).await?),
            None => None,
        };
        self.refuse_configured_programs(&repository, "git_restore", cancel).await?;
        let invocation = |access, words: &[&str]| GitInvocation::new(&repository, access, cancel, words);
        // All paths that are named, and not only those that differ: git may take a changed file for unchanged.
        let named = invocation(GitAccess::Read, &["ls-files", "-z", "--full-name", "--deduplicate"])
            .paths(&input.files);
        let GitOutput { bytes: mut touched, mut is_complete } =
            self.run_checked("git_restore", named).await?;
        let index_bytes = touched.len();
        if let Some(source) = &source {
            let named = invocation(GitAccess::Read, &["ls-files", "-z", "--full-name", "--deduplicate"])
                .arg(format!("--with-tree={source}"))
                .paths(&input.files);
            let more = self.run_checked("git_restore", named).await?;
            touched.extend(more.bytes);
            is_complete &= more.is_complete;
        }
        if !is_complete {
            return Err(Error::TooLarge(
                "too many files are named to see whether others would be lost; name fewer at a time"
                    .to_owned(),
            ));
        }
        let unique: BTreeSet<_> = nul_fields(&touched).collect();
        if !staged {
            repository.check_changes(top, unique.iter().copied())?;
            let paths = unique.iter().copied();
            self.refuse_untracked(&repository, top, paths, "git_restore", cancel).await?;
            let indexed: BTreeSet<_> = nul_fields(touched.get(..index_bytes).unwrap_or_default()).collect();
            let paths = unique.difference(&indexed).copied();
            refuse_existing(&repository, top, paths, "git_restore")?;
        }
        // Without a commit there is nothing to restore the index from: unstaging is removing.
        let has_no_commits =
            staged && source.is_none() && self.head_commit(&repository, cancel).await?.is_none();
        let mut differing = invocation(GitAccess::Read, &DIFFERING_NAMES).args(staged.then_some("--cached"));
        if let Some(source) = &source {
            differing = differing.arg(source);
        }
        let differing = self.run_checked("git_restore", differing.paths(&input.files)).await?.bytes;
        let differing: BTreeSet<_> = nul_fields(&differing).collect();
        let run = if has_no_commits {
            invocation(GitAccess::Write, &["rm", "--cached", "--quiet", "-r"])
        } else {
            let run = invocation(GitAccess::Write, &["restore", "--no-progress", "--no-recurse-submodules"]);
            let run = if staged { run.arg("--staged") } else { run.arg("--worktree") };
            match source {
                Some(source) => run.arg(format!("--source={source}")),
                None => run,
            }
        };
        self.run_checked("git_restore", run.paths(&input.files)).await?;
        Ok(RestoreResult { paths: unique.union(&differing).count(), changed: differing.len(), staged })
    }
}

/// Lists the paths that differ. No program of the repository runs for it.
const DIFFERING_NAMES: [&str; 8] = [
    "diff",
    "-z",
    "--name-only",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--ignore-submodules=dirty",
];
