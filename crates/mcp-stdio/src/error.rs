//! The errors of the program.

use core_tools::mcp::NoSuchTool;
use std::io;

/// The error of a command that was not done. The exit code is 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The configuration, the roots, the policy or the role cannot be used.
    #[error(transparent)]
    Setup(#[from] server_setup::Error),
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
    /// The policy does not allow it.
    #[cfg(any(feature = "context", all(feature = "sessions", unix)))]
    #[error("{0}")]
    Forbidden(String),
    /// The caller sees no such tool.
    #[error(transparent)]
    NoSuchTool(#[from] NoSuchTool),
    /// The session between the client and the wrapped server could not begin.
    #[cfg(all(feature = "wrap", unix))]
    #[error(transparent)]
    Proxy(#[from] mcp_proxy::Error),
    /// A tool did not do it, and says why.
    #[error("{0}")]
    Failed(String),
    /// The supervisor of the sessions refused a request, or could not be asked.
    #[cfg(all(feature = "sessions", unix))]
    #[error(transparent)]
    Supervisor(#[from] core_tools::sessions::Error),
    /// An answer is not of the shape that this version reads.
    #[cfg(all(feature = "sessions", unix))]
    #[error("the answer is not of this version")]
    Answer(#[from] serde_json::Error),
    /// The operating system refused something.
    #[error("{action}")]
    System {
        /// The action that failed, such as `cannot read a.toml`.
        action: String,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// An error of the operating system while doing `action`.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
