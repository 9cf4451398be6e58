//! `git_commit`: commits what is staged.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::diff::DiffRequest;
use super::error::Error;
use super::invocation::{GitAccess, GitInvocation};
use super::operation::UnfinishedOperation;
use super::repository::Repository;
use super::run::Git;
use super::text::count_of;
use crate::workspace::ConfinedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A commit to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitCommit {
    /// Text
    pub message: String,
    /// Folder
    pub repository_path: Option<String>,
}

impl GitCommit {
    /// An input that commits what is staged, with `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), repository_path: None }
    }
}

/// The time limit of a commit with its hooks, which may run tests.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A commit that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommitResult {
    /// Its object name.
    pub commit: String,
    /// Its subject, and the size of its changes.
    pub summary: String,
    /// The output of git and the hooks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl CommitResult {
    /// Returns the result as text, for people and for clients that show no structured content.
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
    pub async fn commit(&self, input: &GitCommit, cancel: &CancellationToken) -> Result<CommitResult, Error> {
        if input.message.trim().is_empty() || input.message.contains('\0') {
            let reason =
                "it is blank, or has a NUL character; say what the commit changes, and why".to_owned();
            return Err(Error::InvalidArgument { name: "message", reason });
        }
        let repository = self.repository(input.repository_path.as_deref())?;
        let top = repository.top_level("git_commit")?;
        repository.check_writable()?;
        let invocation = |access, words: &[&str]| GitInvocation::new(&repository, access, cancel, words);
        let unmerged = self
            .run_checked("git_commit", invocation(GitAccess::Read, &["ls-files", "--unmerged", "-z"]))
            .await?
            .bytes;
        if !unmerged.is_empty() {
            return Err(Error::NothingToDo("there are conflicts: resolve them and git_add the files first"));
        }
        // A merge that changes no file still has to be committed.
        let operation = repository.unfinished_operation()?;
        let concludes_operation = operation.is_some_and(UnfinishedOperation::is_concluded_by_commit);
        if !concludes_operation && self.count_staged(&repository, cancel).await? == 0 {
            return Err(Error::NothingToDo("nothing is staged: git_add what is to be committed first"));
        }
        self.check_same_repository(&repository, top, cancel).await?;
        // The caller wrote the message, so its lines that begin with `#` are no comments of an editor and stay.
        let words = ["commit", "--quiet", "--file=-", "--cleanup=whitespace"];
        let run = invocation(GitAccess::Commit, &words).stdin(input.message.as_bytes()).timeout(TIMEOUT);
        let output = self.run(run).await?;
        let silent = output.stdout.is_empty() && output.stderr.is_empty();
        let message = if silent && output.success() {
            String::new()
        } else {
            self.messages(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(Error::Failed { action: "git_commit", message });
        }
        let commit = self.resolve_commit(&repository, "HEAD", cancel).await?;
        let found = self.commits(&repository, &commit, 1, &[], cancel).await?;
        let subject = found.into_iter().next().map(|commit| commit.subject).unwrap_or_default();
        let request = DiffRequest {
            command: "show",
            options: ["--format=", "--no-show-signature", "--diff-merges=first-parent"]
                .map(str::to_owned)
                .to_vec(),
            revisions: vec![commit.clone()],
            paths: &[],
            overrides: Vec::new(),
        };
        let diff = self.compare(&repository, &request, false, cancel).await?;
        let size =
            format!("{}, +{} -{}", count_of(diff.total, "file", "files"), diff.insertions, diff.deletions);
        Ok(CommitResult { commit, summary: format!("{subject} ({size})"), output: message })
    }

    /// Refuses where git, which finds the repository itself here, finds another, by `core.worktree`. git also checks
    /// the ownership (`safe.directory`), since hooks will run.
    async fn check_same_repository(
        &self,
        repository: &Repository,
        top: &ConfinedPath,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let words = ["rev-parse", "--show-toplevel", "--absolute-git-dir"];
        let found = self
            .run_checked("git_commit", GitInvocation::new(repository, GitAccess::Commit, cancel, &words))
            .await?
            .bytes;
        // `components` drops the trailing separator that joining an empty path leaves.
        let mut expected = top.to_absolute().components().as_path().as_os_str().to_owned();
        expected.push("\n");
        expected.push(repository.git_dir.to_absolute().components().as_path());
        expected.push("\n");
        if found == expected.as_encoded_bytes() {
            return Ok(());
        }
        Err(Error::UnsupportedLayout(
            "the repository's own configuration (core.worktree) places its files elsewhere".to_owned(),
        ))
    }
}
