//! Staging.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::error::Error;
use super::repository::Repository;
use super::revision::check_paths;
use super::run::{Access, Call, Git};
use super::text::{fields, plural};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tokio_util::sync::CancellationToken;

/// What to stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitAdd {
    /// Files or folders
    #[schemars(length(min = 1))]
    pub files: Vec<String>,
    /// Folder
    pub repository_path: Option<String>,
}

/// What is staged now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Added {
    /// Paths that the next commit changes.
    pub staged: usize,
    /// What git said.
    pub said: String,
}

impl Added {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = format!("staged; the next commit changes {}", plural(self.staged, "path"));
        if !self.said.is_empty() {
            let _ = write!(text, "\n{}", self.said);
        }
        text
    }
}

impl Git {
    /// Stages files as they are, deleted ones as deleted. No file of the work tree is changed.
    ///
    /// # Errors
    /// There is no such file, it is ignored, the repository's own configuration names filters, or git fails.
    pub async fn add(&self, input: &GitAdd, cancel: &CancellationToken) -> Result<Added, Error> {
        let repository = self.find(input.repository_path.as_deref())?;
        repository.top("git_add")?;
        check_paths("files", &input.files)?;
        if input.files.is_empty() {
            return Err(Error::Argument { name: "files", reason: "it names no file".to_owned() });
        }
        repository.check_writable()?;
        self.refuse_drivers(&repository, "git_add", cancel).await?;
        let call = Call::new(&repository, Access::Writes, cancel, &["add"]).paths(&input.files);
        let output = self.run(call).await?;
        let said = if output.stderr.is_empty() && output.success() {
            String::new()
        } else {
            self.said(&repository.workspace, &output)
        };
        if !output.success() {
            return Err(Error::Failed { action: "git_add", said });
        }
        Ok(Added { staged: self.staged(&repository, cancel).await?, said })
    }

    /// How many paths are staged.
    pub(super) async fn staged(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<usize, Error> {
        let words = [
            "diff",
            "--cached",
            "--name-only",
            "--no-ext-diff",
            "--no-relative",
            "--ignore-submodules=dirty",
            "-z",
        ];
        let (listed, _) = self.ask("git_add", Call::new(repository, Access::Reads, cancel, &words)).await?;
        Ok(fields(&listed).count())
    }
}
