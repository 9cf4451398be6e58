//! git, for repositories beneath the workspace's roots.
//!
//! The real `git` does the work; what it prints is taken from its formats for machines, never from text for
//! people. Paths that go in and come out are relative to the folder that a call names, as with `git` itself.
//!
//! ```no_run
//! use core_tools::ci::Commands;
//! use core_tools::git::{Git, GitStatus};
//! use core_tools::redact::Redactor;
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let git = Git::new(Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default())?));
//! let status = git.status(&GitStatus::default(), &Default::default()).await?;
//! println!("{}", status.to_text());
//! # Ok(())
//! # }
//! ```
//!
//! # Repositories that nobody vouches for
//!
//! A repository's own configuration, attributes and hooks can name programs. What reads runs none of them:
//! no hook, no `fsmonitor`, external diff, text conversion, filter, pager, editor, signature check, and no
//! fetch of missing objects. What writes runs no hook either, [`Git::commit`] aside, and refuses where the
//! repository's own configuration, or that of a submodule, names filters or merge drivers, which writing would
//! have to run. [`Git::commit`] is what `git commit` is in a terminal, hooks and signature included, without the
//! editor.
//!
//! A repository reaches nothing outside the roots: a `.git` file, `commondir`, alternates or a link in the
//! `.git` folder that leads out is refused, and `core.worktree` is not followed. Files that the workspace
//! [protects](crate::workspace::Workspace::protect) are not changed.
//!
//! A repository that belongs to another user is refused unless git is told to trust it (`safe.directory`).
//!
//! The user's own configuration (`~/.gitconfig`) holds, except for the programs above and for what only changes
//! how things are shown. Of the environment git gets what it needs, and no `GIT_…` variable but the four that name
//! author and committer, which only what makes commits gets.
//!
//! # What it leaves out
//!
//! Nothing here discards commits, forces, cleans, overwrites what git does not track, or talks to another machine.
//! The state *inside* submodules is not looked at: that would be run with their configuration. Only a submodule's
//! commit counts.

mod blame;
mod branches;
mod change;
mod checkout;
mod commit;
mod diff;
mod error;
mod log;
mod programs;
mod repository;
mod restore;
mod revision;
mod run;
mod show;
mod stash;
mod status;
mod text;
mod untracked;

pub use blame::{Blame, BlameLine, GitBlame};
pub use branches::{
    Branch, Branches, CreatedBranch, CurrentBranch, GitCreateBranch, GitCurrentBranch, GitListBranches,
};
pub use change::{Added, GitAdd};
pub use checkout::{CheckedOut, GitCheckout};
pub use commit::{Committed, GitCommit};
pub use diff::{Diff, FileDiff, GitDiff};
pub use error::Error;
pub use log::{CommitEntry, GitLog, Log};
pub use repository::Repository;
pub use restore::{GitRestore, Restored};
pub use run::Git;
pub use show::{GitShow, Shown};
pub use stash::{GitStash, StashAction, StashEntry, Stashed};
pub use status::{Change, GitStatus, Head, Status};
