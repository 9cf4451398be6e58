//! The git tools, for repositories beneath the workspace's roots.
//!
//! The installed `git` does the work; its output is parsed in its formats for machines, never as text for
//! people. Paths in inputs and results are relative to the folder that a call names, as with `git` itself.
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
//! # Untrusted repositories
//!
//! A repository's own configuration, attributes and hooks can name programs. Operations that read run none of them:
//! no hook, `fsmonitor`, external diff, text conversion, filter, pager, editor or signature check; nor do they fetch
//! missing objects. Operations that write run no hook either, except [`Git::commit`], [`Git::merge`], [`Git::rebase`] and
//! [`Git::push`], which do what git does in a terminal, with hooks and signature, but without the editor. They are refused
//! where the repository's own configuration, or that of a submodule, names filters or merge drivers, which writing would
//! have to run.
//!
//! [`Git::fetch`], [`Git::pull`] and [`Git::push`] connect to remotes that the repository has, by name. The user's keys,
//! credential helpers and proxies serve; those that the repository itself names do not, and the result says so.
//!
//! A repository reaches nothing outside the roots: a `.git` file, `commondir`, alternates or a link in the
//! `.git` folder that leads out is refused, and `core.worktree` is not followed. Files that the workspace
//! [protects](crate::workspace::Workspace::protect) are not changed.
//!
//! A repository that another user owns is refused unless git is configured to trust it (`safe.directory`).
//!
//! The user's own configuration (`~/.gitconfig`) applies, except for the programs above and for settings of display.
//! git gets the environment variables that it needs, and no `GIT_…` variable except the four that name author and
//! committer, which only operations get that run hooks.
//!
//! # What it leaves out
//!
//! No operation here resets or overwrites untracked files, and only [`Git::clean`] removes some. None forces, except [`GitPush::force_with_lease`] and
//! [`GitWorktree::force`], which say what is lost.
//! The state *inside* submodules is not looked at, since git would do that with their configuration. Only a submodule's
//! commit counts.

mod add;
mod blame;
mod branches;
mod change_kind;
mod checkout;
mod clean;
mod commit;
mod commit_stat;
mod conflict;
mod conflicts;
mod diff;
mod discovery;
mod environment;
mod error;
mod fetch;
mod git_process;
mod integration;
mod invocation;
mod layout;
mod log;
mod log_stat;
mod merge;
mod operation;
mod path;
mod printed_text;
mod programs;
mod pull;
mod push;
mod push_report;
mod rebase;
mod references;
mod remote;
mod remote_settings;
mod remote_url;
mod repository;
mod repository_files;
mod restore;
mod revision;
mod same_repository;
mod show;
mod stash;
mod stash_push;
mod status;
mod untracked;
mod worktree;
mod written_paths;

pub use add::{AddResult, GitAdd};
pub use blame::{BlameLine, BlameResult, GitBlame};
pub use branches::{
    BranchList, CreateBranchResult, CurrentBranch, GitBranch, GitCreateBranch, GitCurrentBranch,
    GitListBranches,
};
pub use change_kind::{ConflictKind, GitChangeKind};
pub use checkout::{CheckoutResult, GitCheckout};
pub use clean::{CleanResult, GitClean};
pub use commit::{CommitResult, GitCommit};
pub use commit_stat::CommitStat;
pub use conflict::ConflictedFile;
pub use diff::{DiffResult, FileDiff, GitDiff};
pub use error::Error;
pub use fetch::{FetchResult, GitFetch};
pub use git_process::Git;
pub use integration::{IntegrationOutcome, IntegrationResult};
pub use log::{CommitEntry, CommitLog, GitLog};
pub use merge::{GitMerge, MergeAction};
pub use operation::{OperationProgress, UnfinishedOperation};
pub use pull::{GitPull, PullResult};
pub use push::{GitPush, PushResult};
pub use push_report::{PushStatus, PushedReference};
pub use rebase::{GitRebase, RebaseAction};
pub use references::{ReferenceChange, ReferenceChangeKind};
pub use remote_url::RemoteRefusal;
pub use repository::Repository;
pub use restore::{GitRestore, RestoreResult};
pub use show::{GitShow, ShowResult};
pub use stash::{GitStash, StashAction, StashEntry, StashResult};
pub use status::{ChangedPath, GitStatus, HeadStatus, WorkTreeStatus};
pub use worktree::{GitWorktree, WorktreeAction, WorktreeEntry, WorktreeResult};
