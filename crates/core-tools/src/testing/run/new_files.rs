//! The untracked files that a run leaves in the repository of the project.

use crate::ci::Commands;
use crate::ci::project::Project;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// The number of files that a report names.
#[cfg_attr(not(feature = "git"), allow(dead_code, reason = "nothing is listed without git"))]
const MAX_NAMED: usize = 20;

/// The untracked files of a repository at one time.
pub(super) struct UntrackedFilesBeforeTests(BTreeSet<String>);

impl UntrackedFilesBeforeTests {
    /// Lists them. `None` where the project is in no repository, and where git needs too long: a run of tests neither
    /// fails nor waits for it.
    #[cfg(feature = "git")]
    pub(super) async fn list(
        commands: &Commands,
        project: &Project,
        cancel: &CancellationToken,
    ) -> Option<Self> {
        use crate::git::{Git, GitChangeKind, GitStatus};
        use std::time::Duration;
        /// The time that git has for it. A status of 100,000 files takes a tenth of it.
        const TIMEOUT: Duration = Duration::from_secs(3);
        /// The number of changes that are looked at.
        const MAX_CHANGES: usize = 10_000;
        let request = GitStatus {
            repository_path: Some(project.folder().to_absolute().to_string_lossy().into_owned()),
            max_results: Some(MAX_CHANGES),
        };
        let git = Git::new(commands.clone());
        let status = tokio::time::timeout(TIMEOUT, git.status(&request, cancel)).await.ok()?.ok()?;
        // With a cut list, a file that was there before would count as new.
        if status.has_more || status.total > MAX_CHANGES {
            return None;
        }
        let untracked =
            status.changes.into_iter().filter(|change| change.unstaged == Some(GitChangeKind::Untracked));
        Some(Self(untracked.map(|change| change.path).collect()))
    }

    /// Returns nothing: git is not linked.
    #[cfg(not(feature = "git"))]
    pub(super) async fn list(_: &Commands, _: &Project, _: &CancellationToken) -> Option<Self> {
        None
    }

    /// Returns those that were not there `before`, the first of them if they are many.
    pub(super) fn since(self, before: &Self) -> Vec<String> {
        let new: Vec<_> = self.0.into_iter().filter(|path| !before.0.contains(path)).collect();
        let more = new.len().saturating_sub(MAX_NAMED);
        let named = new.into_iter().take(MAX_NAMED);
        named.chain((more > 0).then(|| format!("... and {more} more"))).collect()
    }
}
