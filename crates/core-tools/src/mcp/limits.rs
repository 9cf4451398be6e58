//! What one server gives at most.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
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

/// What a call needs of what is shared by all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// One of the places for calls that run at once.
    pub place: bool,
    /// One of the places for programs: it runs one until it ends.
    pub program: bool,
}

/// Where what outlives its call gets a place among the programs that its caller may run.
#[derive(Clone)]
pub struct Programs(Arc<Reserve>);

type Reserve = dyn Fn() -> Result<Held, String> + Send + Sync;

/// A place that is held, until it is dropped.
pub type Held = Box<dyn Any + Send + Sync>;

impl Programs {
    /// `reserve` gives a place at once, or says why there is none and what to do.
    pub fn new(reserve: impl Fn() -> Result<Held, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reserve))
    }

    /// A place, if there is one now.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub fn reserve(&self) -> Result<Held, String> {
        (self.0)()
    }
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Programs")
    }
}
