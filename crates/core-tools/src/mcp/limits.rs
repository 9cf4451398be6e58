//! The bounds that a host puts on every call.

use std::time::Duration;

/// Bounds on every call. The tools have narrower ones of their own, and name them when they apply. These bounds hold
/// whatever a tool does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostLimits {
    /// Calls that run at once; further ones wait for a permit ([`CallPermits`](super::CallPermits)). 64 by default.
    pub max_concurrent_calls: usize,
    /// The deadline of a call. 120 s by default; tools that take a time limit as a parameter are bounded by
    /// [`Self::max_timeout`] instead.
    pub call_timeout: Duration,
    /// The longest time limit that a caller may ask for. 600 s by default.
    pub max_timeout: Duration,
    /// The longest answer, in bytes of text or of JSON. 4 MiB by default; the tools' own defaults are
    /// around 40 KB.
    pub max_answer_bytes: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            max_concurrent_calls: 64,
            call_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            max_answer_bytes: 4 << 20,
        }
    }
}
