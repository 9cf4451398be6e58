//! [`CpuProfile`], the CPU profile that every parser returns, and [`MalformedProfile`], their error.

use crate::trace::call_tree::CallTree;

/// A CPU profile.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CpuProfile {
    /// The calls, weighted in microseconds, without idle time.
    pub tree: CallTree,
    /// The number of samples.
    pub samples: u64,
    /// The interval between two samples, in microseconds, where the profile states it.
    pub interval_us: Option<u64>,
    /// The time in which nothing ran, in microseconds, where the profiler measures it.
    pub idle_us: Option<u64>,
    /// The time in which garbage was collected, in microseconds, where the profiler measures it.
    pub gc_us: Option<u64>,
}

/// The error for a profile that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format}: {reason}")]
#[non_exhaustive]
pub struct MalformedProfile {
    /// The format that was expected.
    pub format: &'static str,
    /// The reason.
    pub reason: String,
}

impl MalformedProfile {
    /// Creates an error for `format`.
    pub(super) fn new(format: &'static str, reason: impl Into<String>) -> Self {
        Self { format, reason: reason.into() }
    }
}
