//! `git_add`: stages files.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, nul_fields};
use super::repository::Repository;
use super::revision::check_paths;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Files to stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitAdd {
    /// The files or folders to stage, such as `["src/main.rs"]`, relative to `repository_path`; `.` is everything. Names
    /// are literal: `*` is no pattern. A deleted file is staged as deleted.
    #[schemars(length(min = 1), extend("alias" = "paths"))]
    pub files: Vec<String>,
    /// A folder of the repository, to which other paths are relative. Default: the first root.
    pub repository_path: Option<String>,
}

impl GitAdd {
    /// An input that stages these files and folders.
    pub fn new<P: Into<String>>(files: impl IntoIterator<Item = P>) -> Self {
        Self { files: files.into_iter().map(Into::into).collect(), repository_path: None }
    }
}

/// The files that a call stages.
#[derive(Clone, Copy, Debug)]
pub(super) enum FilesToStage<'a> {
    /// These files and folders, new ones too.
    Named(&'a [String]),
    /// All files that git tracks.
    Tracked,
}

/// The result of staging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AddResult {
    /// The number of paths that the next commit changes.
    pub staged: usize,
    /// Messages of git, such as warnings about line endings.
    pub message: String,
}

impl AddResult {
    /// Returns the result as text, for people and for clients that show no structured content.
    pub fn to_text(&self) -> String {
        let mut text = format!("staged; the next commit changes {}", count_of(self.staged, "path", "paths"));
        if !self.message.is_empty() {
            let _ = write!(text, "\n{}", self.message);
        }
        text
    }
}

impl Git {
    /// Stages files as they are, deleted ones as deleted. No file of the work tree is changed.
    ///
    /// # Errors
    /// There is no such file, it is ignored, the repository's own configuration names filters, or git fails.
    pub async fn add(&self, input: &GitAdd, cancel: &CancellationToken) -> Result<AddResult, Error> {
        let repository = self.repository(input.repository_path.as_deref())?;
        repository.top_level("git_add")?;
        let message = self.stage(&repository, FilesToStage::Named(&input.files), "git_add", cancel).await?;
        Ok(AddResult { staged: self.count_staged(&repository, &[], cancel).await?, message })
    }

    /// Stages files for `action`. Returns the warnings of git.
    pub(super) async fn stage(
        &self,
        repository: &Repository,
        staging: FilesToStage<'_>,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        let mut invocation = GitInvocation::new(repository, GitAccess::Write, cancel, &["add"]);
        invocation = match staging {
            FilesToStage::Named(files) => {
                check_paths("files", files)?;
                if files.is_empty() {
                    let reason = "it names no file; `.` is everything".to_owned();
                    return Err(Error::InvalidArgument { name: "files", reason });
                }
                invocation.paths(files)
            }
            FilesToStage::Tracked => invocation.args(["--update", "--", ":/"]),
        };
        repository.check_writable()?;
        self.refuse_configured_programs(repository, action, cancel).await?;
        let output = self.run(invocation).await?;
        if output.stderr.is_empty() && output.success() {
            return Ok(String::new());
        }
        let mut message = self.messages(&repository.workspace, &output);
        if output.success() {
            return Ok(message);
        }
        let named = match staging {
            FilesToStage::Named(files) => files,
            FilesToStage::Tracked => &[],
        };
        // git may have staged a part. Where it cannot even list what was named, it has staged nothing of that.
        let staged = self.count_staged(repository, named, cancel).await.unwrap_or_default();
        if staged > 0 {
            let staged = count_of(staged, "path is", "paths are");
            let _ = write!(message, "\nof what was named, {staged} staged all the same");
        }
        Err(Error::Failed { action, message })
    }

    /// Returns the number of paths that are staged, of all or of `paths`.
    pub(super) async fn count_staged(
        &self,
        repository: &Repository,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<usize, Error> {
        let words = [
            "diff",
            "--cached",
            "--name-only",
            "--no-ext-diff",
            // Counted in the whole repository: a commit takes everything that is staged.
            "--no-relative",
            "--ignore-submodules=dirty",
            "-z",
        ];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let invocation = if paths.is_empty() { invocation } else { invocation.paths(paths) };
        let listed = self.run_checked("counting what is staged", invocation).await?.bytes;
        Ok(nul_fields(&listed).count())
    }
}
