//! The resources that a leader keeps until the processes of its run have ended.

use std::fmt::Debug;

/// A process, by its pid and the time of its start: a pid alone may be given to another process later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProcessStamp {
    pub(crate) pid: i32,
    /// The time of the start in clock ticks since the system started.
    pub(crate) start_ticks: u64,
}

/// A value that lasts until the processes of a run have ended, and hears of what is found of them.
pub(crate) trait LeaderHold: Debug + Send {
    /// Called for an orphan of the run that only this process's adoption shows.
    fn adopted(&self, process: ProcessStamp);
}
