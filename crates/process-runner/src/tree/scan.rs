//! A search for the processes of runs: the query, the members found, and the answer.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::leader_hold::ProcessStamp;
use super::run_id::RunToken;

/// A query for one pass over all processes.
///
/// `by_session` and `by_marker` return an index that the caller chose, by which it knows its runs again.
pub(crate) struct ScanQuery<'a> {
    /// Processes that started before this ([`start_time`](super::start_time)) belong to no run. Their environment
    /// is not read.
    pub(crate) started_since: u64,
    /// Returns the run whose session this is.
    pub(crate) by_session: &'a dyn Fn(Pid) -> Option<usize>,
    /// Returns the run whose orphan this process is, by its pid and the time of its start.
    pub(crate) by_adoption: &'a dyn Fn(Pid, u64) -> Option<usize>,
    /// The [processes that adopt](super::adopters) the orphans of runs, this process first; empty if none does. Their
    /// other descendants are then searched for as well, and only they have an environment of interest.
    pub(crate) adopters: &'a [Pid],
    /// Returns the run whose marker has this token, if a child of this process may be of that run.
    pub(crate) by_marker: &'a dyn Fn(RunToken, Option<Pid>) -> Option<usize>,
}

impl ScanQuery<'_> {
    /// Returns true if the process with this parent was adopted.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only scans of /proc ask"))]
    pub(super) fn is_adopter(&self, parent: Option<Pid>) -> bool {
        parent.is_some_and(|parent| self.adopters.contains(&parent))
    }
}

/// A living process that belongs to a run and is not its leader.
#[derive(Debug)]
pub(crate) struct TreeMember {
    /// The index that the [`ScanQuery`] returned.
    pub(crate) owner: usize,
    pub(crate) pid: Pid,
    pub(crate) group: Option<Pid>,
    pub(crate) name: String,
    pub(crate) parent: Option<Pid>,
    /// The time of its start in clock ticks since the system started.
    pub(crate) start_ticks: u64,
    /// True if it runs, or waits for a processor or a disk.
    pub(crate) busy: bool,
    /// Pins the process, where the kernel has pidfds.
    pub(super) pidfd: Option<OwnedFd>,
}

impl TreeMember {
    /// Sends `signal`. Returns true if it was sent, or if the process is gone.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        // By the pidfd where there is one: the pid may belong to another process by now.
        let sent = match &self.pidfd {
            #[cfg(target_os = "linux")]
            Some(pidfd) => rustix::process::pidfd_send_signal(pidfd, signal),
            _ => rustix::process::kill_process(self.pid, signal),
        };
        matches!(sent, Ok(()) | Err(Errno::SRCH))
    }

    pub(crate) fn stamp(&self) -> ProcessStamp {
        ProcessStamp { pid: self.pid.as_raw_nonzero().get(), start_ticks: self.start_ticks }
    }

    pub(crate) fn pid_number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }
}

/// The answer of one pass over all processes.
#[derive(Debug, Default)]
pub(crate) struct ProcessScan {
    pub(crate) members: Vec<TreeMember>,
    /// The children of the adopter that show no run. Their owner means nothing.
    pub(crate) orphans: Vec<TreeMember>,
    /// The children of the adopter that have ended and were not reaped.
    pub(crate) zombies: Vec<Pid>,
    /// True if a process was in the middle of `execve(2)` and may be a member. The pass must be repeated.
    pub(crate) undecided: bool,
}
