//! Why something asked of the supervisor was not done.

use serde::{Deserialize, Serialize};

/// What kind of no it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// There is no supervisor.
    NotRunning,
    /// There is no such session.
    NoSession,
    /// A process could not be started.
    NotStarted,
    /// Who asked may not.
    Refused,
    /// The session is in a state in which that cannot be done.
    State,
    /// There are as many sessions as there may be.
    Full,
    /// What was asked cannot be understood.
    Invalid,
    /// The state directory, its database or its socket does not work.
    Broken,
    /// This system lacks what sessions need.
    Unsupported,
}

/// Why something was not done, in words for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of no it is.
    pub code: Code,
    /// In words.
    pub message: String,
}

impl Error {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn broken(what: &str, error: &dyn std::error::Error) -> Self {
        Self::new(Code::Broken, format!("{what}: {}", chain(error)))
    }

    pub(super) fn no_session(id: &str) -> Self {
        let shown: String = id.chars().take(64).collect();
        Self::new(
            Code::NoSession,
            format!("there is no session `{shown}`; list_sessions names those there are"),
        )
    }
}

/// An error and everything that led to it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
