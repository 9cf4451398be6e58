//! `git_checkout`: switches to a branch or a commit.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{lossy, nul_fields};
use super::repository::Repository;
use super::revision::check_argument;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// A branch or a commit to switch to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitCheckout {
    /// The branch to switch to, such as `topic`; one that only a remote has is created to follow it. A commit or a tag is
    /// checked out without a branch.
    pub branch: String,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    #[schemars(extend("unlisted" = true))]
    pub repository_path: Option<String>,
}

impl GitCheckout {
    /// An input that switches to `branch`, which may also be a commit.
    pub fn new(branch: impl Into<String>) -> Self {
        Self { branch: branch.into(), repository_path: None }
    }
}

/// The branch or commit that is checked out now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CheckoutResult {
    /// The branch. Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit.
    pub commit: String,
    /// Messages of git.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl CheckoutResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let position = match &self.branch {
            Some(branch) => format!("on branch {branch} at {}", self.commit),
            None => format!("HEAD is detached at {}", self.commit),
        };
        if self.message.is_empty() { position } else { format!("{position}\n{}", self.message) }
    }
}

/// The kind of thing that a name stands for.
enum CheckoutTarget {
    /// A local branch, or one of a single remote, for which git creates a local one.
    Branch,
    /// A commit, which is checked out without a branch.
    Commit,
}

impl Git {
    /// Switches to a branch or a commit. No uncommitted change is lost: where one is in the way, git refuses.
    /// Submodules stay as they are.
    ///
    /// # Errors
    /// There is no such branch or commit, a change or a protected file is in the way, the repository's own
    /// configuration names filters, or git fails.
    pub async fn checkout(
        &self,
        input: &GitCheckout,
        cancel: &CancellationToken,
    ) -> Result<CheckoutResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let top = repository.top_level("git_checkout")?;
        repository.check_writable()?;
        let name = &input.branch;
        check_argument("branch", name)?;
        let (target, commit) = self.checkout_target(&repository, name, cancel).await?;
        self.refuse_configured_programs(&repository, "git_checkout", cancel).await?;
        // git writes every path that differs, so each is checked for protection before it starts.
        let invocation = |words: &[&str]| GitInvocation::new(&repository, GitAccess::Read, cancel, words);
        let invocation = match self.head_commit(&repository, cancel).await? {
            Some(head) => invocation(&[
                "diff-tree",
                "-r",
                "-z",
                "--name-only",
                "--no-renames",
                "--no-ext-diff",
                "--no-relative",
                "--end-of-options",
                &head,
                &commit,
            ]),
            None => invocation(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &commit]),
        };
        let GitOutput { bytes: touched, is_complete } = self.run_checked("git_checkout", invocation).await?;
        if !is_complete {
            return Err(Error::TooLarge("it differs in too many files to see whether changes would be lost; run git itself for that (run_command)".to_owned()));
        }
        repository.check_changes(top, nul_fields(&touched))?;
        // `--no-overwrite-ignore`, because git overwrites ignored files silently by default. `--quiet`, because to list
        // the changes that are carried along, git would run in submodules, even those that only the branch has.
        let words =
            ["switch", "--quiet", "--no-progress", "--no-overwrite-ignore", "--no-recurse-submodules"];
        let invocation = GitInvocation::new(&repository, GitAccess::Write, cancel, &words);
        let invocation = match target {
            CheckoutTarget::Branch => invocation.args(["--end-of-options", name]),
            CheckoutTarget::Commit => invocation.args(["--detach", "--end-of-options", &commit]),
        };
        let output = self.run(invocation).await?;
        let message = self.messages(&repository.workspace, &output);
        if !output.success() {
            return Err(Error::Failed { action: "git_checkout", message });
        }
        let branch = matches!(target, CheckoutTarget::Branch).then(|| name.clone());
        Ok(CheckoutResult { branch, commit, message })
    }

    /// Returns the kind of thing that `name` stands for, and its commit. A branch comes before a commit or tag of
    /// the same name, as in `git switch`.
    async fn checkout_target(
        &self,
        repository: &Repository,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(CheckoutTarget, String), Error> {
        let hint = match self.resolve_commit(repository, &format!("refs/heads/{name}"), cancel).await {
            Ok(commit) => return Ok((CheckoutTarget::Branch, commit)),
            Err(Error::UnknownRevision(_, hint)) => hint,
            Err(error) => return Err(error),
        };
        match self.resolve_commit(repository, name, cancel).await {
            Ok(commit) => return Ok((CheckoutTarget::Commit, commit)),
            Err(Error::UnknownRevision(..)) => {}
            Err(error) => return Err(error),
        }
        // As `git switch --guess` does: a branch that exactly one remote has.
        let words = ["for-each-ref", "--format=%(refname)", "refs/remotes"];
        let listed = self
            .run_checked("git_checkout", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
            .await?
            .bytes;
        let listed = lossy(&listed);
        // The name of a remote has no slash here: the rest is the branch, which may have one.
        let mut found = listed.lines().filter(|remote| {
            let short = remote.strip_prefix("refs/remotes/").and_then(|rest| rest.split_once('/'));
            short.is_some_and(|(_, branch)| branch == name)
        });
        match (found.next(), found.next()) {
            (Some(only), None) => {
                Ok((CheckoutTarget::Branch, self.resolve_commit(repository, only, cancel).await?))
            }
            _ => Err(Error::UnknownRevision(name.to_owned(), hint)),
        }
    }
}
