//! Readers of what profilers write. They do no input or output, and no input makes them panic.

pub mod cpuprofile;
pub mod heap_sampling;
pub mod heap_snapshot;
pub mod histogram;
pub mod jfr;
pub mod perf;
pub mod pprof;
pub mod speedscope;

use super::calls::CallTree;

/// Where time went.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// In microseconds. Idle time is not in it.
    pub tree: CallTree,
    /// Samples taken.
    pub samples: u64,
    /// Between two samples, in microseconds, where the profiler says so.
    pub interval_us: Option<u64>,
    /// In which nothing ran, in microseconds, where the profiler knows.
    pub idle_us: Option<u64>,
    /// In which garbage was collected, in microseconds, where the profiler knows.
    pub gc_us: Option<u64>,
}

/// A profile that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format}: {reason}")]
pub struct Malformed {
    /// What it was to be.
    pub format: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Malformed {
    fn new(format: &'static str, reason: impl Into<String>) -> Self {
        Self { format, reason: reason.into() }
    }
}
