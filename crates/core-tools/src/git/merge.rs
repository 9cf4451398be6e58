//! `git_merge`: merges a branch, and continues or aborts a merge that stopped.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::commit::HOOKS_TIMEOUT;
use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::integration::{IntegrationOutcome, IntegrationResult, integration_overrides};
use super::invocation::{GitAccess, GitInvocation};
use super::operation::UnfinishedOperation;
use super::printed_text::{lossy, nul_fields};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// A merge to start, continue or abort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitMerge {
    /// `start`, the default, merges `revision`; `continue` commits a merge whose conflicts are resolved; `abort` takes it
    /// back, with what was resolved.
    pub action: Option<MergeAction>,
    /// With `start`: the branch, tag or commit to merge into the current branch, such as `origin/main`.
    pub revision: Option<String>,
    /// The message of the merge commit. Default: git's, `Merge branch 'topic'`.
    pub message: Option<String>,
    /// With `start`: make a merge commit even where the branch could move forward without one. Default: false.
    #[schemars(extend("unlisted" = true))]
    pub no_ff: Option<bool>,
    /// With `continue`: resolved files to stage first.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Option<Vec<String>>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    #[schemars(extend("unlisted" = true))]
    pub repository_path: Option<String>,
}

/// The steps of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MergeAction {
    /// Merge.
    #[default]
    Start,
    /// Commit a merge that stopped.
    Continue,
    /// Take a merge that stopped back.
    Abort,
}

impl GitMerge {
    /// An input that merges `revision` into the current branch.
    pub fn new(revision: impl Into<String>) -> Self {
        Self { revision: Some(revision.into()), ..Self::default() }
    }
}

const ACTION: &str = "git_merge";
const NEXT: &str = "resolve the files, then call git_merge with action `continue` and the files in `files`; action `abort` \
                    takes the merge back";

impl Git {
    /// Merges a branch into the current one, or continues or aborts a merge that stopped. Hooks and signing run as in a
    /// terminal. Conflicts are a result, not an error.
    ///
    /// # Errors
    /// There is no such branch, another operation is in progress, changes or protected or untracked files are in the way,
    /// the repository's own configuration names filters or merge drivers, or git fails.
    pub async fn merge(
        &self,
        input: &GitMerge,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        self.check_integration(&repository, ACTION, cancel).await?;
        match input.action.unwrap_or_default() {
            MergeAction::Start => self.start_merge(&repository, input, cancel).await,
            MergeAction::Continue => self.continue_merge(&repository, input, cancel).await,
            MergeAction::Abort => self.abort_merge(&repository, cancel).await,
        }
    }

    async fn start_merge(
        &self,
        repository: &Repository,
        input: &GitMerge,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let Some(revision) = &input.revision else {
            let reason = "it is missing; name the branch to merge, such as `origin/main`".to_owned();
            return Err(Error::InvalidArgument { name: "revision", reason });
        };
        repository.refuse_unfinished()?;
        let theirs = self.resolve_commit(repository, revision, cancel).await?;
        let Some(head) = self.head_commit(repository, cancel).await? else {
            return Err(Error::NothingToDo("there are no commits yet to merge into"));
        };
        if self.is_ancestor(repository, &theirs, &head, cancel).await? {
            let summary = format!("{revision} is merged already");
            return self.integration_result(repository, IntegrationOutcome::UpToDate, summary, cancel).await;
        }
        let is_forward = self.is_ancestor(repository, &head, &theirs, cancel).await?;
        let result = if is_forward {
            theirs.clone()
        } else {
            self.merged_tree(repository, &head, &theirs, cancel).await?
        };
        let written = self.differing_paths(repository, &head, &result, cancel).await?;
        self.check_written(repository, &written, ACTION, cancel).await?;
        let moves_forward = is_forward && input.no_ff != Some(true);
        let message = match &input.message {
            Some(message) => message.clone(),
            None => self.merge_message(repository, revision, &theirs, cancel).await?,
        };
        let words = [
            "merge",
            "--no-edit",
            "--no-stat",
            "--no-progress",
            // By default, git overwrites ignored files without a word.
            "--no-overwrite-ignore",
            "--cleanup=whitespace",
        ];
        let run = GitInvocation::new(repository, GitAccess::Commit, cancel, &words)
            // One of the two is always given, since it overrides the user's `merge.ff`.
            .arg(if moves_forward { "--ff" } else { "--no-ff" })
            .arg(format!("--message={message}"))
            // By its id: the branch could have moved since the paths were checked.
            .arg(&theirs)
            // Advice on commands to type.
            .variable("GIT_ADVICE", "0")
            .config(&integration_overrides())
            .timeout(HOOKS_TIMEOUT);
        let output = self.run(run).await?;
        if !output.success() {
            let merge = UnfinishedOperation::Merge;
            return self.stopped_result(repository, merge, &output, (ACTION, NEXT), cancel).await;
        }
        let (outcome, verb) = match moves_forward {
            true => (IntegrationOutcome::FastForward, "moved forward to"),
            false => (IntegrationOutcome::Merged, "merged"),
        };
        self.integration_result(repository, outcome, format!("{verb} {revision}"), cancel).await
    }

    /// Returns the tree that a merge makes, conflicts included: it has every path that the merge writes.
    async fn merged_tree(
        &self,
        repository: &Repository,
        head: &str,
        theirs: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let words = ["merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", head, theirs];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let output = self.run(invocation.config(&integration_overrides())).await?;
        // It fails for conflicts as for every other error; only with conflicts it prints a tree.
        let tree = nul_fields(output.stdout.bytes()).next().map(lossy).unwrap_or_default();
        if tree.len() >= 40 && tree.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(tree);
        }
        Err(Error::Failed { action: ACTION, message: self.messages(&repository.workspace, &output) })
    }

    /// Returns the message that git gives a merge of what the caller called `revision`.
    async fn merge_message(
        &self,
        repository: &Repository,
        revision: &str,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let mut subject = format!("Merge commit '{}'", commit.chars().take(10).collect::<String>());
        for (prefix, kind) in
            [("refs/heads/", "branch"), ("refs/remotes/", "remote-tracking branch"), ("refs/tags/", "tag")]
        {
            if self.resolve_commit(repository, &format!("{prefix}{revision}"), cancel).await.is_ok() {
                subject = format!("Merge {kind} '{revision}'");
                break;
            }
        }
        let head = self.whole_status(repository, cancel).await?.head;
        match head.branch.as_deref() {
            // Some("main" | "master") => Ok(subject), | As in git's own messages, the main branch is not named.
            None | Some("main" | "master") => Ok(subject),
            Some(branch) => Ok(format!("{subject} into {branch}")),
        }
    }

    async fn continue_merge(
        &self,
        repository: &Repository,
        input: &GitMerge,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        repository.check_in_progress(UnfinishedOperation::Merge)?;
        if let Some(files) = &input.files {
            self.stage_resolved(repository, files, ACTION, cancel).await?;
        }
        self.refuse_conflicts(repository, cancel).await?;
        let merge_commit = GitInvocation::new(repository, GitAccess::Commit, cancel, &["commit", "--quiet"]);
        let merge_commit = match &input.message {
            Some(message) => {
                merge_commit.args(["--file=-", "--cleanup=whitespace"]).stdin(message.as_bytes())
            }
            // git's own message lists the conflicts in comments.
            None => merge_commit.args(["--no-edit", "--cleanup=strip"]),
        };
        let output = self.run(merge_commit.timeout(HOOKS_TIMEOUT)).await?;
        if !output.success() {
            let merge = UnfinishedOperation::Merge;
            return self.stopped_result(repository, merge, &output, (ACTION, NEXT), cancel).await;
        }
        let commit = self.resolve_commit(repository, "HEAD", cancel).await?;
        let summary =
            format!("committed the merge: {}", self.commit_summary(repository, &commit, cancel).await?);
        self.integration_result(repository, IntegrationOutcome::Merged, summary, cancel).await
    }

    async fn abort_merge(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        repository.check_in_progress(UnfinishedOperation::Merge)?;
        self.check_way_back(repository, "HEAD", ACTION, cancel).await?;
        let run = GitInvocation::new(repository, GitAccess::Write, cancel, &["merge", "--abort"]);
        self.run_checked(ACTION, run).await?;
        let summary = "aborted the merge: the files are as they were before".to_owned();
        self.integration_result(repository, IntegrationOutcome::Aborted, summary, cancel).await
    }

    /// Refuses to go back to `revision` where a protected file differs from it.
    pub(super) async fn check_way_back(
        &self,
        repository: &Repository,
        revision: &str,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let commit = self.resolve_commit(repository, revision, cancel).await?;
        let invocation = GitInvocation::changed_names(repository, cancel, &commit);
        let GitOutput { bytes, is_complete } = self.run_checked(action, invocation).await?;
        if !is_complete {
            return Err(Error::TooLarge("too many files have changed to go back".to_owned()));
        }
        repository.check_changes(repository.top_level(action)?, nul_fields(&bytes))
    }
}
