//! `git_pull`: fetches the branch that the current one follows, and moves forward to it.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::fetch::{FetchResult, GitFetch};
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, printable_line};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// A pull to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitPull {
    /// The name of the remote, such as `origin`; not an address. Default: the one that the current branch follows.
    pub remote: Option<String>,
    /// The branch of the remote, such as `main`. Default: the one that the current branch follows.
    pub branch: Option<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// The result of a pull.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PullResult {
    /// The local branch.
    pub branch: String,
    /// The commit before.
    pub from: String,
    /// The commit now.
    pub to: String,
    /// The number of commits that it has gained.
    pub commits: usize,
    /// The number of commits that the remote has not.
    pub ahead: usize,
    /// The result of the fetch before it.
    pub fetched: FetchResult,
}

impl PullResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let branch = printable_line(&self.branch);
        let moved = match self.commits {
            0 => format!("{branch} has everything already"),
            commits => format!(
                "{branch} moved forward by {}: {:.10}..{:.10}",
                count_of(commits, "commit", "commits"),
                self.from,
                self.to
            ),
        };
        let ahead = match self.ahead {
            0 => String::new(),
            ahead => format!(", and {} that the remote has not", count_of(ahead, "commit", "commits")),
        };
        format!("{moved}{ahead}\n{}", self.fetched.to_text())
    }
}

impl Git {
    /// Fetches the branch that the current one follows, and moves the current branch and its files forward to it. No hook
    /// runs, and nothing is merged or rebased.
    ///
    /// # Errors
    /// The branches have diverged, changes or protected or untracked files are in the way, HEAD is detached, and
    /// everything that [`Git::fetch`] fails for.
    pub async fn pull(&self, input: &GitPull, cancel: &CancellationToken) -> Result<PullResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        repository.top_level("git_pull")?;
        repository.check_writable()?;
        repository.refuse_unfinished()?;
        let (Some(branch), Some(head)) =
            (self.head_branch(&repository, cancel).await?, self.head_commit(&repository, cancel).await?)
        else {
            return Err(Error::NothingToDo(
                "no branch with commits is checked out, so there is none to move forward",
            ));
        };
        let upstream = self.upstream(&repository, &branch, cancel).await?;
        let theirs = match &input.branch {
            Some(branch) => branch.clone(),
            None if upstream.branch.is_empty() => {
                let branch = printable_line(&branch);
                let reason = format!("it is missing, and {branch} follows no branch of a remote");
                return Err(Error::InvalidArgument { name: "branch", reason });
            }
            None => upstream.branch,
        };
        let access = GitAccess::Fetch;
        let remote =
            self.remote(&repository, input.remote.as_deref(), &upstream.remote, access, cancel).await?;
        let fetch = GitFetch { branch: Some(theirs.clone()), ..GitFetch::default() };
        let fetched = self.fetch_from(&repository, &remote, &fetch, cancel).await?;
        let tracked = format!("{}/{theirs}", remote.name);
        let target = self.resolve_commit(&repository, &format!("refs/remotes/{tracked}"), cancel).await?;
        let (ahead, commits) = self.divergence(&repository, &head, &target, cancel).await?;
        if ahead > 0 && commits > 0 {
            return Err(Error::Diverged { branch, tracked, ahead, behind: commits });
        }
        // Fetching is done even if nothing moves, so that the caller learns what is new at the remote.
        if commits > 0 {
            self.move_forward(&repository, &head, &target, cancel).await?;
        }
        let to = if commits > 0 { target } else { head.clone() };
        Ok(PullResult { branch, from: head, to, commits, ahead, fetched })
    }

    /// Moves the current branch and its files from `head` to `target`, which has it among its ancestors.
    async fn move_forward(
        &self,
        repository: &Repository,
        head: &str,
        target: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        // Both checks come before git writes anything, because a refused pull must leave the files as they were.
        self.refuse_configured_programs(repository, "git_pull", cancel).await?;
        let written = self.differing_paths(repository, head, target, cancel).await?;
        self.check_written(repository, &written, "git_pull", cancel).await?;
        let words = [
            "merge",
            "--ff-only",
            "--quiet",
            "--no-stat",
            "--no-progress",
            "--no-overwrite-ignore",
            "--no-autostash",
            target,
        ];
        let run = GitInvocation::new(repository, GitAccess::Write, cancel, &words);
        self.run_checked("git_pull", run).await.map(drop)
    }
}
