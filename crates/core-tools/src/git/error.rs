//! Why a git operation was refused or failed.

use super::text::line;
use crate::workspace;

/// Why a git operation was refused or failed. Messages show paths relative to a root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path cannot be used.
    #[error(transparent)]
    Path(#[from] workspace::Error),
    /// Neither the folder nor one above it, up to the root, is a repository.
    #[error("`{0}` is in no git repository; `repository_path` names one beneath the allowed roots")]
    NoRepository(String),
    /// The repository reaches for something outside the allowed roots.
    #[error("refused: {0} of this repository leads outside the allowed roots")]
    Outside(String),
    /// The repository is laid out in a way that is not followed.
    #[error("refused: {0}")]
    Odd(String),
    /// git does not trust the repository: it is somebody else's.
    #[error(
        "refused by git: this repository belongs to another user. The user who runs this server can trust it: \
         git config --global --add safe.directory, followed by the whole path of its top folder"
    )]
    Owner,
    /// There are no files to work on.
    #[error("this is a bare repository, and {0} needs its files: name a work tree with `repository_path`")]
    Bare(&'static str),
    /// An argument is not of the kind it must be.
    #[error("`{name}` is not usable: {reason}")]
    Argument {
        /// The argument.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing is called so.
    #[error("no commit, branch or tag is called `{0}` here{1}")]
    NoRevision(String, &'static str),
    /// The repository's own configuration names programs that the operation would have to run.
    #[error(
        "refused: this repository's own configuration names programs that {action} would run ({}). If they are \
         trusted, run git with run_command", .keys.join(", ")
    )]
    Programs {
        /// What was to be done.
        action: &'static str,
        /// The configuration keys.
        keys: Vec<String>,
    },
    /// Files that git does not track, and so could not give back, are in the way.
    #[error(
        "refused: {action} would overwrite or delete what git does not track ({}). Move it elsewhere first",
        .paths.iter().map(|path| line(path)).collect::<Vec<_>>().join(", ")
    )]
    Untracked {
        /// What was to be done.
        action: &'static str,
        /// The first of the paths, as seen from the folder that was named.
        paths: Vec<String>,
    },
    /// git said no.
    #[error("{action} failed: {said}")]
    Failed {
        /// What was to be done.
        action: &'static str,
        /// What git said.
        said: String,
    },
    /// There is nothing to do.
    #[error("{0}")]
    Nothing(&'static str),
    /// git did not start, or was ended.
    #[error("{0}")]
    Run(String),
    /// git answered in a form that is not known.
    #[error("git's answer to {0} was not understood; get_diagnostics tells its version")]
    Answer(&'static str),
}
