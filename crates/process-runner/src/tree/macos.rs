//! macOS and other Unix: only the process group of a run is known.
//!
//! There is no `/proc`, the environment of protected binaries cannot be read, and a pid cannot be pinned. A
//! process that leaves the group escapes, and [`Containment::Group`] says so.

use std::os::fd::AsFd;

use rustix::process::Pid;

use super::scan::{ProcessScan, ScanQuery};
use crate::outcome::Containment;

pub(crate) fn containment(_marked: bool) -> Containment {
    Containment::Group
}

/// False: the processes that hold a pipe cannot be told from others.
pub(crate) const SEES_HOLDERS: bool = false;

/// Returns an empty answer: there is no way to search.
pub(crate) fn scan(query: &ScanQuery<'_>) -> ProcessScan {
    let _ = (query.started_since, query.by_session, query.by_adoption, query.adopters);
    let _ = query.by_marker;
    ProcessScan::default()
}

pub(crate) fn start_time(_pid: Pid) -> Option<u64> {
    None
}

pub(crate) fn command_line(_pid: Pid) -> Option<String> {
    None
}

pub(crate) fn pipe_id(_pipe: impl AsFd) -> Option<u64> {
    None
}

pub(crate) fn holds_any_pipe(_pid: Pid, _pipes: &[u64]) -> bool {
    false
}
