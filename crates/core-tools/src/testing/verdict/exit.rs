//! The end of a runner's process.

use process_runner::{Output, Termination};
use std::time::Duration;

/// The way in which a runner's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunnerExit {
    /// It exited with this code.
    Exited(u32),
    /// This signal ended it.
    Signaled(i32),
    /// The time limit ended it. Holds the limit.
    TimedOut(Duration),
    /// The caller ended it.
    Cancelled,
    /// The system did not tell.
    Unknown,
}

impl RunnerExit {
    /// Returns how a step's process ended. `run_limit` is that of the whole run, which a message names: the
    /// step itself had only what was left of it.
    pub(crate) fn new(output: &Output, run_limit: Duration) -> Self {
        match output.termination {
            Termination::Exited { code } => Self::Exited(code),
            Termination::Signaled { signal, .. } => Self::Signaled(signal),
            Termination::TimedOut { .. } => Self::TimedOut(run_limit),
            Termination::Cancelled { .. } => Self::Cancelled,
            _ => Self::Unknown,
        }
    }
}
