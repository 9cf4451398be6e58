//! Committing.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::diff::Comparison;
use super::error::Error;
use super::repository::Repository;
use super::run::{Access, Call, Git};
use super::text::plural;
use crate::workspace::ConfinedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What to say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCommit {
    /// Text
    pub message: String,
    /// Folder
    pub repository_path: Option<String>,
}

/// What hooks get: they may run tests.
const PATIENCE: Duration = Duration::from_secs(600);

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Committed {
    /// Its name.
    pub commit: String,
    /// Its subject, and how much it changes.
    pub summary: String,
    /// What hooks and git printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl Committed {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let text = format!("{}\n{}", self.commit, self.summary);
        if self.output.is_empty() { text } else { format!("{text}\n--- output ---\n{}", self.output) }
    }
}

impl Git {
    /// Commits what is staged, as `git commit` does in a terminal: with hooks and signature as configured, and
    /// without an editor.
    ///
    /// # Errors
    /// The message is blank, nothing is staged, there are conflicts, a hook refuses, or git fails.
    pub async fn commit(&self, input: &GitCommit, cancel: &CancellationToken) -> Result<Committed, Error> {
        if input.message.trim().is_empty() || input.message.contains('\0') {
            let reason =
                "it is blank, or has a NUL character; say what the commit changes, and why".to_owned();
            return Err(Error::Argument { name: "message", reason });
        }
        let repository = self.find(input.repository_path.as_deref())?;
        let top = repository.top("git_commit")?;
        repository.check_writable()?;
        let call = |access, words: &[&str]| Call::new(&repository, access, cancel, words);
        let (unmerged, _) =
            self.ask("git_commit", call(Access::Reads, &["ls-files", "--unmerged", "-z"])).await?;
        if !unmerged.is_empty() {
            return Err(Error::Nothing("there are conflicts: resolve them and git_add the files first"));
        }
        // A merge whose result is as ours still has to be committed.
        let merges = repository.operation()?.is_some_and(|operation| operation != "bisect");
        if !merges && self.staged(&repository, cancel).await? == 0 {
            return Err(Error::Nothing("nothing is staged: git_add what is to be committed first"));
        }
        self.check_found_alike(&repository, top, cancel).await?;
        let words = ["commit", "--quiet", "--file=-", "--cleanup=whitespace"];
        let run = call(Access::Commits, &words).stdin(input.message.as_bytes()).timeout(PATIENCE);
        let output = self.run(run).await?;
        let silent = output.stdout.is_empty() && output.stderr.is_empty();
        let said = if silent && output.success() {
            String::new()
        } else {
            self.said(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(Error::Failed { action: "git_commit", said });
        }
        let commit = self.commit_of(&repository, "HEAD", cancel).await?;
        let found = self.commits(&repository, &commit, 1, &[], cancel).await?;
        let subject = found.into_iter().next().map(|commit| commit.subject).unwrap_or_default();
        let comparison = Comparison {
            command: "show",
            options: ["--format=", "--no-show-signature", "--diff-merges=first-parent"]
                .map(str::to_owned)
                .to_vec(),
            revisions: vec![commit.clone()],
            paths: &[],
            configured: Vec::new(),
        };
        let diff = self.compare(&repository, &comparison, false, cancel).await?;
        let size = format!("{}, +{} -{}", plural(diff.total, "file"), diff.insertions, diff.deletions);
        Ok(Committed { commit, summary: format!("{subject} ({size})"), output: said })
    }

    /// Refuses where git, left to find the repository itself, finds another: by `core.worktree`. It also judges
    /// whose it is (`safe.directory`), since hooks will run.
    async fn check_found_alike(
        &self,
        repository: &Repository,
        top: &ConfinedPath,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let words = ["rev-parse", "--show-toplevel", "--absolute-git-dir"];
        let (found, _) =
            self.ask("git_commit", Call::new(repository, Access::Commits, cancel, &words)).await?;
        // Without the separator that joining nothing leaves.
        let mut expected = top.to_absolute().components().as_path().as_os_str().to_owned();
        expected.push("\n");
        expected.push(repository.git_dir.to_absolute().components().as_path());
        expected.push("\n");
        if found == expected.as_encoded_bytes() {
            return Ok(());
        }
        Err(Error::Odd(
            "the repository's own configuration (core.worktree) places its files elsewhere".to_owned(),
        ))
    }
}
