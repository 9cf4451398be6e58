//! The decision about a call, and its end.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The decision about a call, made before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallDecision {
    /// The policy allows it.
    Allowed,
    /// The caller does not see the tool.
    Hidden,
    /// No tool has that name.
    Unknown,
    /// The policy or a limit refuses it.
    Refused,
    /// The policy has a person asked, elsewhere. If the person agrees, the call is recorded again.
    Asked,
    /// Its arguments or parameters do not fit.
    Invalid,
}

impl CallDecision {
    /// Every decision.
    pub const ALL: [Self; 6] =
        [Self::Allowed, Self::Hidden, Self::Unknown, Self::Refused, Self::Asked, Self::Invalid];

    /// The word in the audit, such as `allowed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Hidden => "hidden",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
            Self::Asked => "asked",
            Self::Invalid => "invalid",
        }
    }

    /// Returns the decision that the audit writes as `word`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == word)
    }
}

impl fmt::Display for CallDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did its work.
    Ok,
    /// It ran, or may have run, and failed.
    Failed,
    /// It did not run: anything but [`CallDecision::Allowed`].
    NotRun,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Failed, Self::NotRun];

    /// The word in the audit, such as `not_run`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
        }
    }

    /// Returns the outcome that the audit writes as `word`.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}
