//! `git_list_branches`, `git_current_branch` and `git_create_branch`.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{lossy, printable_line};
use super::revision::check_argument;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// A repository whose branches to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitListBranches {
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// The most branches that are listed.
const MAX_LISTED: usize = 1_000;

/// A repository whose current branch to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitCurrentBranch {
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

/// A branch to create.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitCreateBranch {
    /// The name of the new branch, such as `fix/login`.
    pub name: String,
    /// The commit, branch or tag at which it begins. Default: `HEAD`.
    pub start_point: Option<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    #[schemars(extend("unlisted" = true))]
    pub repository_path: Option<String>,
}

impl GitCreateBranch {
    /// An input that creates the branch `name` at `HEAD`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), start_point: None, repository_path: None }
    }
}

/// The branches of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BranchList {
    /// Local ones first, then those of remotes, each by name.
    pub branches: Vec<GitBranch>,
    /// The number of branches, listed or not.
    pub total: usize,
}

/// One branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct GitBranch {
    /// `main`, or `origin/main` of a remote.
    pub name: String,
    /// True if it is checked out here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
    /// True if it is a remote's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// Its commit.
    pub commit: String,
    /// Its upstream branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The date of its commit (RFC 3339).
    pub date: String,
    /// The subject of its commit.
    pub subject: String,
}

/// The branch that is checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CurrentBranch {
    /// Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A branch that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CreateBranchResult {
    /// Its name.
    pub name: String,
    /// Its commit.
    pub commit: String,
}

/// Six fields, separated by NUL; entries end with a line break, which neither a reference (git-check-ref-format(1)) nor
/// a subject can hold.
const FORMAT: &str = "--format=%(refname)%00%(objectname)%00%(HEAD)%00%(upstream:short)%00%(committerdate:iso-strict)%00%(contents:subject)";

fn parse(listed: &[u8]) -> Vec<GitBranch> {
    let mut branches = Vec::new();
    for entry in listed.split(|byte| *byte == b'\n') {
        let fields: Vec<_> = entry.splitn(6, |byte| *byte == 0).collect();
        let [name, commit, head, upstream, date, subject] = fields.as_slice() else { continue };
        let name = lossy(name);
        let (remote, short) = match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/remotes/")) {
            (Some(short), _) => (false, short),
            (_, Some(short)) => (true, short),
            _ => continue,
        };
        // `origin/HEAD` points to the remote's main branch, and is no branch of its own.
        if remote && short.ends_with("/HEAD") {
            continue;
        }
        branches.push(GitBranch {
            name: short.to_owned(),
            current: *head == b"*",
            remote,
            commit: lossy(commit),
            upstream: Some(lossy(upstream)).filter(|upstream| !upstream.is_empty()),
            date: lossy(date),
            subject: lossy(subject),
        });
    }
    branches
}

impl BranchList {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for branch in &self.branches {
            let mark = if branch.current { "* " } else { "  " };
            let commit: String = branch.commit.chars().take(10).collect();
            let _ = write!(
                text,
                "{mark}{} {commit} {} {}",
                branch.name,
                branch.date,
                printable_line(&branch.subject)
            );
            if let Some(upstream) = &branch.upstream {
                let _ = write!(text, " [follows {upstream}]");
            }
            text.push('\n');
        }
        if self.branches.len() < self.total {
            let _ = write!(text, "[{} more]", self.total - self.branches.len());
        }
        if self.total == 0 {
            text.push_str("no branches yet");
        }
        text.trim_end().to_owned()
    }
}

impl CurrentBranch {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        match (&self.branch, &self.commit) {
            (Some(branch), Some(commit)) => format!("{branch} at {commit}"),
            (Some(branch), None) => format!("{branch}, without commits yet"),
            (None, Some(commit)) => format!("HEAD is detached at {commit}"),
            (None, None) => "HEAD leads nowhere".to_owned(),
        }
    }
}

impl CreateBranchResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        format!("created branch {} at {}; git_checkout switches to it", self.name, self.commit)
    }
}

impl Git {
    /// Lists the branches, local ones first.
    ///
    /// # Errors
    /// There is no repository, or git fails.
    pub async fn list_branches(
        &self,
        input: &GitListBranches,
        cancel: &CancellationToken,
    ) -> Result<BranchList, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let invocation = GitInvocation::new(
            &repository,
            GitAccess::Read,
            cancel,
            &["for-each-ref", "--sort=refname", FORMAT],
        );
        let listed = self
            .run_checked("git_list_branches", invocation.args(["refs/heads", "refs/remotes"]))
            .await?
            .bytes;
        let mut branches = parse(&listed);
        let total = branches.len();
        if total == 0 {
            // git leaves out a branch that it cannot read.
            self.head_commit(&repository, cancel).await?;
        }
        branches.truncate(MAX_LISTED);
        Ok(BranchList { branches, total })
    }

    /// Returns the branch that is checked out.
    ///
    /// # Errors
    /// There is no repository, or git fails.
    pub async fn current_branch(
        &self,
        input: &GitCurrentBranch,
        cancel: &CancellationToken,
    ) -> Result<CurrentBranch, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let invocation =
            GitInvocation::new(&repository, GitAccess::Read, cancel, &["symbolic-ref", "--quiet", "HEAD"]);
        let (output, commit) = tokio::join!(self.run(invocation), self.head_commit(&repository, cancel));
        let (output, commit) = (output?, commit?);
        let name = lossy(output.stdout.bytes().trim_ascii());
        // It fails where HEAD is detached.
        let branch = output.success().then(|| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        Ok(CurrentBranch { branch, commit })
    }

    /// Creates a branch, without switching to it.
    ///
    /// # Errors
    /// The name is taken or not allowed, there is no such start point, or git fails.
    pub async fn create_branch(
        &self,
        input: &GitCreateBranch,
        cancel: &CancellationToken,
    ) -> Result<CreateBranchResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        repository.check_writable()?;
        check_argument("name", &input.name)?;
        // Not by `--branch`, which expands `@{-1}` to the branch before this one.
        let invocation = GitInvocation::new(&repository, GitAccess::Read, cancel, &["check-ref-format"]);
        if !self.run(invocation.arg(format!("refs/heads/{}", input.name))).await?.success()
            || input.name == "HEAD"
        {
            return Err(Error::InvalidArgument {
                name: "name",
                reason: "git allows no branch of that name".to_owned(),
            });
        }
        let start = input.start_point.as_deref().unwrap_or("HEAD");
        let commit = self.resolve_commit(&repository, start, cancel).await?;
        let words = ["branch", "--no-track", "--end-of-options", &input.name, &commit];
        self.run_checked(
            "git_create_branch",
            GitInvocation::new(&repository, GitAccess::Write, cancel, &words),
        )
        .await?;
        Ok(CreateBranchResult { name: input.name.clone(), commit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn local_and_remote_branches_are_told_apart() {
        let branches = parse(
            b"refs/heads/a/b\0c1\0*\0origin/a/b\x002026-01-01T00:00:00Z\0one\n\
            refs/remotes/origin/HEAD\0c1\0 \0\0d\0x\nrefs/remotes/origin/a/b\0c1\0 \0\0d\0\n",
        );
        let names: Vec<_> = branches.iter().map(|branch| (branch.name.as_str(), branch.remote)).collect();
        assert_eq!(names, [("a/b", false), ("origin/a/b", true)]);
        assert!(branches[0].current && !branches[1].current);
        assert_eq!(branches[0].upstream.as_deref(), Some("origin/a/b"));
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            let branches = parse(&listed);
            BranchList { total: branches.len(), branches }.to_text();
        }
    }
}
