//! Branches: which there are, which is checked out, a new one.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::revision::check;
use super::run::{Access, Call, Git};
use super::text::{line, lossy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Which branches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitListBranches {
    /// Folder
    pub repository_path: Option<String>,
}

/// Branches that are listed.
const MOST_LISTED: usize = 1_000;

/// Which repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCurrentBranch {
    /// Folder
    pub repository_path: Option<String>,
}

/// A branch to make.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCreateBranch {
    /// The new name
    pub name: String,
    /// Default HEAD
    pub start_point: Option<String>,
    /// Folder
    pub repository_path: Option<String>,
}

/// The branches there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Branches {
    /// Local ones first, then those of remotes, each by name.
    pub branches: Vec<Branch>,
    /// How many there are, listed or not.
    pub total: usize,
}

/// One branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Branch {
    /// `main`, or `origin/main` of a remote.
    pub name: String,
    /// It is checked out here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub current: bool,
    /// It is a remote's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// Its commit.
    pub commit: String,
    /// The branch that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// When its commit was made (RFC 3339).
    pub date: String,
    /// What its commit says first.
    pub subject: String,
}

/// The branch that is checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CurrentBranch {
    /// Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Absent where there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A branch that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedBranch {
    /// Its name.
    pub name: String,
    /// Its commit.
    pub commit: String,
}

/// No name of a reference and no first line holds a line end (git-check-ref-format(1)).
const FORMAT: &str = "--format=%(refname)%00%(objectname)%00%(HEAD)%00%(upstream:short)%00%(committerdate:iso-strict)%00%(contents:subject)";

fn parse(listed: &[u8]) -> Vec<Branch> {
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
        // What a remote calls its main branch is no branch of its own.
        if remote && short.ends_with("/HEAD") {
            continue;
        }
        branches.push(Branch {
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

impl Branches {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for branch in &self.branches {
            let mark = if branch.current { "* " } else { "  " };
            let commit: String = branch.commit.chars().take(10).collect();
            let _ = write!(text, "{mark}{} {commit} {} {}", branch.name, branch.date, line(&branch.subject));
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
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        match (&self.branch, &self.commit) {
            (Some(branch), Some(commit)) => format!("{branch} at {commit}"),
            (Some(branch), None) => format!("{branch}, without commits yet"),
            (None, Some(commit)) => format!("HEAD is detached at {commit}"),
            (None, None) => "HEAD leads nowhere".to_owned(),
        }
    }
}

impl CreatedBranch {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        format!("created branch {} at {}; git_checkout switches to it", self.name, self.commit)
    }
}

impl Git {
    /// The branches there are, local ones first.
    ///
    /// # Errors
    /// There is no repository, or git fails.
    pub async fn list_branches(
        &self,
        input: &GitListBranches,
        cancel: &CancellationToken,
    ) -> Result<Branches, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let call = Call::new(&repository, Access::Reads, cancel, &["for-each-ref", "--sort=refname", FORMAT]);
        let (listed, _) = self.ask("git_list_branches", call.args(["refs/heads", "refs/remotes"])).await?;
        let mut branches = parse(&listed);
        let total = branches.len();
        branches.truncate(MOST_LISTED);
        Ok(Branches { branches, total })
    }

    /// The branch that is checked out.
    ///
    /// # Errors
    /// There is no repository, or git fails.
    pub async fn current_branch(
        &self,
        input: &GitCurrentBranch,
        cancel: &CancellationToken,
    ) -> Result<CurrentBranch, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let call = Call::new(&repository, Access::Reads, cancel, &["symbolic-ref", "--quiet", "HEAD"]);
        let (output, commit) = tokio::join!(self.run(call), self.head(&repository, cancel));
        let (output, commit) = (output?, commit?);
        let name = lossy(output.stdout.bytes().trim_ascii());
        let branch = output.success().then(|| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        Ok(CurrentBranch { branch, commit })
    }

    /// Makes a branch, without switching to it.
    ///
    /// # Errors
    /// The name is taken or none, there is no such start, or git fails.
    pub async fn create_branch(
        &self,
        input: &GitCreateBranch,
        cancel: &CancellationToken,
    ) -> Result<CreatedBranch, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        repository.check_writable()?;
        check("name", &input.name)?;
        // Without `--branch`, which would take `@{-1}` for the branch before this one.
        let call = Call::new(&repository, Access::Reads, cancel, &["check-ref-format"]);
        if !self.run(call.arg(format!("refs/heads/{}", input.name))).await?.success() || input.name == "HEAD"
        {
            return Err(Error::Argument {
                name: "name",
                reason: "git allows no branch of that name".to_owned(),
            });
        }
        let start = input.start_point.as_deref().unwrap_or("HEAD");
        let commit = self.commit_of(&repository, start, cancel).await?;
        let words = ["branch", "--no-track", "--end-of-options", &input.name, &commit];
        self.ask("git_create_branch", Call::new(&repository, Access::Writes, cancel, &words)).await?;
        Ok(CreatedBranch { name: input.name.clone(), commit })
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
            Branches { total: branches.len(), branches }.to_text();
        }
    }
}
