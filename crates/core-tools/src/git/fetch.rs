//! `git_fetch`: brings what a remote has.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::references::{ReferenceChange, changes_to_text};
use super::remote::{GitRemote, REMOTE_TIMEOUT, ignored_note};
use super::repository::Repository;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// A fetch to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitFetch {
    /// The name of the remote, such as `origin`; not an address. Default: the one that the current branch follows, or
    /// `origin`.
    pub remote: Option<String>,
    /// Only this branch of the remote, such as `main`. Default: all that the remote is set up to track.
    pub branch: Option<String>,
    /// Forget branches that the remote no longer has. Local branches stay. Default: false.
    pub prune: Option<bool>,
    /// Fetches all tags. Default: false, which fetches those on the commits that are fetched.
    pub all_tags: Option<bool>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// The result of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FetchResult {
    /// The remote.
    pub remote: String,
    /// Its address, without a password.
    pub url: String,
    /// The branches and tags that changed, the first 200.
    pub changes: Vec<ReferenceChange>,
    /// The number of branches and tags that changed, listed or not.
    pub total: usize,
    /// Settings of the repository that had no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Messages of git and the remote.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The most changes that are listed.
const MAX_LISTED: usize = 200;

impl FetchResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = format!("fetched from {} ({})", self.remote, self.url);
        if self.total == 0 {
            text.push_str(": nothing new");
        }
        changes_to_text(&mut text, &self.changes, self.total);
        if let Some(note) = ignored_note(&self.ignored) {
            let _ = write!(text, "\n{note}");
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n--- output ---\n{}", self.output);
        }
        text
    }
}

impl Git {
    /// Fetches from a remote. Only branches of this remote and new tags change: no local branch, and no file. Nobody is
    /// asked for a password, and no program that the repository names is run.
    ///
    /// # Errors
    /// There is no such remote, its address is refused, it cannot be reached, or git fails.
    pub async fn fetch(&self, input: &GitFetch, cancel: &CancellationToken) -> Result<FetchResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let followed = match self.head_branch(&repository, cancel).await? {
            Some(branch) => self.upstream(&repository, &branch, cancel).await?.remote,
            None => String::new(),
        };
        let access = GitAccess::Fetch;
        let remote = self.remote(&repository, input.remote.as_deref(), &followed, access, cancel).await?;
        self.fetch_from(&repository, &remote, input, cancel).await
    }

    /// Fetches from a remote whose addresses were checked.
    pub(super) async fn fetch_from(
        &self,
        repository: &Repository,
        remote: &GitRemote,
        input: &GitFetch,
        cancel: &CancellationToken,
    ) -> Result<FetchResult, Error> {
        repository.check_writable()?;
        let name = &remote.name;
        let refspecs = match &input.branch {
            Some(branch) => {
                self.check_reference(repository, "branch", "refs/heads/", branch, cancel).await?;
                vec![format!("+refs/heads/{branch}:refs/remotes/{name}/{branch}")]
            }
            None => remote.settings.refspecs(name),
        };
        let words = [
            "fetch",
            "--quiet",
            "--no-progress",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            // The configured refspecs are not used besides.
            "--refmap=",
            "--upload-pack=git-upload-pack",
        ];
        let run = GitInvocation::new(repository, GitAccess::Fetch, cancel, &words)
            .arg(if input.prune == Some(true) { "--prune" } else { "--no-prune" })
            .args(if input.all_tags == Some(true) { Some("--tags") } else { None })
            .args(["--", name])
            .args(refspecs)
            .timeout(REMOTE_TIMEOUT);
        let before = self.remote_references(repository, name, cancel).await?;
        let output = self.run(remote.settings.apply(run)).await?;
        let is_silent = output.stdout.is_empty() && output.stderr.is_empty();
        let message = if is_silent && output.success() {
            String::new()
        } else {
            self.messages(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(self.remote_failure("git_fetch", &message, remote));
        }
        let after = self.remote_references(repository, name, cancel).await?;
        let mut changes = self.reference_changes(repository, &before, &after, cancel).await?;
        let total = changes.len();
        changes.truncate(MAX_LISTED);
        Ok(FetchResult {
            remote: name.clone(),
            url: remote.urls.join(", "),
            changes,
            total,
            ignored: remote.settings.ignored.clone(),
            output: message,
        })
    }

    /// Returns the branch that is checked out, if there is one.
    pub(super) async fn head_branch(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Error> {
        let words = ["symbolic-ref", "--quiet", "HEAD"];
        let output = self.run(GitInvocation::new(repository, GitAccess::Read, cancel, &words)).await?;
        let name = super::printed_text::lossy(output.stdout.bytes().trim_ascii());
        // It fails where HEAD is detached.
        Ok(output.success().then(|| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned()))
    }
}
