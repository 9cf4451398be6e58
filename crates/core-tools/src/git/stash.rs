//! `git_stash`: lists and applies stashes; [`super::stash_push`] makes them.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, first_names, lossy, nul_fields, printable_line, printable_list};
use super::repository::Repository;
use super::untracked::existing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// An action on stashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitStash {
    /// `push` puts changes aside; `pop` applies a stash and drops it, `apply` keeps it. Default: `list`.
    pub action: Option<StashAction>,
    /// With `push`: puts only the changes of these files or folders aside. Default: all changes.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Option<Vec<String>>,
    /// With `push`: a note that the list shows.
    #[schemars(extend("unlisted" = true))]
    pub message: Option<String>,
    /// With `push`: takes files along that git does not track. Default: false.
    pub include_untracked: Option<bool>,
    /// With `pop` and `apply`: which stash of the list. Default: 0, the latest.
    #[schemars(range(min = 0, max = 999), extend("unlisted" = true))]
    pub index: Option<u32>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    #[schemars(extend("unlisted" = true))]
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
        let action = input.action.unwrap_or_default();
        if input.files.is_some() && action != StashAction::Push {
            let reason = "only `push` takes some files; a stash is applied as a whole".to_owned();
            return Err(Error::InvalidArgument { name: "files", reason });
        }
        let (summary, conflicts) = match action {
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
    pub(super) async fn latest_stash(
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
        let mut new_files = Vec::new();
        if let Ok(untracked) = self.resolve_commit(repository, &format!("{stash}^3"), cancel).await {
            let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", &untracked];
            let more = self
                .run_checked("git_stash", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
                .await?;
            touched.extend(&more.bytes);
            new_files = more.bytes;
            is_complete &= more.is_complete;
        }
        let touched = GitOutput { bytes: touched, is_complete };
        self.check_written(repository, &touched, "git_stash", cancel).await?;
        let before = existing(top, nul_fields(&new_files))?;
        let verb = if action == StashAction::Pop { "pop" } else { "apply" };
        // Without renames: a change would follow a file to its new name, which was not checked above.
        let overrides =
            ["merge.renames", "merge.directoryRenames"].map(|key| (key.to_owned(), "false".into()));
        let invocation =
            GitInvocation::new(repository, GitAccess::Write, cancel, &["stash", verb, "--quiet", &name]);
        let output = self.run(invocation.config(&overrides)).await?;
        let count = count_of(nul_fields(&touched.bytes).count(), "path", "paths");
        if output.success() {
            return Ok((format!("applied {name} to {count}"), false));
        }
        let message = self.messages(&repository.workspace, &output);
        // git fails for conflicts as for every other error; the index tells them apart.
        let unmerged =
            GitInvocation::new(repository, GitAccess::Read, cancel, &["ls-files", "--unmerged", "-z"]);
        let unmerged = self.run_checked("git_stash", unmerged).await?.bytes;
        if unmerged.is_empty() {
            // git writes the untracked files of a stash even if it applies nothing else.
            let mut written = existing(top, nul_fields(&new_files))?;
            written.retain(|path| !before.contains(path));
            if written.is_empty() {
                return Err(Error::Failed { action: "git_stash", message });
            }
            let names = printable_list(&first_names(&repository.prefix, written.into_iter()));
            let message = format!(
                "{message}\nthe untracked files of the stash were written all the same: {names}. The stash has them still: \
                 delete them before you apply it again"
            );
            return Err(Error::Failed { action: "git_stash", message });
        }
        Ok((format!("applied {name} with conflicts; it is kept, and git_status names them\n{message}"), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            parse(&listed);
        }
    }
}
