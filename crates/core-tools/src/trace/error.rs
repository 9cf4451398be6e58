//! Why there is no profile, and what to do about it.

use crate::inspect::target::{InvalidTarget, Unreachable};
use serde::Serialize;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument that the schema cannot judge.
    #[error("`{parameter}`: {reason}")]
    Argument {
        /// Its name.
        parameter: &'static str,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The name of a target that names none.
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    /// The target is not there, or not to be looked into.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Nothing was named, and nothing could be found, or more than one thing.
    #[error("{what}")]
    NoTarget {
        /// What was looked for, and what was found.
        what: String,
    },
    /// Another capture of the same process runs.
    #[error("process {pid} is being captured already; {by}")]
    Busy {
        /// The process.
        pid: u32,
        /// By whom.
        by: String,
    },
    /// Nothing here can take this profile of this target.
    #[error("no {kind} profile of {what}: {reason}")]
    Unsupported {
        /// What the profile was to be of.
        kind: &'static str,
        /// The target.
        what: String,
        /// Why not.
        reason: String,
        /// What would help.
        remedy: String,
    },
    /// A program that is needed is not installed.
    #[error("{program} is not installed, or not in PATH outside the roots")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// How to get it.
        remedy: &'static str,
    },
    /// The system, or the target, does not allow it.
    #[error("{what} was refused: {reason}")]
    Refused {
        /// What was tried.
        what: String,
        /// What was said.
        reason: String,
        /// What would allow it.
        remedy: String,
    },
    /// The target ended before there was anything to tell.
    #[error("process {pid} ended after {after_ms} ms of the capture, before there was a profile")]
    Gone {
        /// The process.
        pid: u32,
        /// When, in milliseconds.
        after_ms: u64,
    },
    /// A profiler failed.
    #[error("{what} failed: {reason}")]
    Failed {
        /// Which.
        what: String,
        /// What it said.
        reason: String,
    },
    /// The profile cannot be kept.
    #[error("cannot write to {folder}")]
    Keep {
        /// Where profiles are kept.
        folder: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The work was cancelled. The target is as it was before.
    #[error("cancelled")]
    Cancelled,
}

/// An error as it is answered.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// What happened, and why.
    pub error: String,
    /// One word for it: `busy`, `gone`, `unsupported`, `refused`, `missing_program`, `no_target`, `argument`,
    /// `failed`, `cancelled`.
    pub kind: &'static str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Error {
    pub(super) fn failed(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), reason: reason.into() }
    }

    /// The error as it is answered.
    pub fn to_refusal(&self) -> Refusal {
        let mut error = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            error = format!("{error}: {cause}");
            source = cause.source();
        }
        let some = |remedy: &str| Some(remedy.to_owned());
        let (kind, remedy) = match self {
            Self::Argument { .. } => ("argument", None),
            Self::Target(_) => ("argument", None),
            Self::Unreachable(Unreachable::Gone(_)) => {
                ("gone", some("start it again, or leave out `target` to look for it"))
            }
            Self::Unreachable(Unreachable::AnotherUser { .. }) => {
                ("refused", some("run this server as that user"))
            }
            Self::Unreachable(Unreachable::Denied(_)) => {
                ("refused", some("run this server as root, or with CAP_SYS_PTRACE"))
            }
            Self::Unreachable(Unreachable::Itself(_)) => {
                ("refused", some("let the operator profile it, over stdio with a role without restrictions"))
            }
            Self::Unreachable(_) => ("refused", None),
            Self::NoTarget { .. } => {
                ("no_target", some("give `target`: pid:N or port:N; `server` is this server itself"))
            }
            Self::Busy { .. } => {
                ("busy", some("wait until it ends; one capture of a process runs at a time"))
            }
            Self::Unsupported { remedy, .. } => ("unsupported", some(remedy)),
            Self::NoProgram { remedy, .. } => ("missing_program", some(remedy)),
            Self::Refused { remedy, .. } => ("refused", some(remedy)),
            Self::Gone { .. } => ("gone", some("ask for a shorter time, or start it again")),
            Self::Failed { .. } => ("failed", None),
            Self::Keep { .. } => ("failed", some("set traces.folder to a folder that this server may write")),
            Self::Cancelled => ("cancelled", None),
        };
        Refusal { error, kind, remedy }
    }
}
