//! `git_commit`: stages files on request, and commits.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::add::FilesToStage;
use super::diff::DiffRequest;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::operation::UnfinishedOperation;
use super::printed_text::{count_of, lossy, printable_line};
use super::repository::Repository;
use super::status::{ChangedPath, WorkTreeStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A commit to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitCommit {
    /// The whole message: a subject line, then a blank line and the reason if it needs one. Only `amend` does without: the
    /// old message stays.
    pub message: Option<String>,
    /// Commits these files or folders as they are now, new and deleted ones too, and nothing else. Default: what is staged.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Option<Vec<String>>,
    /// Stages every changed or deleted file that git tracks first. New files are left out, and the answer names them.
    pub all: Option<bool>,
    /// Replaces the last commit instead of adding one. Default: false.
    pub amend: Option<bool>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

impl GitCommit {
    /// An input that commits what is staged, with `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::default() }
    }

    /// Refuses a message that says nothing, and parameters that exclude each other.
    fn check(&self) -> Result<(), Error> {
        let invalid = |name, reason: &str| Err(Error::InvalidArgument { name, reason: reason.to_owned() });
        match &self.message {
            Some(message) if message.trim().is_empty() || message.contains('\0') => invalid(
                "message",
                "it is blank, or has a NUL character; say what the commit changes, and why",
            ),
            None if !self.amends() => {
                invalid("message", "it is missing; say what the commit changes, and why")
            }
            _ if self.files.is_some() && self.all == Some(true) => {
                invalid("all", "`files` names what to commit already; give one of the two")
            }
            _ => Ok(()),
        }
    }

    fn amends(&self) -> bool {
        self.amend == Some(true)
    }

    fn staging(&self) -> Option<FilesToStage<'_>> {
        match &self.files {
            Some(files) => Some(FilesToStage::Named(files)),
            None => (self.all == Some(true)).then_some(FilesToStage::Tracked),
        }
    }
}

/// The time limit of a commit with its hooks, which may run tests.
pub(super) const HOOKS_TIMEOUT: Duration = Duration::from_secs(600);
/// The most paths that an answer names of those that were not committed.
const MAX_NAMED: usize = 10;

/// A commit that was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommitResult {
    /// Its object name.
    pub commit: String,
    /// Its subject, and the size of its changes.
    pub summary: String,
    /// The merge, cherry-pick or revert that it concludes.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concludes: Option<UnfinishedOperation>,
    /// The operation that goes on after it.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<UnfinishedOperation>,
    /// The branch of a remote that has the commit which was amended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The files that hooks changed and did not commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_by_hooks: Vec<String>,
    /// The changes that are not committed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<ChangedPath>,
    /// The output of git and the hooks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl CommitResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}", self.commit, self.summary);
        if let Some(operation) = self.concludes {
            let _ = write!(text, "\nthis commit concludes the {operation}");
        }
        if let Some(operation) = self.in_progress {
            let _ = write!(text, "\na {operation} is still in progress: continue or abort it");
        }
        if let Some(branch) = &self.published {
            let _ = write!(
                text,
                "\nthe commit that was amended is on {branch} already: pushing the new one needs `force_with_lease`"
            );
        }
        if !self.changed_by_hooks.is_empty() {
            let _ = write!(text, "\nhooks changed, and did not commit: {}", named(&self.changed_by_hooks));
        }
        if !self.left.is_empty() {
            let left: Vec<_> = self.left.iter().map(ChangedPath::to_text).collect();
            let _ = write!(text, "\nnot in this commit: {}", named(&left));
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n--- output ---\n{}", self.output);
        }
        text
    }
}

/// Joins the first names, and counts the rest.
fn named(names: &[String]) -> String {
    let mut text =
        names.iter().take(MAX_NAMED).map(|name| printable_line(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMED {
        let _ = write!(text, " and {} more", names.len() - MAX_NAMED);
    }
    text
}

/// Returns the paths whose files differ from the index in `after` and did not in `before`: what hooks changed.
fn changed_since(before: &WorkTreeStatus, after: &WorkTreeStatus) -> Vec<String> {
    let is_changed = |change: &&ChangedPath| change.unstaged.is_some();
    let known: HashSet<_> = before.changes.iter().filter(is_changed).map(|change| &change.path).collect();
    let changed = after.changes.iter().filter(is_changed).map(|change| &change.path);
    changed.filter(|path| !known.contains(path)).cloned().collect()
}

impl Git {
    /// Commits what is staged, or what the input names, as `git commit` does in a terminal: with hooks and signature as
    /// configured, and without an editor.
    ///
    /// # Errors
    /// The message is blank, nothing is to be committed, there are conflicts, a hook refuses, or git fails.
    pub async fn commit(&self, input: &GitCommit, cancel: &CancellationToken) -> Result<CommitResult, Error> {
        input.check()?;
        let repository = self.repository(input.repository_path.as_deref())?;
        repository.top_level("git_commit")?;
        repository.check_writable()?;
        // Asked at once: what follows is of no use if the commit cannot be made.
        self.check_same_repository(&repository, "git_commit", cancel).await?;
        let before =
            repository.unfinished_operation()?.filter(|operation| operation.is_concluded_by_commit());
        if let Some(operation) = before.filter(|_| input.amends()) {
            let reason = format!("a {operation} is in progress, and its commit is a new one");
            return Err(Error::InvalidArgument { name: "amend", reason });
        }
        self.stage_for_commit(&repository, input, cancel).await?;
        // A merge that changes no file still has to be committed.
        if before.is_none() {
            self.check_something_to_commit(&repository, input, cancel).await?;
        }
        // Before the commit is replaced: afterwards HEAD is the new one, which no remote has.
        let published =
            if input.amends() { self.remote_branch_with_head(&repository, cancel).await? } else { None };
        let mut result = self.run_commit(&repository, input, before.is_some(), cancel).await?;
        result.published = published;
        result.in_progress =
            repository.unfinished_operation()?.filter(|operation| operation.is_concluded_by_commit());
        result.concludes = before.filter(|_| result.in_progress.is_none());
        Ok(result)
    }

    /// Stages what the call names. Refuses where files are still in conflict.
    async fn stage_for_commit(
        &self,
        repository: &Repository,
        input: &GitCommit,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        match input.staging() {
            Some(FilesToStage::Named(files)) => {
                self.stage_resolved(repository, files, "git_commit", cancel).await?;
                self.refuse_conflicts(repository, cancel).await
            }
            // First: staging everything would take files with conflict markers for resolved.
            Some(FilesToStage::Tracked) => {
                self.refuse_conflicts(repository, cancel).await?;
                self.stage(repository, FilesToStage::Tracked, "git_commit", cancel).await.map(drop)
            }
            None => self.refuse_conflicts(repository, cancel).await,
        }
    }

    async fn check_something_to_commit(
        &self,
        repository: &Repository,
        input: &GitCommit,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let files = input.files.as_deref().unwrap_or_default();
        if self.count_staged(repository, files, cancel).await? > 0 {
            return Ok(());
        }
        match (input.amends(), &input.message) {
            (true, Some(_)) => Ok(()),
            (true, None) => Err(Error::NothingToDo(
                "there is nothing to amend: give a message, or name the changed files in `files`",
            )),
            (false, _) if input.all == Some(true) => Err(Error::NothingToDo(
                "no file that git tracks has changed; new files are committed by name, in `files`",
            )),
            (false, _) if files.is_empty() => Err(Error::NothingToDo(
                "nothing is staged: name what is to be committed in `files`, or set `all`",
            )),
            (false, _) => Err(Error::NothingToDo("none of the files that `files` names has changed")),
        }
    }

    /// Returns a branch of a remote that has the commit which is checked out.
    async fn remote_branch_with_head(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let Some(head) = self.head_commit(repository, cancel).await? else { return Ok(None) };
        let words =
            ["for-each-ref", "--count=1", "--format=%(refname:short)", "--contains", &head, "refs/remotes"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let listed = self.run_checked("git_commit", invocation).await?.bytes;
        Ok(Some(lossy(listed.trim_ascii())).filter(|branch| !branch.is_empty()))
    }

    /// Runs `git commit`, and finds out what it did. `whole` commits all that is staged, whatever is named: the commit
    /// of a merge has no parts.
    async fn run_commit(
        &self,
        repository: &Repository,
        input: &GitCommit,
        whole: bool,
        cancel: &CancellationToken,
    ) -> Result<CommitResult, Error> {
        // The caller wrote the message, so its lines that begin with `#` are no comments of an editor and stay.
        let words = ["commit", "--quiet", "--cleanup=whitespace"];
        let mut run =
            GitInvocation::new(repository, GitAccess::Commit, cancel, &words).timeout(HOOKS_TIMEOUT);
        run = match &input.message {
            Some(message) => run.arg("--file=-").stdin(message.as_bytes()),
            None => run.arg("--no-edit"),
        };
        if input.amends() {
            run = run.arg("--amend");
        }
        if let Some(files) = input.files.as_ref().filter(|_| !whole) {
            // Not by the variable that makes all paths literal: hooks would inherit it.
            run = run.args(["--only", "--"]).args(files.iter().map(|file| format!(":(literal){file}")));
        }
        // Hooks may change files. What they changed is the difference between the two looks.
        let before = self.whole_status(repository, cancel).await?;
        let output = self.run(run).await?;
        let after = self.whole_status(repository, cancel).await?;
        let changed_by_hooks = changed_since(&before, &after);
        let is_silent = output.stdout.is_empty() && output.stderr.is_empty();
        let message = if is_silent && output.success() {
            String::new()
        } else {
            self.messages(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(commit_failure(&message, &changed_by_hooks));
        }
        let commit = self.resolve_commit(repository, "HEAD", cancel).await?;
        let summary = self.commit_summary(repository, &commit, cancel).await?;
        Ok(CommitResult {
            commit,
            summary,
            changed_by_hooks,
            left: after.changes,
            output: message,
            ..CommitResult::default()
        })
    }

    /// Returns the subject of a commit, and the size of its changes.
    pub(super) async fn commit_summary(
        &self,
        repository: &Repository,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let found = self.commits(repository, &[commit.to_owned()], 1, &[], cancel).await?;
        let subject = found.into_iter().next().map(|commit| commit.subject).unwrap_or_default();
        let request = DiffRequest {
            command: "show",
            options: ["--format=", "--no-show-signature", "--diff-merges=first-parent"]
                .map(str::to_owned)
                .to_vec(),
            revisions: vec![commit.to_owned()],
            paths: &[],
            overrides: Vec::new(),
        };
        let diff = self.compare(repository, &request, false, cancel).await?;
        let files = count_of(diff.total, "file", "files");
        Ok(format!("{subject} ({files}, +{} -{})", diff.insertions, diff.deletions))
    }
}

/// Returns the error of a commit that git or a hook refused.
fn commit_failure(output: &str, changed_by_hooks: &[String]) -> Error {
    let mut message = format!("nothing was committed, and what was staged stays staged\n{output}");
    if !changed_by_hooks.is_empty() {
        let _ = write!(
            message,
            "\nhooks changed {}: look at the changes, name the files in `files`, and commit again",
            named(changed_by_hooks)
        );
    }
    Error::Failed { action: "git_commit", message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::GitChangeKind;

    fn status(changes: &[(&str, Option<GitChangeKind>)]) -> WorkTreeStatus {
        let changes = changes.iter().map(|(path, unstaged)| ChangedPath {
            path: (*path).to_owned(),
            unstaged: *unstaged,
            ..ChangedPath::default()
        });
        WorkTreeStatus { changes: changes.collect(), ..WorkTreeStatus::default() }
    }

    #[test]
    fn hooks_changed_what_differs_now_and_did_not_before() {
        let modified = Some(GitChangeKind::Modified);
        let before = status(&[("staged", None), ("open", modified)]);
        let after = status(&[("staged", modified), ("open", modified), ("only staged", None)]);
        assert_eq!(changed_since(&before, &after), ["staged"]);
    }

    #[test]
    fn parameters_that_exclude_each_other_are_refused() {
        let files = Some(vec!["a".to_owned()]);
        for (input, word) in [
            (GitCommit::default(), "missing"),
            (GitCommit::new(" "), "blank"),
            (GitCommit { files, all: Some(true), ..GitCommit::new("m") }, "one of the two"),
        ] {
            assert!(input.check().unwrap_err().to_string().contains(word));
        }
        assert!(GitCommit { amend: Some(true), ..GitCommit::default() }.check().is_ok());
    }
}
