//! Systems without `/proc`, whose processes are not measured while they run.

use std::time::Duration;

use super::ProcessLeader;

/// The resources that the processes of one run use: nothing that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessTimes {
    pub(crate) processes: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) cpu: Duration,
}

impl ProcessTimes {
    /// Returns zeros for each of the leaders.
    pub(crate) fn of_trees(leaders: &[&ProcessLeader]) -> Vec<Self> {
        vec![Self::default(); leaders.len()]
    }
}
