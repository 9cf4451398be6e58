//! The record of one call.

use approvals::ApprovalAnswer;
use role_policy::Caller;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The decision about a call, made before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
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
}

impl fmt::Display for CallDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did its work.
    Ok,
    /// It ran, or may have run, and failed.
    Failed,
    /// It did not run: anything but [`CallDecision::Allowed`].
    NotRun,
}

/// The facts about a call that are known when it ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallRecord<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The tool, as it was asked for.
    pub tool: &'a str,
    /// The decision that was made before it ran.
    pub decision: CallDecision,
    /// The rule that decided; empty where none did.
    pub rule: &'a str,
    /// Its end.
    pub outcome: Outcome,
    /// From its arrival to its end.
    pub duration: Duration,
    /// The names and sizes of its arguments, never their values.
    pub arguments: &'a str,
    /// Bytes of its arguments.
    pub bytes_in: usize,
    /// Bytes of its answer.
    pub bytes_out: usize,
    /// The connections that were refused to its programs, each as a sentence.
    pub refused_connections: &'a [String],
    /// True if its tool runs programs, so that their confinement is recorded too.
    pub runs_programs: bool,
    /// The answer of the person who was asked, if one was.
    pub approval: Option<&'a ApprovalAnswer>,
}

impl<'a> CallRecord<'a> {
    /// Creates the record of a call that took no time, had no arguments, and was not answered.
    pub const fn new(caller: &'a Caller, tool: &'a str, decision: CallDecision, outcome: Outcome) -> Self {
        let (rule, arguments) = ("", "");
        Self {
            caller,
            tool,
            decision,
            rule,
            outcome,
            duration: Duration::ZERO,
            arguments,
            bytes_in: 0,
            bytes_out: 0,
            refused_connections: &[],
            runs_programs: false,
            approval: None,
        }
    }

    /// Sets the rule that decided.
    #[must_use]
    pub const fn rule(mut self, rule: &'a str) -> Self {
        self.rule = rule;
        self
    }

    /// Sets the time from its arrival to its end.
    #[must_use]
    pub const fn duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Sets the names and sizes of its arguments, and their size in bytes.
    #[must_use]
    pub const fn arguments(mut self, arguments: &'a str, bytes: usize) -> Self {
        self.arguments = arguments;
        self.bytes_in = bytes;
        self
    }

    /// Sets the connections that were refused to its programs.
    #[must_use]
    pub const fn refused_connections(mut self, refused: &'a [String]) -> Self {
        self.refused_connections = refused;
        self
    }

    /// Sets whether its tool runs programs.
    #[must_use]
    pub const fn runs_programs(mut self, runs_programs: bool) -> Self {
        self.runs_programs = runs_programs;
        self
    }

    /// Sets the answer of the person who was asked.
    #[must_use]
    pub const fn approval(mut self, approval: Option<&'a ApprovalAnswer>) -> Self {
        self.approval = approval;
        self
    }

    /// Sets the size of its answer in bytes.
    #[must_use]
    pub const fn bytes_out(mut self, bytes: usize) -> Self {
        self.bytes_out = bytes;
        self
    }
}
