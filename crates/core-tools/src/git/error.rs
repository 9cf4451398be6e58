//! The errors of git operations.

use super::conflict::ConflictedFile;
use super::operation::UnfinishedOperation;
use super::printed_text::{count_of, printable_list};
use super::remote_url::RemoteRefusal;
use crate::ci::CommandError;
use crate::workspace;
use std::time::Duration;

/// The reason that a git operation was refused or failed. Messages show paths relative to a root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path cannot be used.
    #[error(transparent)]
    Path(#[from] workspace::Error),
    /// Neither the folder nor one above it, up to the root, is a repository.
    #[error("`{0}` is in no git repository; `repository_path` names one beneath the allowed roots")]
    NoRepository(String),
    /// The folder belongs to a repository whose top folder lies above the allowed roots.
    #[error(
        "`{folder}` is in a git repository whose top folder is {root}, above the allowed root. Start the server with that \
         folder as a root, from this one: --root {root}"
    )]
    RepositoryAboveRoots {
        /// The folder that was named.
        folder: String,
        /// The way from the root to the top folder: `..`, `../..`.
        root: String,
    },
    /// The folder is a linked work tree or a submodule, and the repository that it belongs to lies outside the roots.
    #[error(
        "`{folder}` is a linked work tree or a submodule: its commits are in {repository}, outside the allowed roots. \
         Start the server with that folder as another root: --root {repository}"
    )]
    LinkedRepositoryOutsideRoots {
        /// The folder that was named.
        folder: String,
        /// The folder that its `.git` file names.
        repository: String,
    },
    /// A part of the repository, which is named, lies outside the allowed roots.
    #[error("refused: {0} of this repository leads outside the allowed roots")]
    OutsideRoots(String),
    /// The repository is damaged, or laid out in a way that is not supported.
    #[error("refused: {0}")]
    UnsupportedLayout(String),
    /// The repository is too large to check that the operation is safe.
    #[error("refused: {0}")]
    TooLarge(String),
    /// git does not trust the repository, because another user owns it.
    #[error(
        "refused by git: this repository belongs to another user. The user who runs this server can trust it: \
         git config --global --add safe.directory, followed by the whole path of its top folder"
    )]
    DubiousOwnership,
    /// The repository is bare, and the operation needs a work tree.
    #[error("this is a bare repository, and {0} needs its files: name a work tree with `repository_path`")]
    BareRepository(&'static str),
    /// An argument has a value that it cannot have.
    #[error("`{name}` is not usable: {reason}")]
    InvalidArgument {
        /// The argument.
        name: &'static str,
        /// The problem with it.
        reason: String,
    },
    /// No revision has this name. The second value is a hint that follows the message.
    #[error("no commit, branch or tag is called `{0}` here{1}")]
    UnknownRevision(String, &'static str),
    /// A name leads to an object that is missing or cannot be read.
    #[error(
        "this repository is damaged: {0}. `git fsck` lists what is missing; commit nothing before it is mended"
    )]
    Damaged(String),
    /// The repository's own configuration names programs that the operation would have to run.
    #[error(
        "refused: this repository's own configuration names programs that {action} would run ({}). If they are \
         trusted, run git with run_command", .keys.join(", ")
    )]
    ConfiguredPrograms {
        /// The operation.
        action: &'static str,
        /// The configuration keys.
        keys: Vec<String>,
    },
    /// Untracked files, which git could not restore, are in the way.
    #[error(
        "refused: {action} would overwrite or delete what git does not track ({}). Move it elsewhere first",
        printable_list(paths)
    )]
    UntrackedInTheWay {
        /// The operation.
        action: &'static str,
        /// The first of the paths, relative to the folder that was named.
        paths: Vec<String>,
    },
    /// git exited with an error.
    #[error("{action} failed: {message}")]
    Failed {
        /// The operation.
        action: &'static str,
        /// The output of git and its hooks.
        message: String,
    },
    /// Files are in conflict.
    #[error("{}", conflict_text(conflicts, *total))]
    Conflicts {
        /// The first of them.
        conflicts: Vec<ConflictedFile>,
        /// The number of all of them.
        total: usize,
    },
    /// The address of a remote is not used.
    #[error("refused: the remote's address `{url}` is not used: {reason}")]
    RemoteRefused {
        /// The address, without passwords.
        url: String,
        /// The problem with it.
        reason: RemoteRefusal,
    },
    /// A branch and the one that it follows have different commits, so it cannot move forward.
    #[error(
        "{branch} cannot move forward to {tracked}: {} here and {} there are not in the other. They were fetched: rebase \
         {branch} onto {tracked}, or merge it", count_of(*ahead, "commit", "commits"), count_of(*behind, "commit", "commits")
    )]
    Diverged {
        /// The local branch.
        branch: String,
        /// The branch of the remote.
        tracked: String,
        /// The number of commits that only the local branch has.
        ahead: usize,
        /// The number of commits that only the branch of the remote has.
        behind: usize,
    },
    /// An operation is in progress that has to be finished first.
    #[error("a {0} is in progress: continue or abort it first")]
    InProgress(UnfinishedOperation),
    /// An operation that is to be continued or aborted is not in progress.
    #[error("no {0} is in progress; action `start` begins one")]
    NotInProgress(UnfinishedOperation),
    /// There is nothing to do. Holds the reason and what to do first.
    #[error("{0}")]
    NothingToDo(&'static str),
    /// git did not start, or its run was lost.
    #[error(transparent)]
    Run(#[from] CommandError),
    /// git was ended at its time limit.
    #[error(
        "git was ended at its time limit of {} s. A pipe where it reads a file (`.gitignore`, \
         `.gitattributes`, what its configuration includes) makes it wait for ever; so does a hook", .0.as_secs()
    )]
    TimedOut(Duration),
    /// The call was cancelled, and git was ended.
    #[error("git was ended: the call was cancelled")]
    Cancelled,
    /// git's output has an unknown form. Holds the command.
    #[error("git's answer to {0} was not understood; get_diagnostics tells its version")]
    UnexpectedOutput(&'static str),
}

/// Returns the message about files in conflict.
fn conflict_text(conflicts: &[ConflictedFile], total: usize) -> String {
    let files = count_of(total, "file", "files");
    let mut text = format!("there are conflicts in {files}; resolve them and stage the files first:");
    for conflict in conflicts {
        text.push('\n');
        text.push_str(&conflict.to_text());
    }
    text
}
