//! Switching to a branch or a commit.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::repository::Repository;
use super::revision::check;
use super::run::{Access, Call, Git};
use super::text::{fields, lossy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Where to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCheckout {
    /// Or commit
    pub branch: String,
    /// Folder
    pub repository_path: Option<String>,
}

/// Where the work tree stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckedOut {
    /// The branch. Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit.
    pub commit: String,
    /// What git said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
}

impl CheckedOut {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let place = match &self.branch {
            Some(branch) => format!("on branch {branch} at {}", self.commit),
            None => format!("HEAD is detached at {}", self.commit),
        };
        if self.said.is_empty() { place } else { format!("{place}\n{}", self.said) }
    }
}

/// What a name stands for.
enum Place {
    /// A local branch, or one of a single remote, for which a local one is made.
    Branch,
    Commit,
}

impl Git {
    /// Switches to a branch or a commit. Nothing that is not committed is lost: where a change is in the way,
    /// git refuses. Submodules stay as they are.
    ///
    /// # Errors
    /// There is no such branch or commit, a change or a protected file is in the way, the repository's own
    /// configuration names filters, or git fails.
    pub async fn checkout(
        &self,
        input: &GitCheckout,
        cancel: &CancellationToken,
    ) -> Result<CheckedOut, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let top = repository.top("git_checkout")?;
        repository.check_writable()?;
        let name = &input.branch;
        check("branch", name)?;
        let (place, commit) = self.place(&repository, name, cancel).await?;
        self.refuse_drivers(&repository, "git_checkout", cancel).await?;
        let call = |words: &[&str]| Call::new(&repository, Access::Reads, cancel, words);
        let call = match self.head(&repository, cancel).await? {
            Some(head) => call(&[
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
            None => call(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &commit]),
        };
        let (touched, whole) = self.ask("git_checkout", call).await?;
        if !whole {
            return Err(Error::Odd("it differs in too many files to see whether changes would be lost; run git itself for that (run_command)".to_owned()));
        }
        repository.check_changes(top, fields(&touched))?;
        // Quiet: to list what is carried along, git would look into submodules, also those only the branch has.
        let words =
            ["switch", "--quiet", "--no-progress", "--no-overwrite-ignore", "--no-recurse-submodules"];
        let call = Call::new(&repository, Access::Writes, cancel, &words);
        let call = match place {
            Place::Branch => call.args(["--end-of-options", name]),
            Place::Commit => call.args(["--detach", "--end-of-options", &commit]),
        };
        let output = self.run(call).await?;
        let said = self.said(&repository.workspace, &output);
        if !output.success() {
            return Err(Error::Failed { action: "git_checkout", said });
        }
        let branch = matches!(place, Place::Branch).then(|| name.clone());
        Ok(CheckedOut { branch, commit, said })
    }

    async fn place(
        &self,
        repository: &Repository,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<(Place, String), Error> {
        let failed = match self.commit_of(repository, &format!("refs/heads/{name}"), cancel).await {
            Ok(commit) => return Ok((Place::Branch, commit)),
            Err(error @ Error::NoRevision(..)) => error,
            Err(error) => return Err(error),
        };
        match self.commit_of(repository, name, cancel).await {
            Ok(commit) => return Ok((Place::Commit, commit)),
            Err(Error::NoRevision(..)) => {}
            Err(error) => return Err(error),
        }
        // As git guesses: a branch that exactly one remote has.
        let words = ["for-each-ref", "--format=%(refname)", "refs/remotes"];
        let (listed, _) =
            self.ask("git_checkout", Call::new(repository, Access::Reads, cancel, &words)).await?;
        let listed = lossy(&listed);
        let mut found = listed.lines().filter(|remote| {
            let short = remote.strip_prefix("refs/remotes/").and_then(|rest| rest.split_once('/'));
            short.is_some_and(|(_, branch)| branch == name)
        });
        match (found.next(), found.next()) {
            (Some(only), None) => Ok((Place::Branch, self.commit_of(repository, only, cancel).await?)),
            _ => match failed {
                Error::NoRevision(_, hint) => Err(Error::NoRevision(name.to_owned(), hint)),
                error => Err(error),
            },
        }
    }
}
