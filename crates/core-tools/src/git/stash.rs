//! `git_stash`: stashes changes, applies and lists stashes.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::invocation::{GitAccess, GitInvocation};
use super::repository::Repository;
use super::run::{Git, GitOutput};
use super::text::{count_of, lossy, nul_fields, printable_line};
use super::untracked::refuse_existing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// An action on stashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitStash {
    /// Default list
    pub action: Option<StashAction>,
    /// For push
    pub message: Option<String>,
    /// For push
    pub include_untracked: Option<bool>,
    /// Default 0
    #[schemars(range(min = 0, max = 999))]
    pub index: Option<u32>,
    /// Folder
    pub repository_path: Option<String>,
}

/// The actions on stashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StashAction {
    /// List the stashes.
    #[default]
    List,
    /// Stash all changes; files are then as in HEAD.
    Push,
    /// Apply a stash, and drop it if there was no conflict.
    Pop,
    /// Apply a stash, and keep it.
    Apply,
}

/// The result of an action, and the stashes after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct StashResult {
    /// A summary of the action; empty after a list.
    pub summary: String,
    /// The stashes, the latest first.
    pub stashes: Vec<StashEntry>,
    /// True if a stash was applied with conflicts.
    pub conflicts: bool,
}

/// One stash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct StashEntry {
    /// Its name; `stash@{0}` is the latest.
    pub name: String,
    /// Its date (RFC 3339).
    pub date: String,
    /// Its message.
    pub message: String,
}

/// The most stashes that the text lists.
const MAX_SHOWN: usize = 100;

/// Parses the reflog of `refs/stash`, in the format of [`Git::stashes`].
fn parse(listed: &[u8]) -> Vec<StashEntry> {
    let fields: Vec<_> = nul_fields(listed).collect();
    fields
        .chunks_exact(3)
        .filter_map(|fields| {
            let [name, date, message] = fields else { return None };
            Some(StashEntry { name: lossy(name), date: lossy(date), message: lossy(message) })
        })
        .collect()
}

impl StashResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = self.summary.clone();
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = write!(text, "{}", count_of(self.stashes.len(), "stash", "stashes"));
        for stash in self.stashes.iter().take(MAX_SHOWN) {
            let _ = write!(text, "\n{} {} {}", stash.name, stash.date, printable_line(&stash.message));
        }
        if self.stashes.len() > MAX_SHOWN {
            let _ = write!(text, "\n[{} more]", self.stashes.len() - MAX_SHOWN);
        }
        text
    }
}

impl Git {
    /// Stashes changes, applies a stash, or lists stashes. No stash is lost: it is dropped only after it was applied.
    ///
    /// # Errors
    /// There is nothing to stash, no such stash, a change, an untracked or a protected file is in the way, the
    /// repository's own configuration names filters, or git fails.
    pub async fn stash(&self, input: &GitStash, cancel: &CancellationToken) -> Result<StashResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let (summary, conflicts) = match input.action.unwrap_or_default() {
            StashAction::List => (String::new(), false),
            StashAction::Push => (self.stash_push(&repository, input, cancel).await?, false),
            action => self.stash_apply(&repository, action, input.index.unwrap_or(0), cancel).await?,
        };
        let stashes = self.stashes(&repository, cancel).await?;
        Ok(StashResult { summary, stashes, conflicts })
    }

    /// Returns the stashes. Not by `git stash list`, which needs a work tree.
    async fn stashes(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<StashEntry>, Error> {
        // `git log` fails for a reference that does not exist.
        if self.latest_stash(repository, cancel).await?.is_none() {
            return Ok(Vec::new());
        }
        let words = [
            "log",
            "-z",
            "--walk-reflogs",
            "--first-parent",
            "--no-patch",
            "--no-show-signature",
            "--format=tformat:%gd%x00%cI%x00%gs",
            "refs/stash",
            "--",
        ];
        let listed = self
            .run_checked("git_stash", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
            .await?
            .bytes;
        Ok(parse(&listed))
    }

    /// Returns the commit of the latest stash.
    async fn latest_stash(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        match self.resolve_commit(repository, "refs/stash", cancel).await {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::UnknownRevision(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stashes all changes. Returns the summary.
    async fn stash_push(
        &self,
        repository: &Repository,
        input: &GitStash,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let top = repository.top_level("git_stash")?;
        repository.check_writable()?;
        self.refuse_configured_programs(repository, "git_stash", cancel).await?;
        let Some(head) = self.head_commit(repository, cancel).await? else {
            return Err(Error::NothingToDo(
                "there are no commits yet, so there is nothing to put changes aside from",
            ));
        };
        let include_untracked = input.include_untracked == Some(true);
        let words = [
            "diff",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            "--ignore-submodules=dirty",
            &head,
        ];
        let GitOutput { bytes: mut touched, mut is_complete } = self
            .run_checked("git_stash", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
            .await?;
        self.refuse_untracked(repository, top, nul_fields(&touched), "git_stash", cancel).await?;
        if include_untracked {
            let more = self
                .run_checked(
                    "git_stash",
                    GitInvocation::new(repository, GitAccess::Read, cancel, &LIST_UNTRACKED),
                )
                .await?;
            touched.extend(untracked_paths(&more.bytes));
            is_complete &= more.is_complete;
        }
        if !is_complete {
            return Err(Error::TooLarge("too many files have changed to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        if touched.is_empty() && self.count_staged(repository, cancel).await? == 0 {
            return Err(Error::NothingToDo(NOTHING_TO_STASH));
        }
        repository.check_changes(top, nul_fields(&touched))?;
        let invocation =
            GitInvocation::new(repository, GitAccess::Write, cancel, &["stash", "push", "--quiet"]);
        let invocation = if include_untracked { invocation.arg("--include-untracked") } else { invocation };
        let invocation = match &input.message {
            Some(message) => invocation.arg(format!("--message={}", message.replace(char::is_control, " "))),
            None => invocation,
        };
        // git exits with success even if there was nothing that it can stash.
        let before = self.latest_stash(repository, cancel).await?;
        self.run_checked("git_stash", invocation).await?;
        if self.latest_stash(repository, cancel).await? == before {
            return Err(Error::NothingToDo(NOTHING_TO_STASH));
        }
        Ok(format!("put aside the changes of {}", count_of(nul_fields(&touched).count(), "path", "paths")))
    }

    /// Applies the stash with this index. Returns the summary, and true if there were conflicts.
    async fn stash_apply(
        &self,
        repository: &Repository,
        action: StashAction,
        index: u32,
        cancel: &CancellationToken,
    ) -> Result<(String, bool), Error> {
        let top = repository.top_level("git_stash")?;
        repository.check_writable()?;
        self.refuse_configured_programs(repository, "git_stash", cancel).await?;
        let name = format!("stash@{{{index}}}");
        let stash = self.resolve_commit(repository, &format!("refs/{name}"), cancel).await?;
        // The first parent is the commit that the changes were made to; a third one has the untracked files
        // (git-stash(1)).
        let base = self.resolve_commit(repository, &format!("{stash}^1"), cancel).await?;
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-relative",
            "--end-of-options",
            &base,
            &stash,
        ];
        let GitOutput { bytes: mut touched, mut is_complete } = self
            .run_checked("git_stash", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
            .await?;
        if let Ok(untracked) = self.resolve_commit(repository, &format!("{stash}^3"), cancel).await {
            let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", &untracked];
            let more = self
                .run_checked("git_stash", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
                .await?;
            touched.extend(more.bytes);
            is_complete &= more.is_complete;
        }
        if !is_complete {
            return Err(Error::TooLarge("the stash has too many files to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        repository.check_changes(top, nul_fields(&touched))?;
        // git refuses to overwrite untracked files, but not ignored ones.
        let words = ["ls-files", "-z", "--full-name", "--deduplicate", "--", ":/"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let GitOutput { bytes: indexed, is_complete } = self.run_checked("git_stash", invocation).await?;
        if !is_complete {
            return Err(Error::TooLarge("the repository has too many files to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        let indexed: HashSet<_> = nul_fields(&indexed).collect();
        let new = nul_fields(&touched).filter(|path| !indexed.contains(path));
        self.refuse_untracked(repository, top, new.clone(), "git_stash", cancel).await?;
        refuse_existing(repository, top, new, "git_stash")?;
        let verb = if action == StashAction::Pop { "pop" } else { "apply" };
        // Without renames: a change would follow a file to its new name, which was not checked above.
        let overrides =
            [("merge.renames".to_owned(), "false"), ("merge.directoryRenames".to_owned(), "false")];
        let invocation =
            GitInvocation::new(repository, GitAccess::Write, cancel, &["stash", verb, "--quiet", &name]);
        let output = self.run(invocation.config(&overrides)).await?;
        let count = count_of(nul_fields(&touched).count(), "path", "paths");
        if output.success() {
            return Ok((format!("applied {name} to {count}"), false));
        }
        let message = self.messages(&repository.workspace, &output);
        // git fails for conflicts as for every other error; the index tells them apart.
        let unmerged =
            GitInvocation::new(repository, GitAccess::Read, cancel, &["ls-files", "--unmerged", "-z"]);
        let unmerged = self.run_checked("git_stash", unmerged).await?.bytes;
        if unmerged.is_empty() {
            return Err(Error::Failed { action: "git_stash", message });
        }
        Ok((format!("applied {name} with conflicts; it is kept, and git_status names them\n{message}"), true))
    }
}

/// The reason that nothing is stashed. If anything has changed, it is submodules.
const NOTHING_TO_STASH: &str =
    "there is nothing to put aside; submodules and repositories within this one stay as they are";

/// Lists untracked files, also those in untracked folders.
// By `status`, which leaves out ignored files as `stash` does.
const LIST_UNTRACKED: [&str; 6] =
    ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"];

/// Returns the untracked paths in the output of [`LIST_UNTRACKED`], each ended by NUL. A folder there is another
/// repository, which no stash takes.
fn untracked_paths(listed: &[u8]) -> Vec<u8> {
    let paths = nul_fields(listed).filter_map(|entry| entry.strip_prefix(b"?? "));
    let paths = paths.filter(|path| !path.ends_with(b"/"));
    paths.flat_map(|path| path.iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn untracked_files_are_those_with_question_marks() {
        assert_eq!(untracked_paths(b" M a\0?? b c\0?? nested/\0?? ?? d\0"), b"b c\0?? d\0");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            parse(&listed);
            untracked_paths(&listed);
        }
    }
}
