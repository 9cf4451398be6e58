//! The limits of a role's calls.

/// The limits of a role's calls, on top of the server's own. `None` adds no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleLimits {
    /// The most calls in a minute, all tools together.
    pub calls_per_minute: Option<u64>,
    /// The most calls that run at once.
    pub concurrent_calls: Option<u64>,
    /// The most bytes of one call's arguments as JSON.
    pub max_argument_bytes: Option<u64>,
    /// The longest time limit in seconds that a call may ask for or run to.
    pub max_seconds: Option<u64>,
    /// The most memory in MiB that the programs of one caller use together.
    pub max_memory_mib: Option<u64>,
    /// The most processes and threads that the programs of one caller have together.
    pub max_processes: Option<u64>,
    /// The share of the processors for the programs of one caller, from 1 to 10000; programs without this limit have
    /// 100.
    pub cpu_weight: Option<u64>,
}

impl RoleLimits {
    /// Combines both: each limit is the lower one.
    #[must_use]
    pub fn narrowed_by(self, other: Self) -> Self {
        let lower = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            // `None` is no limit at all, so the other one counts.
            (one, other) => one.or(other),
        };
        Self {
            calls_per_minute: lower(self.calls_per_minute, other.calls_per_minute),
            concurrent_calls: lower(self.concurrent_calls, other.concurrent_calls),
            max_argument_bytes: lower(self.max_argument_bytes, other.max_argument_bytes),
            max_seconds: lower(self.max_seconds, other.max_seconds),
            max_memory_mib: lower(self.max_memory_mib, other.max_memory_mib),
            max_processes: lower(self.max_processes, other.max_processes),
            cpu_weight: lower(self.cpu_weight, other.cpu_weight),
        }
    }
}
