//! `git_add`: stages files.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::invocation::{GitAccess, GitInvocation};
use super::repository::Repository;
use super::revision::check_paths;
use super::run::Git;
use super::text::{count_of, nul_fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// Files to stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GitAdd {
    /// Files or folders
    #[schemars(length(min = 1), extend("alias" = "files"))]
    pub paths: Vec<String>,
    /// Folder
    pub repository_path: Option<String>,
}

impl GitAdd {
    /// An input that stages the files and folders `paths`.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), repository_path: None }
    }
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
        check_paths("paths", &input.paths)?;
        if input.paths.is_empty() {
            return Err(Error::InvalidArgument { name: "paths", reason: "it names no file".to_owned() });
        }
        repository.check_writable()?;
        self.refuse_configured_programs(&repository, "git_add", cancel).await?;
        let invocation =
            GitInvocation::new(&repository, GitAccess::Write, cancel, &["add"]).paths(&input.paths);
        let output = self.run(invocation).await?;
        let message = if output.stderr.is_empty() && output.success() {
            String::new()
        } else {
            self.messages(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(Error::Failed { action: "git_add", message });
        }
        Ok(AddResult { staged: self.count_staged(&repository, cancel).await?, message })
    }

    /// Returns the number of paths that are staged.
    pub(super) async fn count_staged(
        &self,
        repository: &Repository,
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
        let listed = self
            .run_checked("git_add", GitInvocation::new(repository, GitAccess::Read, cancel, &words))
            .await?
            .bytes;
        Ok(nul_fields(&listed).count())
    }
}
