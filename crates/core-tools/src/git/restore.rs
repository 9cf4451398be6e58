//! Taking changes back.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::revision::check_paths;
use super::run::{Access, Call, Git};
use super::text::{fields, plural};
use super::untracked::refuse_existing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// What to take back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitRestore {
    /// Files or folders
    #[schemars(length(min = 1))]
    pub paths: Vec<String>,
    /// Unstage instead
    pub staged: Option<bool>,
    /// Revision
    pub source: Option<String>,
    /// Folder
    pub repository_path: Option<String>,
}

/// What was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// Tracked paths that were named.
    pub paths: usize,
    /// In the index, and not in the files.
    pub staged: bool,
}

impl Restored {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let what = if self.staged { "unstaged changes of" } else { "restored" };
        format!("{what} {}", plural(self.paths, "tracked path"))
    }
}

impl Git {
    /// Makes files as they were: in the index, or in a commit. Changes to them that are not staged are lost.
    /// With `staged`, it is the index that is made as a commit was, and no file changes.
    ///
    /// # Errors
    /// No tracked file is named, one of them is protected or would take the place of an untracked one, the repository's own configuration names filters, or
    /// git fails.
    pub async fn restore(&self, input: &GitRestore, cancel: &CancellationToken) -> Result<Restored, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        let top = repository.top("git_restore")?;
        repository.check_writable()?;
        check_paths("paths", &input.paths)?;
        if input.paths.is_empty() {
            return Err(Error::Argument { name: "paths", reason: "it names no file".to_owned() });
        }
        let staged = input.staged == Some(true);
        let source = match &input.source {
            Some(source) => Some(self.commit_of(&repository, source, cancel).await?),
            None => None,
        };
        self.refuse_drivers(&repository, "git_restore", cancel).await?;
        let call = |access, words: &[&str]| Call::new(&repository, access, cancel, words);
        // All that is named, and not only what differs: what git takes for unchanged may be changed.
        let named =
            call(Access::Reads, &["ls-files", "-z", "--full-name", "--deduplicate"]).paths(&input.paths);
        let (mut touched, mut whole) = self.ask("git_restore", named).await?;
        let indexed = touched.len();
        if let Some(source) = &source {
            let named = call(Access::Reads, &["ls-files", "-z", "--full-name", "--deduplicate"])
                .arg(format!("--with-tree={source}"))
                .paths(&input.paths);
            let (more, all) = self.ask("git_restore", named).await?;
            touched.extend(more);
            whole &= all;
        }
        if !whole {
            return Err(Error::Odd(
                "too many files are named to see whether others would be lost; name fewer at a time"
                    .to_owned(),
            ));
        }
        let unique: BTreeSet<_> = fields(&touched).collect();
        if !staged {
            repository.check_changes(top, unique.iter().copied())?;
            let paths = unique.iter().copied();
            self.refuse_untracked(&repository, top, paths, "git_restore", cancel).await?;
            let indexed: BTreeSet<_> = fields(touched.get(..indexed).unwrap_or_default()).collect();
            let paths = unique.difference(&indexed).copied();
            refuse_existing(&repository, top, paths, "git_restore")?;
        }
        let unborn = staged && source.is_none() && self.head(&repository, cancel).await?.is_none();
        let run = if unborn {
            call(Access::Writes, &["rm", "--cached", "--quiet", "-r"])
        } else {
            let run = call(Access::Writes, &["restore", "--no-progress", "--no-recurse-submodules"]);
            let run = if staged { run.arg("--staged") } else { run.arg("--worktree") };
            match source {
                Some(source) => run.arg(format!("--source={source}")),
                None => run,
            }
        };
        self.ask("git_restore", run.paths(&input.paths)).await?;
        Ok(Restored { paths: unique.len(), staged })
    }
}
