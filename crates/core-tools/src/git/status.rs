//! `git_status`: tells the state of the work tree.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::change_kind::{ConflictKind, GitChangeKind};
use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::operation::{OperationProgress, UnfinishedOperation};
use super::printed_text::{count_of, lossy, nul_fields, printable_line, relative_to};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// A repository whose state to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitStatus {
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
    /// The most paths to list. Default: 300.
    #[schemars(range(min = 1, max = 10_000), extend("alias" = "limit"))]
    pub max_results: Option<usize>,
}

/// The most paths that are listed unless more are asked for.
const DEFAULT_LIMIT: usize = 300;

/// The changes since the last commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WorkTreeStatus {
    /// The branch and commit that are checked out.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub head: HeadStatus,
    /// The operation that was begun and is not finished: `merge`, `rebase`, `am`, `cherry-pick`, `revert` or `bisect`.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<UnfinishedOperation>,
    /// How far a rebase, or `git am`, has come.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<OperationProgress>,
    /// Conflicts first, then what is staged, what is not, what is untracked.
    pub changes: Vec<ChangedPath>,
    /// The number of changed paths, listed or not.
    pub total: usize,
    /// True if there are submodules: the changes of files inside them were not looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_submodules: bool,
    /// True if git's output was too long to be counted: there are more than `total`.
    #[serde(skip)]
    pub has_more: bool,
}

/// The branch and commit that are checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct HeadStatus {
    /// The branch. Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit. Absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The number of commits that the upstream lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// The number of commits that only the upstream has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// The number of stashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stashes: Option<u64>,
}

/// One changed path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ChangedPath {
    /// The path, relative to the folder that was named. A folder ends in `/`.
    pub path: String,
    /// The old path, if it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The staged change: `added`, `modified`, `deleted`, `renamed`, `copied`, `type changed`.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staged: Option<GitChangeKind>,
    /// The change that is not staged, or `untracked`.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstaged: Option<GitChangeKind>,
    /// The conflict between the two sides, if there is one.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictKind>,
}

/// Parses `status --porcelain=v2 -z --branch --show-stash` (git-status(1), "Porcelain Format Version 2").
fn parse(listed: &[u8], prefix: &[u8]) -> WorkTreeStatus {
    let mut status = WorkTreeStatus::default();
    let mut fields = nul_fields(listed);
    while let Some(entry) = fields.next() {
        let mut words = entry.splitn(2, |byte| *byte == b' ');
        let (kind, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // The path comes after 7 fields in an ordinary entry, 8 in a rename and 9 in a conflict, and may contain
        // spaces.
        let letters_and_path = |skipped: usize| {
            let mut words = rest.splitn(skipped + 1, |byte| *byte == b' ');
            let letters = words.next().unwrap_or_default();
            let path = words.nth(skipped - 1);
            (letters, path)
        };
        match kind {
            b"#" => parse_header(rest, &mut status.head),
            b"1" => {
                let (letters, Some(path)) = letters_and_path(7) else { continue };
                status.changes.push(changed_path(letters, relative_to(prefix, path), None));
            }
            b"2" => {
                let (letters, Some(path)) = letters_and_path(8) else { continue };
                let from = fields.next().map(|from| relative_to(prefix, from));
                status.changes.push(changed_path(letters, relative_to(prefix, path), from));
            }
            b"u" => {
                let (letters, Some(path)) = letters_and_path(9) else { continue };
                status.changes.push(ChangedPath {
                    path: relative_to(prefix, path),
                    conflict: Some(ConflictKind::from_letters(letters)),
                    ..ChangedPath::default()
                });
            }
            b"?" => status.changes.push(ChangedPath {
                path: relative_to(prefix, rest),
                unstaged: Some(GitChangeKind::Untracked),
                ..ChangedPath::default()
            }),
            _ => {}
        }
    }
    status.total = status.changes.len();
    status
}

/// Makes an entry of git's two letters: the staged change, and the one that is not.
fn changed_path(letters: &[u8], path: String, from: Option<String>) -> ChangedPath {
    let letter = |index: usize| letters.get(index).copied().and_then(GitChangeKind::from_letter);
    ChangedPath { path, from, staged: letter(0), unstaged: letter(1), conflict: None }
}

/// Parses a header, which begins with `# `.
fn parse_header(text: &[u8], head: &mut HeadStatus) {
    let text = lossy(text);
    // The counts have a sign: `+1 -2`.
    let number = |word: Option<&str>| word?.get(1..)?.parse().ok();
    match text.split_once(' ') {
        Some(("branch.oid", commit)) if commit != "(initial)" => head.commit = Some(commit.to_owned()),
        Some(("branch.head", branch)) if branch != "(detached)" => head.branch = Some(branch.to_owned()),
        Some(("branch.upstream", upstream)) => head.upstream = Some(upstream.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ');
            head.ahead = number(counts.next());
            head.behind = number(counts.next());
        }
        Some(("stash", count)) => head.stashes = count.parse().ok(),
        _ => {}
    }
}

impl ChangedPath {
    /// Returns its group in a list: conflicts first, then what is staged, what is not, what is untracked.
    fn sort_rank(&self) -> u8 {
        match self {
            Self { conflict: Some(_), .. } => 0,
            Self { staged: Some(_), .. } => 1,
            Self { unstaged: Some(GitChangeKind::Untracked), .. } => 3,
            _ => 2,
        }
    }

    /// Returns the path and its states in one line: `a.txt (staged: modified; deleted)`.
    pub(super) fn to_text(&self) -> String {
        let states = [
            self.conflict.map(|kind| format!("conflict: {kind}")),
            self.staged.map(|kind| format!("staged: {kind}")),
            self.unstaged.map(|kind| kind.to_string()),
        ];
        let states: Vec<_> = states.into_iter().flatten().collect();
        let mut text = format!("{} ({}", printable_line(&self.path), states.join("; "));
        if let Some(from) = &self.from {
            let _ = write!(text, " from {}", printable_line(from));
        }
        text.push(')');
        text
    }
}

impl HeadStatus {
    pub(super) fn to_text(&self) -> String {
        let short = |commit: &String| commit.chars().take(10).collect::<String>();
        let mut text = match (&self.branch, &self.commit) {
            (Some(branch), Some(commit)) => format!("on branch {branch} at {}", short(commit)),
            (Some(branch), None) => format!("on branch {branch}, without commits yet"),
            (None, Some(commit)) => format!("detached HEAD at {}", short(commit)),
            (None, None) => "no HEAD".to_owned(),
        };
        if let Some(upstream) = &self.upstream {
            let _ = write!(text, ", follows {upstream}");
            match (self.ahead, self.behind) {
                (Some(ahead), Some(behind)) => {
                    let _ = write!(text, " ({ahead} ahead, {behind} behind)");
                }
                _ => text.push_str(" (gone)"),
            }
        }
        if let Some(stashes) = self.stashes {
            let _ = write!(text, ", {stashes} stashed");
        }
        text
    }
}

impl WorkTreeStatus {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = self.head.to_text();
        if let Some(operation) = self.operation {
            let progress = self.progress.as_ref().map(OperationProgress::to_string).unwrap_or_default();
            let _ = write!(text, "\n{operation} in progress{progress}");
        }
        if self.total == 0 {
            text.push_str(if self.has_submodules {
                "\nclean, except that changes inside submodules were not looked at"
            } else {
                "\nclean"
            });
            return text;
        }
        let _ = write!(text, "\n{}", count_of(self.total, "changed path", "changed paths"));
        if self.has_more {
            text.push_str(", and more");
        }
        for change in &self.changes {
            text.push('\n');
            text.push_str(&change.to_text());
        }
        if self.changes.len() < self.total {
            let _ = write!(text, "\n[{} more; `limit` lists more]", self.total - self.changes.len());
        }
        if self.has_submodules {
            text.push_str("\n[changes inside submodules were not looked at]");
        }
        text
    }
}

impl Git {
    /// Returns the changes since the last commit.
    ///
    /// Of a submodule, only another commit is a change. Untracked folders are one path.
    ///
    /// # Errors
    /// There is no repository, it has no files, or git fails.
    pub async fn status(
        &self,
        input: &GitStatus,
        cancel: &CancellationToken,
    ) -> Result<WorkTreeStatus, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let mut status = self.whole_status(&repository, cancel).await?;
        status.changes.truncate(input.max_results.unwrap_or(DEFAULT_LIMIT));
        Ok(status)
    }

    /// Returns all changes since the last commit.
    pub(super) async fn whole_status(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<WorkTreeStatus, Error> {
        repository.top_level("git_status")?;
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--show-stash",
            // Explicit, as the configuration may say otherwise (`status.aheadBehind`, `status.showUntrackedFiles`,
            // `status.renames`).
            "--ahead-behind",
            "--untracked-files=normal",
            "--ignore-submodules=dirty",
            "--find-renames",
        ];
        let overrides = self.filter_overrides(repository, cancel).await?;
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words).config(&overrides);
        let GitOutput { bytes: listed, is_complete } = self.run_checked("git_status", invocation).await?;
        let mut status = parse(&listed, &repository.prefix);
        status.has_more = !is_complete;
        if status.head.commit.is_none() {
            // git tells a branch that it cannot read as one without commits.
            self.head_commit(repository, cancel).await?;
        }
        status.has_submodules = repository.names_submodules()?;
        status.operation = repository.unfinished_operation()?;
        if matches!(status.operation, Some(UnfinishedOperation::Rebase | UnfinishedOperation::Am)) {
            status.progress = repository.operation_progress()?;
        }
        // A stable sort: within a group paths stay in the order of git, by name.
        status.changes.sort_by_key(ChangedPath::sort_rank);
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OID: &str = "78981922613b2afb6025042ff6bd878ac1994e85";

    #[test]
    fn each_kind_of_entry_is_understood() {
        let text = format!(
            "# branch.oid {OID}\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -3\0# stash 4\0\
             1 .M N... 100644 100644 100644 {OID} {OID} a b\n\"c\0\
             2 R. N... 100644 100644 100644 {OID} {OID} R100 new name\0old name\0\
             u UU N... 100644 100644 100644 100644 {OID} {OID} {OID} both\0\
             ? -rf\0! ignored\0"
        );
        let status = parse(text.as_bytes(), b"");
        let head = &status.head;
        assert_eq!((head.branch.as_deref(), head.commit.as_deref()), (Some("main"), Some(OID)));
        assert_eq!((head.ahead, head.behind, head.stashes), (Some(2), Some(3), Some(4)));
        let paths: Vec<_> = status.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a b\n\"c", "new name", "both", "-rf"]);
        assert_eq!(status.changes[0].unstaged, Some(GitChangeKind::Modified));
        assert_eq!(status.changes[1].from.as_deref(), Some("old name"));
        assert_eq!(status.changes[1].staged, Some(GitChangeKind::Renamed));
        assert_eq!(status.changes[2].conflict, Some(ConflictKind::BothModified));
        assert_eq!(status.total, 4);
    }

    #[test]
    fn a_repository_without_commits_has_a_branch_and_no_commit() {
        let status = parse(b"# branch.oid (initial)\0# branch.head main\0", b"");
        assert_eq!(status.to_text(), "on branch main, without commits yet\nclean");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>, prefix in "[a-c/]{0,6}") {
            parse(&listed, prefix.as_bytes()).to_text();
        }

        #[test]
        fn no_entry_is_a_panic(kind in "[#12u?!]", rest in "( |[A-Z.]|\0|[a-z0-9])*") {
            parse(format!("{kind} {rest}").as_bytes(), b"a").to_text();
        }
    }
}
