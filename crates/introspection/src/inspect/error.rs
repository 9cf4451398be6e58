//! Errors of the inspect area.

use super::target::{InvalidTarget, SignalError, TargetError};
use super::{InvalidStatePath, cdp, http};

/// A request whose state could not be read. A path that leads nowhere is an answer and no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path cannot be parsed.
    #[error(transparent)]
    Path(#[from] InvalidStatePath),
    /// The target cannot be parsed.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The depth is out of range.
    #[error("`depth`: {0} is not in 1 to 10")]
    Depth(u32),
    /// The target does not exist, or may not be looked into.
    #[error(transparent)]
    Unreachable(#[from] TargetError),
    /// More than one process fits. Holds their list.
    #[error("several processes can be inspected; name one as target \"pid:N\": {0}")]
    AmbiguousProcess(String),
    /// The file may not be opened.
    #[error("cannot read {path}")]
    OpenFile {
        /// The path in the request or in the settings.
        path: String,
        /// The reason.
        source: workspace::Error,
    },
    /// Reading the file failed.
    #[error("cannot read {path}")]
    ReadFile {
        /// Relative to its root.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file or response is no JSON document, or too long.
    #[error("{location} holds no JSON document: {reason}")]
    Document {
        /// The file, or the URL up to its host.
        location: String,
        /// The fault.
        reason: String,
    },
    /// No document was served.
    #[error("no document from {location}")]
    Http {
        /// The URL up to its host: the rest may be secret.
        location: String,
        /// The reason.
        source: http::HttpGetError,
    },
    /// The inspector did not answer.
    #[error("the inspector failed")]
    Inspector(#[from] cdp::CdpError),
    /// The process has no unmodified built-in functions to read it with.
    #[error(
        "the process has replaced built-in functions of JavaScript, so that it cannot be read without running its code"
    )]
    BuiltInsReplaced,
    /// Variables of a module could not be looked for.
    #[error("variables of {file}: {reason}")]
    ModuleVariables {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A process could not be made to open its inspector.
    #[error("cannot open the inspector of {process}: {reason}")]
    OpenInspector {
        /// The process.
        process: String,
        /// The reason.
        reason: SignalError,
    },
    /// The Java virtual machine did not answer.
    #[cfg(unix)]
    #[error("cannot ask {process}")]
    Jvm {
        /// The process.
        process: String,
        /// The reason.
        source: super::jvm::JvmError,
    },
    /// py-spy failed.
    #[error("cannot look into {process}: {reason}")]
    Python {
        /// The process.
        process: String,
        /// The message of py-spy.
        reason: String,
    },
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
}
