//! The capacity that all callers share: permits, the queue and the bytes of a second.

use super::caller_limits::ServerLimits;
use core_tools::mcp::{CallPermits, TokenBucket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The capacity of the server.
#[derive(Debug)]
pub(super) struct ServerCapacity {
    pub(super) limits: ServerLimits,
    /// The host's, so that a call which holds one waits for no other.
    pub(super) call_permits: CallPermits,
    pub(super) program_permits: Arc<Semaphore>,
    /// For calls that run a program, fewer than `call_permits`: the rest is left to calls that end soon.
    pub(super) program_call_permits: Arc<Semaphore>,
    /// The number of these.
    pub(super) max_program_calls: u64,
    /// For parsing large messages: half of the processors, so that the others answer the callers of small ones.
    pub(super) parse_permits: Arc<Semaphore>,
    usage: Mutex<ServerUsage>,
}

/// The use that all callers together make of it.
#[derive(Debug)]
pub(super) struct ServerUsage {
    pub(super) bytes: TokenBucket,
    /// Calls that wait for a permit.
    pub(super) queued: u64,
    /// The number of callers among whom the bytes are shared, and when they were counted.
    pub(super) active_callers: (usize, Instant),
}

impl ServerCapacity {
    /// Makes a server that is not in use.
    pub(super) fn new(limits: ServerLimits, call_permits: CallPermits) -> Self {
        let now = tokio::time::Instant::now().into_std();
        let processors = std::thread::available_parallelism().map_or(2, |count| count.get().max(2) as u64);
        let saved_up = limits.bytes_per_second.saturating_mul(2);
        let bytes = TokenBucket::new(saved_up, limits.bytes_per_second, Duration::from_secs(1), now);
        let calls = u64::from(call_permits.total());
        // A server of few calls would otherwise run no program.
        let max_program_calls = calls - limits.reserved_calls.min(calls / 4);
        Self {
            limits,
            program_call_permits: semaphore(max_program_calls),
            max_program_calls,
            call_permits,
            program_permits: semaphore(limits.processes),
            parse_permits: semaphore(processors / 2),
            usage: Mutex::new(ServerUsage { bytes, queued: 0, active_callers: (1, now) }),
        }
    }

    /// Locks the usage. The lock of an account is taken before this one, never after.
    pub(super) fn usage(&self) -> MutexGuard<'_, ServerUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a semaphore of so many permits; tokio's has room for fewer than a configuration may name.
pub(super) fn semaphore(permits: u64) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(permits).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)))
}
