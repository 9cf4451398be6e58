//! The kinds of states that a session can be in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of state that a session is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionStateKind {
    /// The first process is being started.
    Starting,
    /// The process runs.
    Running,
    /// The process has ended, and an action is due later.
    Waiting,
    /// The action is being done.
    Resuming,
    /// An action is held back by a pause.
    Paused,
    /// The session is over, unless somebody sends it a message.
    Stopped,
    /// The session is over and cannot go on.
    Failed,
}

impl SessionStateKind {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Resuming => "resuming",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for SessionStateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
