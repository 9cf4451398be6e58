//! Why no state could be read.

use super::target::{InvalidTarget, Unreachable};
use super::{InvalidPath, cdp, http};
use crate::workspace;

/// Why no state could be read. That a path leads nowhere is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path is none.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// The target is none.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The depth is out of range.
    #[error("`depth`: {0} is not in 1 to 10")]
    Depth(u32),
    /// What is meant may not be looked into, or is not there.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// More than one process could be meant.
    #[error("several processes can be inspected; name one as target \"pid:N\": {0}")]
    Several(String),
    /// The file cannot be read.
    #[error("cannot read {path}")]
    File {
        /// As it was named.
        path: String,
        /// What is wrong with it.
        source: workspace::Error,
    },
    /// Reading failed.
    #[error("cannot read {what}")]
    Io {
        /// The file.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// What is there is no JSON document that could be read.
    #[error("{what} holds no JSON document: {why}")]
    Document {
        /// Where it is.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// No document was served.
    #[error("no document from {what}")]
    Http {
        /// Where, without what may be secret in a URL.
        what: String,
        /// What is wrong.
        source: http::Error,
    },
    /// The inspector did not answer.
    #[error("the inspector failed")]
    Inspector(#[from] cdp::Error),
    /// What reading needs could not be had in the process.
    #[error(
        "the process has replaced built-in functions of JavaScript, so that it cannot be read without running its code"
    )]
    Reader,
    /// Variables of a module could not be looked for.
    #[error("variables of {file}: {why}")]
    Local {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A process could not be made to open its inspector.
    #[error("cannot open the inspector of {process}: {why}")]
    Signal {
        /// Which.
        process: String,
        /// What is not proven, or failed.
        why: String,
    },
    /// The Java virtual machine did not answer.
    #[cfg(unix)]
    #[error("cannot ask {process}")]
    Jvm {
        /// Which.
        process: String,
        /// What is wrong.
        source: super::jvm::Error,
    },
    /// py-spy failed.
    #[error("cannot look into {process}: {why}")]
    Python {
        /// Which.
        process: String,
        /// In its words.
        why: String,
    },
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}
