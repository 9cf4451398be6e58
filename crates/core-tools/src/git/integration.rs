//! The result of a merge or a rebase, and what both check.

use super::conflict::ConflictedFile;
use super::environment::INTEGRATION_CONFIGURATION;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{ConfigOverrides, GitAccess, GitInvocation};
use super::operation::{OperationProgress, UnfinishedOperation};
use super::printed_text::{count_of, lossy, printable_line};
use super::repository::Repository;
use super::status::HeadStatus;
use process_runner::Output;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// The state in which a merge or a rebase has left the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IntegrationOutcome {
    /// There was nothing to do.
    #[default]
    UpToDate,
    /// The branch was moved forward, without a commit of its own.
    FastForward,
    /// A merge commit was made.
    Merged,
    /// The commits were put onto another.
    Rebased,
    /// It stopped at conflicts.
    Conflicts,
    /// It stopped for another reason: a hook refused, or a step asked for it.
    Stopped,
    /// Everything is as it was before.
    Aborted,
}

/// The result of a merge or a rebase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct IntegrationResult {
    /// The state in which it ended.
    pub outcome: IntegrationOutcome,
    /// The same in a sentence.
    pub summary: String,
    /// The branch and commit that are checked out.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub head: HeadStatus,
    /// How far a rebase has come.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<OperationProgress>,
    /// The files in conflict, the first 200.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictedFile>,
    /// The number of files in conflict, listed or not.
    pub total_conflicts: usize,
    /// The way to go on, where it is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<&'static str>,
    /// Messages of git and of hooks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl IntegrationResult {
    /// Returns true if it is not finished.
    pub fn is_unfinished(&self) -> bool {
        matches!(self.outcome, IntegrationOutcome::Conflicts | IntegrationOutcome::Stopped)
    }

    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}", self.summary, self.head.to_text());
        for conflict in &self.conflicts {
            let _ = write!(text, "\n{}", conflict.to_text());
        }
        if self.conflicts.len() < self.total_conflicts {
            let _ = write!(text, "\n[{} more]", self.total_conflicts - self.conflicts.len());
        }
        if let Some(next) = self.next {
            let _ = write!(text, "\n{next}");
        }
        for conflict in self.conflicts.iter().filter(|conflict| !conflict.text.is_empty()) {
            let _ = write!(text, "\n==> {} <==\n{}", printable_line(&conflict.path), conflict.text);
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n--- output ---\n{}", self.output);
        }
        text
    }
}

/// Returns the settings with which a merge or a rebase does what the call says, and no more.
pub(super) fn integration_overrides() -> ConfigOverrides {
    INTEGRATION_CONFIGURATION.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

impl Git {
    /// Checks all that a merge or a rebase needs before it changes files.
    pub(super) async fn check_integration(
        &self,
        repository: &Repository,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        repository.top_level(action)?;
        repository.check_writable()?;
        self.check_same_repository(repository, action, cancel).await?;
        self.refuse_configured_programs(repository, action, cancel).await
    }

    /// Returns true if `older` is `newer`, or leads to it.
    pub(super) async fn is_ancestor(
        &self,
        repository: &Repository,
        older: &str,
        newer: &str,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let words = ["merge-base", "--is-ancestor", older, newer];
        let output = self.run(GitInvocation::new(repository, GitAccess::Read, cancel, &words)).await?;
        Ok(output.success())
    }

    /// Returns the number of commits in `range`, a range of object names; `options` may leave some out.
    pub(super) async fn count_in_range(
        &self,
        repository: &Repository,
        options: &[&str],
        range: &str,
        cancel: &CancellationToken,
    ) -> Result<usize, Error> {
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &["rev-list", "--count"]);
        let counted = self.run_checked("counting commits", invocation.args(options).arg(range)).await?.bytes;
        lossy(counted.trim_ascii()).parse().map_err(|_| Error::UnexpectedOutput("git rev-list"))
    }

    /// Returns the result of a run that ended as `outcome`.
    pub(super) async fn integration_result(
        &self,
        repository: &Repository,
        outcome: IntegrationOutcome,
        summary: String,
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let head = self.whole_status(repository, cancel).await?.head;
        Ok(IntegrationResult { outcome, summary, head, ..IntegrationResult::default() })
    }

    /// Returns the result of a run that stopped on its way, or the error of one that did not begin.
    pub(super) async fn stopped_result(
        &self,
        repository: &Repository,
        operation: UnfinishedOperation,
        output: &Output,
        (action, next): (&'static str, &'static str),
        cancel: &CancellationToken,
    ) -> Result<IntegrationResult, Error> {
        let message = self.messages(&repository.workspace, output);
        // git fails both if it does not begin and if it stops on its way. Only the second leaves an operation in
        // progress.
        if repository.unfinished_operation()? != Some(operation) {
            return Err(Error::Failed { action, message });
        }
        let (conflicts, total_conflicts) = self.conflicts(repository, cancel).await?;
        let (outcome, reason) = match total_conflicts {
            0 => (IntegrationOutcome::Stopped, "without conflicts".to_owned()),
            count => (
                IntegrationOutcome::Conflicts,
                format!("at conflicts in {}", count_of(count, "file", "files")),
            ),
        };
        let status = self.whole_status(repository, cancel).await?;
        let progress = status.progress.as_ref().map(OperationProgress::to_string).unwrap_or_default();
        Ok(IntegrationResult {
            outcome,
            summary: format!("the {operation}{progress} stopped {reason}"),
            head: status.head,
            progress: status.progress,
            conflicts,
            total_conflicts,
            next: Some(next),
            // The list of conflicts says the same, and more.
            output: if total_conflicts == 0 { message } else { String::new() },
        })
    }
}

impl Repository {
    /// Refuses where an operation is in progress that has to be finished first.
    pub(super) fn refuse_unfinished(&self) -> Result<(), Error> {
        match self.unfinished_operation()?.filter(|operation| operation.is_concluded_by_commit()) {
            Some(operation) => Err(Error::InProgress(operation)),
            None => Ok(()),
        }
    }

    /// Refuses where another operation than `expected` is in progress, or none.
    pub(super) fn check_in_progress(&self, expected: UnfinishedOperation) -> Result<(), Error> {
        match self.unfinished_operation()? {
            Some(operation) if operation == expected => Ok(()),
            Some(operation) if operation.is_concluded_by_commit() => Err(Error::InProgress(operation)),
            _ => Err(Error::NotInProgress(expected)),
        }
    }
}
