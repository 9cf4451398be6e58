//! The number of a run, and the environment marker that is made from it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a run within this process. Its environment marker is made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(pub(crate) u64);

impl RunId {
    /// The number of a helper of our own, which is no run.
    pub(crate) const HELPER: Self = Self(0);

    /// Returns a number that no other run of this process has.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters, and nothing else is published with it.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns `PROCESS_RUNNER_RUN_<this process>_<run>`, the name of the run's environment variable.
    // The number is in the name and not in the value, so that a run within a run carries both markers.
    pub(crate) fn marker(self) -> String {
        format!("{}{}", marker_prefix(), self.0)
    }
}

/// Returns what the names of all markers of this process begin with.
// Drawn at random: a process id is used again by the system, and the markers of an earlier process must not match.
pub(crate) fn marker_prefix() -> &'static str {
    static PREFIX: OnceLock<String> = OnceLock::new();
    PREFIX.get_or_init(|| {
        use std::hash::{BuildHasher, RandomState};
        // The keys of `RandomState` come from the operating system's generator.
        format!("PROCESS_RUNNER_RUN_{:016x}_", RandomState::new().hash_one(std::process::id()))
    })
}
