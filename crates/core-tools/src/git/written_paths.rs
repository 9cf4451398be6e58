//! The checks before git writes files of the work tree: no protected file is changed, and none is replaced that git does
//! not track.

use super::error::Error;
use super::git_process::{Git, GitOutput};
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::nul_fields;
use super::repository::Repository;
use super::untracked::refuse_existing;
use std::collections::HashSet;
use tokio_util::sync::CancellationToken;

impl Git {
    /// Refuses if git, about to write or remove `paths`, which are relative to the top folder and each ended by NUL, would
    /// change a protected file or replace one that it does not track.
    pub(super) async fn check_written(
        &self,
        repository: &Repository,
        paths: &GitOutput,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let top = repository.top_level(action)?;
        check_complete(paths)?;
        repository.check_changes(top, nul_fields(&paths.bytes))?;
        let words = ["ls-files", "-z", "--full-name", "--deduplicate", "--", ":/"];
        let indexed =
            self.run_checked(action, GitInvocation::new(repository, GitAccess::Read, cancel, &words)).await?;
        check_complete(&indexed)?;
        // git refuses to overwrite untracked files, but not ignored ones.
        let indexed: HashSet<_> = nul_fields(&indexed.bytes).collect();
        let new = nul_fields(&paths.bytes).filter(|path| !indexed.contains(path));
        self.refuse_untracked(repository, top, new.clone(), action, cancel).await?;
        refuse_existing(repository, top, new, action)
    }

    /// Returns the paths that differ between two commits or trees.
    pub(super) async fn differing_paths(
        &self,
        repository: &Repository,
        from: &str,
        to: &str,
        cancel: &CancellationToken,
    ) -> Result<GitOutput, Error> {
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-relative",
            "--end-of-options",
            from,
            to,
        ];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        self.run_checked("comparing two commits", invocation).await
    }
}

fn check_complete(listed: &GitOutput) -> Result<(), Error> {
    if listed.is_complete {
        return Ok(());
    }
    Err(Error::TooLarge(
        "there are too many files to see whether others would be lost; run git itself for that (run_command)"
            .to_owned(),
    ))
}
