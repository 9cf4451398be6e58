//! The errors of questions and answers.

use std::io;
use std::path::PathBuf;

/// The reason why a question was not asked, or an answer not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// As many questions wait as a queue holds.
    #[error("{max} calls wait for a person already; answer some, or wait until they end")]
    Full {
        /// The number of questions that may wait.
        max: usize,
    },
    /// No question with this id waits: it was answered, or its call has ended.
    #[error("no call with this id waits for an answer; it was answered already, or it has ended")]
    NotPending,
    /// Several questions begin with these characters of an id.
    #[error("several calls begin with `{prefix}`; give more characters of the id")]
    Ambiguous {
        /// The characters that were given.
        prefix: String,
    },
    /// No server took the answer.
    #[error("no server took the answer; the one that asked has ended")]
    NotTaken,
    /// There is no grant with this id, or it is for another call.
    #[error(
        "there is no approval for this call: it was used already, its time is over, or it is for another command or folder; \
         have the command asked for again"
    )]
    NoGrant,
    /// The system has no random numbers, so that no question can be told from another.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// The folder of questions cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn folder(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Folder { path: path.into(), source }
    }
}
