//! Systems on which no process adopts the orphans of others.

use std::io;
#[cfg(unix)]
use std::sync::Arc;

#[cfg(unix)]
use rustix::process::Pid;

#[cfg(unix)]
use super::leader::ProcessLeader;

/// See `adoption.rs`.
#[cfg(unix)]
#[allow(dead_code, reason = "as in `adoption.rs`")]
pub(crate) enum Attribution {
    Undecided,
    OwnChild,
    Run(Arc<ProcessLeader>),
    Daemon,
    Unknown,
}

pub(crate) fn adopt_orphans() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn adopts_orphans() -> bool {
    false
}

#[cfg(unix)]
pub(crate) fn adopters() -> Vec<Pid> {
    Vec::new()
}

pub(crate) fn may_have_orphans() -> bool {
    false
}

pub(crate) fn thread_has_children() -> bool {
    false
}

#[cfg(unix)]
pub(super) struct StartTicket;

#[cfg(unix)]
impl StartTicket {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn started(self, _leader: &Arc<ProcessLeader>) {}
}

#[cfg(unix)]
pub(crate) fn start_bound() -> u64 {
    0
}

#[cfg(unix)]
pub(crate) fn first_run() -> Option<u64> {
    None
}

#[cfg(unix)]
pub(crate) fn is_adopted_by(_leader: &ProcessLeader, _adopter: Option<Pid>) -> bool {
    false
}

#[cfg(unix)]
pub(crate) fn attribute(_pid: Pid, _parent: Option<Pid>, _start_ticks: u64, _first_seen: u64) -> Attribution {
    Attribution::OwnChild
}

#[cfg(unix)]
pub(crate) fn reap_orphan(_pid: Pid) {}

#[cfg(unix)]
pub(crate) fn reap_orphans() {}

#[cfg(unix)]
pub(crate) fn run_leaders() -> Vec<Arc<ProcessLeader>> {
    Vec::new()
}

/// Stops nothing: there are no PID namespaces.
#[cfg(unix)]
pub(crate) enum FrozenNamespace {}

#[cfg(unix)]
pub(crate) fn freeze_namespace(_init: Pid) -> Option<FrozenNamespace> {
    None
}

/// Does nothing: no namespaces are kept here.
pub(crate) fn release_owner(_name: &str) {}
