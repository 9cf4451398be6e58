//! The state of the processes that a finished run has left alive.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::outcome::LeftoverProcess;
use crate::tree::ProcessLeader;

/// The state that the clones of a [`LeftoverTree`] and the reaper share.
#[derive(Debug)]
pub(crate) struct LeftoverState {
    /// The leader has ended. It is reaped last, so that its session cannot become another's.
    pub(crate) leader: Arc<ProcessLeader>,
    pub(crate) label: String,
    pub(crate) started: Instant,
    processes: Mutex<Vec<LeftoverProcess>>,
}

impl LeftoverState {
    pub(crate) fn new(
        leader: Arc<ProcessLeader>,
        label: String,
        started: Instant,
        processes: Vec<LeftoverProcess>,
    ) -> Self {
        Self { leader, label, started, processes: Mutex::new(processes) }
    }

    /// Returns the processes that were alive when they were last looked for.
    pub(crate) fn processes(&self) -> Vec<LeftoverProcess> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg_attr(not(unix), allow(dead_code, reason = "job objects leave nothing alive"))]
    pub(crate) fn set_processes(&self, processes: Vec<LeftoverProcess>) {
        *self.processes.lock().unwrap_or_else(PoisonError::into_inner) = processes;
    }
}
