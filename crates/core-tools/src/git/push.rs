//! `git_push`: sends a branch to a remote.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::log::CommitEntry;
use super::printed_text::{count_of, printable_line};
use super::push_report::{self, PushedReference};
use super::remote::{GitRemote, REMOTE_TIMEOUT, UpstreamBranch, ignored_note};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// A push to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitPush {
    /// The name of the remote, such as `origin`; not an address. Default: the one that the branch is pushed to, or
    /// `origin`.
    pub remote: Option<String>,
    /// The local branch to push, such as `topic`. Default: the current branch.
    pub branch: Option<String>,
    /// The branch of the remote to push it to. Default: the one that it follows there, or the same name.
    pub remote_branch: Option<String>,
    /// Names of tags to push too, such as `["v1.2.0"]`.
    #[schemars(length(min = 1))]
    pub tags: Option<Vec<String>>,
    /// Let the branch follow the branch of the remote from now on. Default: true where it follows none.
    pub set_upstream: Option<bool>,
    /// Replace the branch of the remote after a rebase or an amended commit, but only if it is still at the commit that was
    /// last fetched. Commits of others that were fetched, and are not in your branch, are lost there. Default: false, and
    /// there is no other force.
    pub force_with_lease: Option<bool>,
    /// Ask the remote, and change nothing. Default: false.
    pub dry_run: Option<bool>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PushResult {
    /// The remote.
    pub remote: String,
    /// Its address, without a password.
    pub url: String,
    /// True if nothing was changed.
    pub dry_run: bool,
    /// The branches and tags.
    pub references: Vec<PushedReference>,
    /// The branch of the remote that the local branch follows from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_follows: Option<String>,
    /// The commits that the branch of the remote has lost, at most 10: name, author and subject of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// The number of commits that it has lost, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lost: Option<usize>,
    /// Settings of the repository that had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Messages of the remote, of hooks and of git.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl PushResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let verb = if self.dry_run { "would push" } else { "pushed" };
        let mut text = format!("{verb} to {} ({})", self.remote, self.url);
        for reference in &self.references {
            let _ = write!(text, "\n{}", reference.to_text());
        }
        if let Some(total) = self.total_lost.filter(|total| *total > 0) {
            let _ =
                write!(text, "\nno longer on the remote's branch: {}", count_of(total, "commit", "commits"));
            for commit in &self.lost {
                let _ = write!(text, "\n  {}", printable_line(commit));
            }
            if self.lost.len() < total {
                let _ = write!(text, "\n  [{} more]", total - self.lost.len());
            }
        }
        if let Some(branch) = &self.now_follows {
            let _ = write!(text, "\nthe branch follows {} from now on", printable_line(branch));
        }
        if let Some(note) = ignored_note(&self.ignored) {
            let _ = write!(text, "\n{note}");
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n--- output ---\n{}", self.output);
        }
        text
    }
}

/// A push whose branches and tags were checked.
#[derive(Default)]
struct PushPlan {
    refspecs: Vec<String>,
    options: Vec<String>,
    now_follows: Option<String>,
    /// The commits that a branch of the remote loses, and the number of all of them.
    lost: Option<(Vec<String>, usize)>,
}

/// The most commits that an answer names of those that a branch of the remote loses.
const MAX_LOST: usize = 10;

impl Git {
    /// Sends a branch to a remote, with hooks (`pre-push`) as in a terminal. The push never forces, except as
    /// [`GitPush::force_with_lease`] says. Nobody is asked for a password, and no program that the repository's
    /// configuration names for connections is run.
    ///
    /// # Errors
    /// There is no such branch or remote, the address is refused, the remote or a hook refuses the branch or cannot be
    /// reached, or git fails.
    pub async fn push(&self, input: &GitPush, cancel: &CancellationToken) -> Result<PushResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        repository.top_level("git_push")?;
        repository.check_writable()?;
        self.check_same_repository(&repository, "git_push", cancel).await?;
        let branch = match &input.branch {
            Some(branch) => Some(branch.clone()),
            None => self.head_branch(&repository, cancel).await?,
        };
        let upstream = match &branch {
            Some(branch) => {
                self.check_reference(&repository, "branch", "refs/heads/", branch, cancel).await?;
                self.upstream(&repository, branch, cancel).await?
            }
            None => UpstreamBranch::default(),
        };
        let access = GitAccess::Push;
        let remote =
            self.remote(&repository, input.remote.as_deref(), &upstream.push_remote, access, cancel).await?;
        let plan = self.push_plan(&repository, input, branch, &upstream, &remote, cancel).await?;
        self.run_push(&repository, input, plan, &remote, cancel).await
    }

    /// Checks what is pushed, and says it in refspecs.
    async fn push_plan(
        &self,
        repository: &Repository,
        input: &GitPush,
        branch: Option<String>,
        upstream: &UpstreamBranch,
        remote: &GitRemote,
        cancel: &CancellationToken,
    ) -> Result<PushPlan, Error> {
        let mut plan = PushPlan::default();
        for tag in input.tags.iter().flatten() {
            self.check_reference(repository, "tags", "refs/tags/", tag, cancel).await?;
            self.resolve_object(repository, &format!("refs/tags/{tag}"), "", cancel).await?;
            plan.refspecs.push(format!("refs/tags/{tag}:refs/tags/{tag}"));
        }
        let Some(branch) = branch else {
            if plan.refspecs.is_empty() {
                let reason = "it is missing, and no branch is checked out".to_owned();
                return Err(Error::InvalidArgument { name: "branch", reason });
            }
            return Ok(plan);
        };
        let ours = self.resolve_commit(repository, &format!("refs/heads/{branch}"), cancel).await?;
        let theirs = match &input.remote_branch {
            Some(theirs) => theirs.clone(),
            None if upstream.remote == remote.name && !upstream.branch.is_empty() => upstream.branch.clone(),
            None => branch.clone(),
        };
        self.check_reference(repository, "remote_branch", "refs/heads/", &theirs, cancel).await?;
        plan.refspecs.insert(0, format!("refs/heads/{branch}:refs/heads/{theirs}"));
        if input.force_with_lease == Some(true) {
            let tracked = self.tracked_commit(repository, &theirs, remote, cancel).await?;
            // With the commit that is expected. Without it, git expects what the tracking branch has at the moment of
            // the push, and a fetch in another terminal would move that.
            plan.options.push(format!("--force-with-lease=refs/heads/{theirs}:{tracked}"));
            let only_theirs = [tracked.clone(), format!("^{ours}")];
            let lost = self.commits(repository, &only_theirs, MAX_LOST, &[], cancel).await?;
            let name =
                |commit: &CommitEntry| format!("{:.10} {}: {}", commit.commit, commit.author, commit.subject);
            let total = self.count_in_range(repository, &[], &format!("{ours}..{tracked}"), cancel).await?;
            plan.lost = Some((lost.iter().map(name).collect(), total));
        }
        if input.dry_run != Some(true) && input.set_upstream.unwrap_or(upstream.branch.is_empty()) {
            plan.options.push("--set-upstream".to_owned());
            plan.now_follows = Some(format!("{}/{theirs}", remote.name));
        }
        Ok(plan)
    }

    /// Returns the commit at which a branch of the remote was when it was last fetched.
    async fn tracked_commit(
        &self,
        repository: &Repository,
        theirs: &str,
        remote: &GitRemote,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let tracked = format!("refs/remotes/{}/{theirs}", remote.name);
        match self.resolve_commit(repository, &tracked, cancel).await {
            Ok(commit) => Ok(commit),
            Err(Error::UnknownRevision(..)) => {
                let (remote, theirs) = (&remote.name, printable_line(theirs));
                let reason = format!(
                    "{remote}/{theirs} was never fetched, so nobody knows what it would replace: fetch first"
                );
                Err(Error::InvalidArgument { name: "force_with_lease", reason })
            }
            Err(error) => Err(error),
        }
    }

    async fn run_push(
        &self,
        repository: &Repository,
        input: &GitPush,
        plan: PushPlan,
        remote: &GitRemote,
        cancel: &CancellationToken,
    ) -> Result<PushResult, Error> {
        let dry_run = input.dry_run == Some(true);
        // The options override settings such as `push.followTags` and `remote.NAME.receivepack`, which could push more
        // than was checked, or name a program.
        let words = [
            "push",
            "--porcelain",
            "--no-progress",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--receive-pack=git-receive-pack",
        ];
        let run = GitInvocation::new(repository, GitAccess::Push, cancel, &words)
            // Advice on commands to type.
            .variable("GIT_ADVICE", "0")
            .args(dry_run.then_some("--dry-run"))
            .args(plan.options)
            .args(["--", &remote.name])
            .args(plan.refspecs)
            .timeout(REMOTE_TIMEOUT);
        let output = self.run(remote.settings.apply(run)).await?;
        let references = push_report::parse(output.stdout.bytes());
        // Before the exit code: git fails for a rejected branch as well, and the rejection is the better reason.
        let rejected: Vec<_> = references.iter().filter_map(PushedReference::rejection).collect();
        if !rejected.is_empty() {
            let message = format!("{}\n{}", rejected.join("\n"), self.error_output(repository, &output));
            return Err(self.remote_failure("git_push", &message, remote));
        }
        if !output.success() {
            let message = self.messages(&repository.workspace, &output);
            return Err(self.remote_failure("git_push", &message, remote));
        }
        let (lost, total_lost) = plan.lost.map(|(lost, total)| (lost, Some(total))).unwrap_or_default();
        Ok(PushResult {
            remote: remote.name.clone(),
            url: remote.urls.join(", "),
            dry_run,
            references,
            now_follows: plan.now_follows,
            lost,
            total_lost,
            ignored: remote.settings.ignored.clone(),
            output: self.error_output(repository, &output),
        })
    }
}
