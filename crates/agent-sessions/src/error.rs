//! The errors that a supervisor answers with.

use error_causes::chain;
use serde::{Deserialize, Serialize};

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// No supervisor runs, or it is ending.
    NotRunning,
    /// There is no such session.
    NoSession,
    /// A process could not be started.
    NotStarted,
    /// The requester may not do that.
    Refused,
    /// The session or the supervisor is in a state in which that cannot be done.
    State,
    /// The limit of sessions is reached.
    Full,
    /// The request is invalid.
    Invalid,
    /// The state directory, its database or its socket does not work.
    Broken,
    /// This operating system lacks what sessions need.
    Unsupported,
}

/// The reason why a request was not done. The error crosses the socket as it stands, so its message holds the whole
/// chain of causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Error {
    /// The kind of the error.
    pub code: ErrorCode,
    /// The explanation for the requester.
    pub message: String,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates the error of something that does not work: what was being done, and the causes.
    pub(crate) fn broken(operation: &str, error: &dyn std::error::Error) -> Self {
        Self::new(ErrorCode::Broken, format!("{operation}: {}", chain(error)))
    }

    pub(crate) fn no_session(id: &str) -> Self {
        // The id comes from the requester and may be of any length.
        let shown: String = id.chars().take(64).collect();
        Self::new(
            ErrorCode::NoSession,
            format!("there is no session `{shown}`; list_sessions names those there are"),
        )
    }

    pub(crate) fn ending() -> Self {
        Self::new(ErrorCode::NotRunning, "the supervisor is ending")
    }
}
