//! [`Error`], the reasons why a capture gives no profile, and [`TraceErrorReport`], the error with advice as clients get it.

use crate::inspect::target::{InvalidTarget, TargetError};
use serde::Serialize;

/// The reason why a capture gives no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value of an argument is invalid in a way that the schema does not express.
    #[error("`{parameter}`: {reason}")]
    Argument {
        /// The name of the argument.
        parameter: &'static str,
        /// The reason, and the values that are allowed.
        reason: String,
    },
    /// The text given as the target cannot be parsed.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The target does not exist, or may not be inspected.
    #[error(transparent)]
    Unreachable(#[from] TargetError),
    /// No target was named, and there is no application, or more than one.
    #[error("{what}")]
    NoTarget {
        /// The processes that were found.
        what: String,
    },
    /// Another capture of the same process runs.
    #[error("process {pid} is being captured already; {by}")]
    Busy {
        /// The process id.
        pid: u32,
        /// The user of the profiler, as the end of the message.
        by: String,
    },
    /// No profiler supports this kind of profile for this target.
    #[error("no {kind} profile of {what}: {reason}")]
    Unsupported {
        /// The kind of profile.
        kind: &'static str,
        /// The target.
        what: String,
        /// The reason.
        reason: String,
        /// Advice that makes the capture possible.
        remedy: String,
    },
    /// A profiler that the capture needs is not installed.
    #[error("{program} is not installed, or not in PATH outside the roots")]
    NoProgram {
        /// The name of the program.
        program: &'static str,
        /// Advice on how to install it.
        remedy: &'static str,
    },
    /// The system, or the target, does not allow the capture.
    #[error("{what} was refused: {reason}")]
    Refused {
        /// The action that was refused.
        what: String,
        /// The message of the system or the profiler.
        reason: String,
        /// Advice that makes the system allow it.
        remedy: String,
    },
    /// The target exited before there was a profile.
    #[error("process {pid} ended after {after_ms} ms of the capture, before there was a profile")]
    Gone {
        /// The process id.
        pid: u32,
        /// The time from the beginning of the capture, in milliseconds.
        after_ms: u64,
    },
    /// A profiler failed.
    #[error("{what} failed: {reason}")]
    Failed {
        /// The profiler, or the step that failed.
        what: String,
        /// The message of the profiler.
        reason: String,
    },
    /// The profile cannot be written to the folder for profiles.
    #[error("cannot write to {folder}")]
    Store {
        /// The folder.
        folder: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The work was cancelled. The target is as it was before.
    #[error("cancelled")]
    Cancelled,
}

/// An error in the form that clients get.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TraceErrorReport {
    /// The message, with its causes.
    pub error: String,
    /// The kind of error.
    pub kind: TraceFailureKind,
    /// Advice on what to do, where there is some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The kind of an error, by which a client decides what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceFailureKind {
    /// An argument is invalid.
    Argument,
    /// Another capture or profiler has the target.
    Busy,
    /// The work was cancelled.
    Cancelled,
    /// A profiler failed, or its profile could not be written.
    Failed,
    /// The target exited.
    Gone,
    /// A profiler is not installed.
    MissingProgram,
    /// There is no application to choose, or more than one.
    NoTarget,
    /// The system or the target does not allow it.
    Refused,
    /// No profiler supports this kind of profile for the target.
    Unsupported,
}

impl Error {
    /// Creates the error for a profiler or a step that failed.
    pub(super) fn failed(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), reason: reason.into() }
    }

    /// Returns the error in the form that clients get.
    pub fn to_report(&self) -> TraceErrorReport {
        let error = error_causes::chain(self);
        let some = |remedy: &str| Some(remedy.to_owned());
        let (kind, remedy) = match self {
            Self::Argument { .. } => (TraceFailureKind::Argument, None),
            Self::Target(_) => (TraceFailureKind::Argument, None),
            Self::Unreachable(TargetError::Gone(_)) => {
                (TraceFailureKind::Gone, some("start it again, or leave out `target` to look for it"))
            }
            Self::Unreachable(TargetError::NotNamed(_) | TargetError::SeveralNamed { .. }) => {
                (TraceFailureKind::NoTarget, some("give `target`: pid:N or port:N"))
            }
            Self::Unreachable(TargetError::AnotherUser { .. }) => {
                (TraceFailureKind::Refused, some("run this server as that user"))
            }
            Self::Unreachable(TargetError::Denied(_)) => {
                (TraceFailureKind::Refused, some("run this server as root, or with CAP_SYS_PTRACE"))
            }
            Self::Unreachable(TargetError::Itself(_)) => (
                TraceFailureKind::Refused,
                some("let the operator profile it, over stdio with a role without restrictions"),
            ),
            Self::Unreachable(_) => (TraceFailureKind::Refused, None),
            Self::NoTarget { .. } => (
                TraceFailureKind::NoTarget,
                some("give `target`: pid:N, port:N or process:NAME; `server` is this server itself"),
            ),
            Self::Busy { .. } => {
                (TraceFailureKind::Busy, some("wait until it ends; one capture of a process runs at a time"))
            }
            Self::Unsupported { remedy, .. } => (TraceFailureKind::Unsupported, some(remedy)),
            Self::NoProgram { remedy, .. } => (TraceFailureKind::MissingProgram, some(remedy)),
            Self::Refused { remedy, .. } => (TraceFailureKind::Refused, some(remedy)),
            Self::Gone { .. } => (TraceFailureKind::Gone, some("ask for a shorter time, or start it again")),
            Self::Failed { .. } => (TraceFailureKind::Failed, None),
            Self::Store { .. } => {
                (TraceFailureKind::Failed, some("set traces.folder to a folder that this server may write"))
            }
            Self::Cancelled => (TraceFailureKind::Cancelled, None),
        };
        TraceErrorReport { error, kind, remedy }
    }
}
