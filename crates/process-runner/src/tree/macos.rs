//! macOS and other Unix: only the process group is known.
//!
//! There is no `/proc`, the environment of protected binaries cannot be read, and a pid cannot be pinned. So
//! a process that leaves the group escapes, and [`Containment::Group`] says so.

use std::os::fd::AsFd;

use rustix::process::{Pid, Signal};

use crate::outcome::Containment;

pub(crate) fn containment(_marked: bool) -> Containment {
    Containment::Group
}

/// Whether the holders of a pipe can be told from others.
pub(crate) const SEES_HOLDERS: bool = false;

/// See `linux.rs`.
pub(crate) struct Search<'a> {
    pub(crate) since: u64,
    pub(crate) by_session: &'a dyn Fn(Pid) -> Option<usize>,
    pub(crate) prefix: &'a str,
    pub(crate) by_marker: &'a dyn Fn(u64) -> Option<usize>,
}

/// A process found by [`scan`], of which there is none here.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) owner: usize,
    pub(crate) pid: Pid,
    pub(crate) group: Option<Pid>,
    pub(crate) name: String,
    pub(crate) busy: bool,
}

impl Member {
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        rustix::process::kill_process(self.pid, signal).is_ok()
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }
}

/// `None`: nobody can be looked for.
pub(crate) fn scan(search: &Search<'_>) -> Option<Vec<Member>> {
    let _ = (search.since, search.by_session, search.prefix, search.by_marker);
    None
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
