//! macOS and other Unix: only the process group is known.
//!
//! There is no `/proc`, the environment of protected binaries cannot be read, and a pid cannot be pinned. So
//! a process that leaves the group escapes, and [`Containment::Group`] says so.

use std::os::fd::AsFd;

use rustix::process::Pid;

use super::{Scan, Search};
use crate::outcome::Containment;

pub(crate) fn containment(_marked: bool) -> Containment {
    Containment::Group
}

/// Whether the holders of a pipe can be told from others.
pub(crate) const SEES_HOLDERS: bool = false;

/// Nobody can be looked for.
pub(crate) fn scan(search: &Search<'_>) -> Scan {
    let _ = (search.since, search.by_session, search.prefix, search.by_marker);
    Scan::default()
}

pub(crate) fn start_time(_pid: Pid) -> Option<u64> {
    None
}

pub(crate) fn pipe_id(_pipe: impl AsFd) -> Option<u64> {
    None
}

pub(crate) fn holds(_pid: Pid, _pipes: &[u64]) -> bool {
    false
}
