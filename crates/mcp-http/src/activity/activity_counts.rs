//! The activity of one caller, of one tool or of all, in one piece of time.

use super::latency::LatencyCounts;
use core_tools::mcp::{CallRecord, Outcome};
use std::time::Duration;

/// The counts of one span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActivityCounts {
    /// Calls that did their work.
    pub(crate) ok: u32,
    /// Calls that ran and failed.
    pub(crate) failed: u32,
    /// Calls and requests that were not run.
    pub(crate) refused: u32,
    /// The durations of the calls that ran.
    pub(crate) latency: LatencyCounts,
    /// The longest of them.
    pub(crate) slowest: Duration,
    /// The CPU time of programs.
    pub(crate) cpu: Duration,
    /// The most memory that the programs had when they were looked at, in bytes.
    pub(crate) memory: u64,
    /// The most programs that ran when they were looked at.
    pub(crate) programs: usize,
}

impl ActivityCounts {
    /// Counts a call that has ended, or was not run.
    pub(super) fn record(&mut self, record: &CallRecord<'_>) {
        let count = match record.outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::Failed => &mut self.failed,
            Outcome::NotRun => {
                self.refused = self.refused.saturating_add(1);
                return;
            }
        };
        *count = count.saturating_add(1);
        self.latency.add(record.duration);
        self.slowest = self.slowest.max(record.duration);
    }

    /// Counts what programs have used since they were looked at before, and use now.
    pub(super) fn sample(&mut self, cpu: Duration, memory: u64, programs: usize) {
        self.cpu += cpu;
        self.memory = self.memory.max(memory);
        self.programs = self.programs.max(programs);
    }

    /// Adds another piece of time.
    pub(super) fn merge(&mut self, other: &Self) {
        self.ok = self.ok.saturating_add(other.ok);
        self.failed = self.failed.saturating_add(other.failed);
        self.refused = self.refused.saturating_add(other.refused);
        self.latency.merge(&other.latency);
        self.slowest = self.slowest.max(other.slowest);
        self.sample(other.cpu, other.memory, other.programs);
    }

    /// Returns the number of calls that ran.
    pub(crate) fn ran(&self) -> u32 {
        self.ok.saturating_add(self.failed)
    }
}
