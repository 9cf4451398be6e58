//! The check that git, where it finds the repository itself, finds the one that was judged.

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::repository::Repository;
use tokio_util::sync::CancellationToken;

impl Git {
    /// Refuses where git, which finds the repository itself when hooks will run, finds another, by `core.worktree`. git
    /// also checks the ownership (`safe.directory`).
    pub(super) async fn check_same_repository(
        &self,
        repository: &Repository,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let top = repository.top_level(action)?;
        let words = ["rev-parse", "--show-toplevel", "--absolute-git-dir"];
        let found = self
            .run_checked(action, GitInvocation::new(repository, GitAccess::Commit, cancel, &words))
            .await?
            .bytes;
        // `components` drops the trailing separator that joining an empty path leaves.
        let mut expected = top.to_absolute().components().as_path().as_os_str().to_owned();
        expected.push("\n");
        expected.push(repository.git_dir.to_absolute().components().as_path());
        expected.push("\n");
        if found == expected.as_encoded_bytes() {
            return Ok(());
        }
        Err(Error::UnsupportedLayout(
            "the repository's own configuration (core.worktree) places its files elsewhere".to_owned(),
        ))
    }
}
