//! What one server gives at most.

use std::time::Duration;

/// Bounds on every call. The tools have narrower ones of their own and say so when they bite; these hold
/// whatever a tool does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Calls that run at once; further ones wait their turn. 64 by default.
    pub max_concurrent_calls: usize,
    /// A call that takes longer is ended. 120 s by default; tools that take a time limit as a parameter
    /// are bounded by [`Self::max_timeout`] instead.
    pub call_timeout: Duration,
    /// The longest time limit a caller may ask for. 600 s by default.
    pub max_timeout: Duration,
    /// The longest answer, in bytes of text or of JSON. 4 MiB by default; the tools' own defaults are
    /// around 40 KB.
    pub max_answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent_calls: 64,
            call_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            max_answer_bytes: 4 << 20,
        }
    }
}
