//! Putting changes aside, and taking them out again.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::repository::Repository;
use super::run::{Access, Call, Git};
use super::text::{fields, line, lossy, plural};
use super::untracked::refuse_existing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

/// What can be done with stashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StashAction {
    /// Tell which there are.
    #[default]
    List,
    /// Put all changes aside; files are then as in HEAD.
    Push,
    /// Apply a stash, and forget it if there was no conflict.
    Pop,
    /// Apply a stash, and keep it.
    Apply,
}

/// What was done, and the stashes there are then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Stashed {
    /// What was done.
    pub did: String,
    /// The stashes there are, the latest first.
    pub stashes: Vec<StashEntry>,
    /// A stash could not be applied without conflicts.
    pub conflicts: bool,
}

/// One stash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StashEntry {
    /// `stash@{0}` is the latest.
    pub name: String,
    /// When it was made (RFC 3339).
    pub date: String,
    /// What it is of.
    pub message: String,
}

/// Stashes that are shown.
const MOST_SHOWN: usize = 100;

fn parse(listed: &[u8]) -> Vec<StashEntry> {
    let fields: Vec<_> = fields(listed).collect();
    fields
        .chunks_exact(3)
        .filter_map(|fields| {
            let [name, date, message] = fields else { return None };
            Some(StashEntry { name: lossy(name), date: lossy(date), message: lossy(message) })
        })
        .collect()
}

impl Stashed {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = self.did.clone();
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = write!(text, "{}", plural(self.stashes.len(), "stash").replace("stashs", "stashes"));
        for stash in self.stashes.iter().take(MOST_SHOWN) {
            let _ = write!(text, "\n{} {} {}", stash.name, stash.date, line(&stash.message));
        }
        if self.stashes.len() > MOST_SHOWN {
            let _ = write!(text, "\n[{} more]", self.stashes.len() - MOST_SHOWN);
        }
        text
    }
}

impl Git {
    /// Puts changes aside, takes them out again, or tells which are put aside. None is ever thrown away: a
    /// stash is forgotten only when it has been applied.
    ///
    /// # Errors
    /// There is nothing to put aside, no such stash, a change, an untracked or a protected file is in the way, the
    /// repository's own configuration names filters, or git fails.
    pub async fn stash(&self, input: &GitStash, cancel: &CancellationToken) -> Result<Stashed, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let (did, conflicts) = match input.action.unwrap_or_default() {
            StashAction::List => (String::new(), false),
            StashAction::Push => (self.stash_push(&repository, input, cancel).await?, false),
            action => self.stash_apply(&repository, action, input.index.unwrap_or(0), cancel).await?,
        };
        let stashes = self.stashes(&repository, cancel).await?;
        Ok(Stashed { did, stashes, conflicts })
    }

    /// The stashes there are. `git stash list` would want a work tree.
    async fn stashes(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<StashEntry>, Error> {
        if self.latest(repository, cancel).await?.is_none() {
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
        let (listed, _) = self.ask("git_stash", Call::new(repository, Access::Reads, cancel, &words)).await?;
        Ok(parse(&listed))
    }

    /// The commit of the latest stash.
    async fn latest(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        match self.commit_of(repository, "refs/stash", cancel).await {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::NoRevision(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn stash_push(
        &self,
        repository: &Repository,
        input: &GitStash,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let top = repository.top("git_stash")?;
        repository.check_writable()?;
        self.refuse_drivers(repository, "git_stash", cancel).await?;
        let Some(head) = self.head(repository, cancel).await? else {
            return Err(Error::Nothing(
                "there are no commits yet, so there is nothing to put changes aside from",
            ));
        };
        let untracked = input.include_untracked == Some(true);
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
        let (mut touched, mut whole) =
            self.ask("git_stash", Call::new(repository, Access::Reads, cancel, &words)).await?;
        self.refuse_untracked(repository, top, fields(&touched), "git_stash", cancel).await?;
        if untracked {
            let (more, all) =
                self.ask("git_stash", Call::new(repository, Access::Reads, cancel, &OTHERS)).await?;
            touched.extend(others(&more));
            whole &= all;
        }
        if !whole {
            return Err(Error::Odd("too many files have changed to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        if touched.is_empty() && self.staged(repository, cancel).await? == 0 {
            return Err(Error::Nothing(NOTHING));
        }
        repository.check_changes(top, fields(&touched))?;
        let call = Call::new(repository, Access::Writes, cancel, &["stash", "push", "--quiet"]);
        let call = if untracked { call.arg("--include-untracked") } else { call };
        let call = match &input.message {
            Some(message) => call.arg(format!("--message={}", message.replace(char::is_control, " "))),
            None => call,
        };
        let before = self.latest(repository, cancel).await?;
        self.ask("git_stash", call).await?;
        if self.latest(repository, cancel).await? == before {
            return Err(Error::Nothing(NOTHING));
        }
        Ok(format!("put aside the changes of {}", plural(fields(&touched).count(), "path")))
    }

    async fn stash_apply(
        &self,
        repository: &Repository,
        action: StashAction,
        index: u32,
        cancel: &CancellationToken,
    ) -> Result<(String, bool), Error> {
        let top = repository.top("git_stash")?;
        repository.check_writable()?;
        self.refuse_drivers(repository, "git_stash", cancel).await?;
        let name = format!("stash@{{{index}}}");
        let stash = self.commit_of(repository, &format!("refs/{name}"), cancel).await?;
        let base = self.commit_of(repository, &format!("{stash}^1"), cancel).await?;
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
        let (mut touched, mut whole) =
            self.ask("git_stash", Call::new(repository, Access::Reads, cancel, &words)).await?;
        if let Ok(untracked) = self.commit_of(repository, &format!("{stash}^3"), cancel).await {
            let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", &untracked];
            let (more, all) =
                self.ask("git_stash", Call::new(repository, Access::Reads, cancel, &words)).await?;
            touched.extend(more);
            whole &= all;
        }
        if !whole {
            return Err(Error::Odd("the stash has too many files to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        repository.check_changes(top, fields(&touched))?;
        // git itself spares untracked files, but not ignored ones.
        let words = ["ls-files", "-z", "--full-name", "--deduplicate", "--", ":/"];
        let call = Call::new(repository, Access::Reads, cancel, &words);
        let (indexed, whole) = self.ask("git_stash", call).await?;
        if !whole {
            return Err(Error::Odd("the repository has too many files to see whether others would be lost; run git itself for that (run_command)".to_owned()));
        }
        let indexed: HashSet<_> = fields(&indexed).collect();
        let new = fields(&touched).filter(|path| !indexed.contains(path));
        self.refuse_untracked(repository, top, new.clone(), "git_stash", cancel).await?;
        refuse_existing(repository, top, new, "git_stash")?;
        let verb = if action == StashAction::Pop { "pop" } else { "apply" };
        // A change follows no file to its new name: what has been looked at is what is changed.
        let configuration =
            [("merge.renames".to_owned(), "false"), ("merge.directoryRenames".to_owned(), "false")];
        let call = Call::new(repository, Access::Writes, cancel, &["stash", verb, "--quiet", &name]);
        let output = self.run(call.configured(&configuration)).await?;
        let count = plural(fields(&touched).count(), "path");
        if output.success() {
            return Ok((format!("applied {name} to {count}"), false));
        }
        let said = self.said(&repository.workspace, &output);
        let unmerged = Call::new(repository, Access::Reads, cancel, &["ls-files", "--unmerged", "-z"]);
        let (unmerged, _) = self.ask("git_stash", unmerged).await?;
        if unmerged.is_empty() {
            return Err(Error::Failed { action: "git_stash", said });
        }
        Ok((format!("applied {name} with conflicts; it is kept, and git_status names them\n{said}"), true))
    }
}

/// What has changed, if anything, are submodules.
const NOTHING: &str =
    "there is nothing to put aside; submodules and repositories within this one stay as they are";

/// Untracked files, one by one.
const OTHERS: [&str; 6] =
    ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames"];

/// The untracked paths of [`OTHERS`], each ended by NUL. What is told as a folder is another repository, which
/// no stash takes.
fn others(listed: &[u8]) -> Vec<u8> {
    let paths = fields(listed).filter_map(|entry| entry.strip_prefix(b"?? "));
    let paths = paths.filter(|path| !path.ends_with(b"/"));
    paths.flat_map(|path| path.iter().copied().chain([0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn untracked_files_are_those_with_question_marks() {
        assert_eq!(others(b" M a\0?? b c\0?? nested/\0?? ?? d\0"), b"b c\0?? d\0");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            parse(&listed);
            others(&listed);
        }
    }
}
