//! `git_worktree`: further folders in which other branches are checked out.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, lossy, nul_fields, printable_line};
use super::repository::Repository;
use crate::workspace::ConfinedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Component, Path};
use tokio_util::sync::CancellationToken;

/// An action on the work trees of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitWorktree {
    /// `list`, the default, lists the work trees; `add` makes one in a new folder; `remove` removes one and its folder,
    /// while its branch stays.
    pub action: Option<WorktreeAction>,
    /// With `add` and `remove`: the folder, relative to the first root or absolute, such as `.worktrees/topic`. It must lie
    /// beneath an allowed root.
    pub path: Option<String>,
    /// With `add`: the branch to check out there. It is created if there is none of this name. Default: no branch, only
    /// the commit.
    pub branch: Option<String>,
    /// With `add`: the commit, branch or tag at which a new branch begins. Default: `HEAD`.
    pub start_point: Option<String>,
    /// With `remove`: also if it has changed or untracked files, which are then lost. Default: false.
    pub force: Option<bool>,
    /// A folder of the repository, such as `services/api`. Default: the first root.
    pub repository_path: Option<String>,
}

/// The actions on work trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorktreeAction {
    /// List the work trees.
    #[default]
    List,
    /// Make one.
    Add,
    /// Remove one.
    Remove,
}

/// The result of an action, and the work trees after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WorktreeResult {
    /// A summary of the action; empty after a list.
    pub summary: String,
    /// The work trees, the main one first.
    pub worktrees: Vec<WorktreeEntry>,
}

/// One work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WorktreeEntry {
    /// Its folder.
    pub path: String,
    /// True if it lies outside the allowed roots: no tool reaches it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// The branch. Absent where HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its state, if it is out of the ordinary: `bare`, `locked`, `prunable` (its folder is gone).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}

const ACTION: &str = "git_worktree";

impl WorktreeEntry {
    fn to_text(&self) -> String {
        let mut text = printable_line(&self.path);
        if self.outside {
            text.push_str(" (outside the allowed roots)");
        }
        match (&self.branch, &self.commit) {
            (Some(branch), _) => {
                let _ = write!(text, " on branch {}", printable_line(branch));
            }
            (None, Some(_)) => text.push_str(" without a branch"),
            (None, None) => {}
        }
        if let Some(commit) = &self.commit {
            let _ = write!(text, " at {commit:.10}");
        }
        if !self.states.is_empty() {
            let _ = write!(text, " ({})", self.states.join(", "));
        }
        text
    }
}

impl WorktreeResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = self.summary.clone();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&count_of(self.worktrees.len(), "work tree", "work trees"));
        for worktree in &self.worktrees {
            let _ = write!(text, "\n{}", worktree.to_text());
        }
        text
    }
}

/// Parses `worktree list --porcelain -z`: attributes, and an empty field after each work tree (git-worktree(1)).
fn parse(listed: &[u8]) -> Vec<WorktreeEntry> {
    let mut worktrees: Vec<WorktreeEntry> = Vec::new();
    for field in nul_fields(listed) {
        let field = lossy(field);
        let (key, value) = field.split_once(' ').unwrap_or((&field, ""));
        if key == "worktree" {
            worktrees.push(WorktreeEntry { path: value.to_owned(), ..WorktreeEntry::default() });
            continue;
        }
        let Some(worktree) = worktrees.last_mut() else { continue };
        match key {
            // All zeros before the first commit.
            "HEAD" if value.bytes().any(|byte| byte != b'0') => worktree.commit = Some(value.to_owned()),
            "branch" => worktree.branch = Some(value.strip_prefix("refs/heads/").unwrap_or(value).to_owned()),
            "bare" | "locked" | "prunable" => worktree.states.push(key.to_owned()),
            _ => {}
        }
    }
    worktrees
}

impl Git {
    /// Lists, makes or removes work trees. Folders outside the roots are neither made nor removed. No hook runs.
    ///
    /// # Errors
    /// The folder lies outside, exists already or is no work tree, the branch is checked out elsewhere, files would be
    /// lost, the repository's own configuration names filters, or git fails.
    pub async fn worktree(
        &self,
        input: &GitWorktree,
        cancel: &CancellationToken,
    ) -> Result<WorktreeResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        let summary = match input.action.unwrap_or_default() {
            WorktreeAction::List => String::new(),
            WorktreeAction::Add => self.add_worktree(&repository, input, cancel).await?,
            WorktreeAction::Remove => self.remove_worktree(&repository, input, cancel).await?,
        };
        Ok(WorktreeResult { summary, worktrees: self.worktrees(&repository, cancel).await? })
    }

    async fn worktrees(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<Vec<WorktreeEntry>, Error> {
        let words = ["worktree", "list", "--porcelain", "-z"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let mut worktrees = parse(&self.run_checked(ACTION, invocation).await?.bytes);
        for worktree in &mut worktrees {
            match repository.workspace.locate(Path::new(&worktree.path)) {
                Ok(path) => worktree.path = path.display_path(),
                Err(_) => worktree.outside = true,
            }
        }
        Ok(worktrees)
    }

    /// Makes a work tree. Returns the summary.
    async fn add_worktree(
        &self,
        repository: &Repository,
        input: &GitWorktree,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        repository.check_writable()?;
        self.refuse_configured_programs(repository, ACTION, cancel).await?;
        let folder = repository.worktree_folder(input.path.as_deref())?;
        if folder.kind()?.is_some() {
            let reason = format!("`{folder}` exists already; name a new folder");
            return Err(Error::InvalidArgument { name: "path", reason });
        }
        let mut run =
            GitInvocation::new(repository, GitAccess::Write, cancel, &["worktree", "add", "--quiet"]);
        let start = input.start_point.as_deref().unwrap_or("HEAD");
        let (place, commit) = match &input.branch {
            None => {
                run = run.arg("--detach");
                ("without a branch".to_owned(), self.resolve_commit(repository, start, cancel).await?)
            }
            Some(branch) => {
                self.check_reference(repository, "branch", "refs/heads/", branch, cancel).await?;
                let name = printable_line(branch);
                match self.resolve_commit(repository, &format!("refs/heads/{branch}"), cancel).await {
                    Ok(_) if input.start_point.is_some() => {
                        let reason = format!("the branch {name} exists already, and is not moved");
                        return Err(Error::InvalidArgument { name: "start_point", reason });
                    }
                    Ok(commit) => (format!("on branch {name}"), commit),
                    Err(Error::UnknownRevision(..)) => {
                        run = run.args(["--no-track", "-b", branch]);
                        (
                            format!("on the new branch {name}"),
                            self.resolve_commit(repository, start, cancel).await?,
                        )
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        self.check_new_files(repository, &folder, &commit, cancel).await?;
        let is_existing = input.branch.is_some() && place.starts_with("on branch");
        // An existing branch is named, so that it is checked out. Its commit would detach HEAD.
        let start = input.branch.clone().filter(|_| is_existing).unwrap_or(commit);
        let run = run.arg("--").arg(folder.to_absolute()).arg(start);
        let output = self.run(run).await?;
        if !output.success() {
            let message = self.messages(&repository.workspace, &output);
            return Err(Error::Failed { action: ACTION, message });
        }
        Ok(format!("made the work tree {folder} {place}; pass its folder as `repository_path` to work there"))
    }

    /// Refuses a new work tree that would have a file of a protected name.
    async fn check_new_files(
        &self,
        repository: &Repository,
        folder: &ConfinedPath,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        folder.check_changeable()?;
        let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let GitOutput { bytes, is_complete } = self.run_checked(ACTION, invocation).await?;
        if !is_complete {
            return Err(Error::TooLarge("it has too many files to see whether one is protected".to_owned()));
        }
        // The folder does not exist, so names alone decide.
        let last_part = |path: &'_ [u8]| path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
        let names: HashSet<_> = nul_fields(&bytes).filter_map(last_part).collect();
        for name in names {
            folder.join(&*super::path::path_from_bytes(&name)?)?.check_changeable()?;
        }
        Ok(())
    }

    /// Removes a work tree with its folder. Returns the summary.
    async fn remove_worktree(
        &self,
        repository: &Repository,
        input: &GitWorktree,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        repository.check_writable()?;
        self.refuse_configured_programs(repository, ACTION, cancel).await?;
        let folder = repository.worktree_folder(input.path.as_deref())?;
        let shown = folder.display_path();
        let known = self.worktrees(repository, cancel).await?;
        // The first one is the main work tree, which git does not remove.
        if !known.iter().skip(1).any(|worktree| worktree.path == shown) {
            let known: Vec<_> = known.iter().skip(1).map(|worktree| printable_line(&worktree.path)).collect();
            let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
            let reason = format!("`{shown}` is no further work tree of this repository; known: {known}");
            return Err(Error::InvalidArgument { name: "path", reason });
        }
        folder.check_changeable()?;
        let forced = (input.force == Some(true)).then_some("--force");
        let run = GitInvocation::new(repository, GitAccess::Write, cancel, &["worktree", "remove"]);
        let output = self.run(run.args(forced).arg("--").arg(folder.to_absolute())).await?;
        if !output.success() {
            let message = self.messages(&repository.workspace, &output);
            return Err(Error::Failed { action: ACTION, message });
        }
        Ok(format!("removed the work tree {shown}; its branch is still there"))
    }
}

impl Repository {
    /// Returns the folder that a call names. It is relative to a root, as everywhere where a policy judges it.
    fn worktree_folder(&self, path: Option<&str>) -> Result<ConfinedPath, Error> {
        let Some(path) = path else {
            let reason = "it is missing; name a folder beneath an allowed root, such as `.worktrees/topic`";
            return Err(Error::InvalidArgument { name: "path", reason: reason.to_owned() });
        };
        super::revision::check_paths("path", &[path.to_owned()])?;
        let folder = self.workspace.locate(path)?;
        match folder.kind()? {
            Some(_) => super::repository_files::real_path(&self.workspace, &folder.to_absolute(), || {
                format!("`{folder}`")
            }),
            // What does not exist cannot be followed to find out where `..` leads.
            None if folder.relative().components().any(|part| part == Component::ParentDir) => {
                let reason = format!("`{folder}` does not exist, and has `..` in it: name it without");
                Err(Error::InvalidArgument { name: "path", reason })
            }
            None => Ok(folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_attribute_of_a_work_tree_is_understood() {
        let listed = b"worktree /a b\0HEAD 1234567890ab\0branch refs/heads/x/y\0\0worktree /c\0HEAD 12\0detached\0locked why\0\0\
            worktree /d\0bare\0\0";
        let seen: Vec<_> = parse(listed).iter().map(WorktreeEntry::to_text).collect();
        assert_eq!(
            seen,
            ["/a b on branch x/y at 1234567890", "/c without a branch at 12 (locked)", "/d (bare)"]
        );
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            for worktree in parse(&listed) {
                worktree.to_text();
            }
        }
    }
}
