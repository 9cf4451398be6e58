//! The answer of a person.

use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// The decision of a person about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// The call may run, once.
    AllowOnce,
    /// The call may run, and the same call with the same arguments by the same caller may run again without a question
    /// for eight hours, as long as the queue lives.
    AllowForSession,
    /// The call may not run. Holds the reason, if the person gave one.
    Deny(Option<String>),
}

impl ApprovalVerdict {
    /// Returns the words of the verdict for a record, such as `allowed once`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::AllowOnce => "allowed once",
            Self::AllowForSession => "allowed for the session",
            Self::Deny(_) => "denied",
        }
    }
}

/// A verdict, with the person who gave it and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalAnswer {
    /// The decision.
    pub verdict: ApprovalVerdict,
    /// The person, as the server knows them: `ada, on the page`.
    pub approver: String,
    /// The time of the answer.
    pub at: SystemTime,
}

impl ApprovalAnswer {
    /// Creates an answer that is given now.
    pub fn now(verdict: ApprovalVerdict, approver: impl Into<String>) -> Self {
        Self { verdict, approver: approver.into(), at: SystemTime::now() }
    }
}
