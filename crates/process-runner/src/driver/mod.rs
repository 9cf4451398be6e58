//! Takes one started program to its outcome.
//!
//! *Running -> (Terminating ->) exit seen, leader unreaped -> Draining -> Ending -> reaped -> outcome.*
//! Each run has one task. Everything it has found is kept in [`RunState`], outside any future that a caller might
//! drop. The leader is reaped last: until then its pid pins the process group and the session that are signalled.

mod deadline;
mod output;
mod phase;
mod pipe;
mod run_loop;
mod run_state;
mod stdin_copy;

pub(crate) use run_loop::RunDriver;
pub(crate) use run_state::{DriverResult, RunState, StopRequest};
