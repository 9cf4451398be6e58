//! The diagnosis of a process that has ended: why it ended, and when to go on.

use serde::{Deserialize, Serialize};

/// The cause for which a session's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionStopCause {
    /// The provider of the model refuses further requests for a while.
    RateLimit,
    /// The conversation no longer fits into the model's context window.
    ContextExhausted,
    /// The agent finished its work.
    Completed,
    /// The user quit the agent or sent it a signal to end.
    UserExit,
    /// The agent cannot work until somebody logs it in, finishes its set-up or trusts the folder.
    NeedsAttention,
    /// The process failed.
    Crash,
    /// `end_session` or the end of the supervisor ended it.
    Ended,
    /// The process was gone when a new supervisor came up, and nobody saw how it ended.
    Lost,
    /// Neither the exit nor the output gives a cause.
    Unknown,
}

impl SessionStopCause {
    /// Returns the name that answers and logs use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::ContextExhausted => "context_exhausted",
            Self::Completed => "completed",
            Self::UserExit => "user_exit",
            Self::NeedsAttention => "needs_attention",
            Self::Crash => "crash",
            Self::Ended => "ended",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// The cause of a stop, with the evidence for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionStopDiagnosis {
    /// The cause.
    pub(crate) reason: SessionStopCause,
    /// The confidence in the cause, from 0 to 1.
    pub(crate) confidence: f64,
    /// The observations that support the cause, the strongest first.
    pub(crate) evidence: Vec<String>,
    /// The time to go on, if the output named one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) retry: Option<AgentRetryHint>,
    /// The exit code of the process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) exit_code: Option<u32>,
    /// The signal that ended the process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) signal: Option<i32>,
}

impl SessionStopDiagnosis {
    /// Creates a diagnosis of a cause that is known for certain.
    pub(crate) fn certain(reason: SessionStopCause, evidence: impl Into<String>) -> Self {
        Self {
            reason,
            confidence: 1.0,
            evidence: vec![evidence.into()],
            retry: None,
            exit_code: None,
            signal: None,
        }
    }
}

/// The form in which the output named a time to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentRetrySource {
    /// A header such as `Retry-After: 30`.
    Header,
    /// A JSON key such as `"retry_after": 30`.
    Json,
    /// Words such as `try again in 30 seconds`.
    Words,
    /// A point in time: `limit reached|1762952400`, `resets 3pm (Europe/Rome)`.
    Reset,
}

impl AgentRetrySource {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Json => "json",
            Self::Words => "words",
            Self::Reset => "reset",
        }
    }
}

/// A time to go on, as the output named it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentRetryHint {
    /// The form in which it was named.
    pub(crate) source: AgentRetrySource,
    /// The time itself.
    pub(crate) when: AgentRetryTime,
}

/// A time to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentRetryTime {
    /// This many milliseconds after the process ended.
    In(u64),
    /// A point in time, in milliseconds since 1970.
    At(u64),
    /// The next moment at which a clock shows this time of day.
    Clock {
        /// The time of day, such as `15:00`.
        time: String,
        /// The time zone, such as `Europe/Rome`; the machine's own if absent.
        zone: Option<String>,
    },
}

/// The exit of a process, as far as it was observed. Both fields are absent if nobody saw the exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservedSessionExit {
    /// The exit code.
    pub(crate) code: Option<u32>,
    /// The signal that ended the process.
    pub(crate) signal: Option<i32>,
}
