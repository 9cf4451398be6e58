//! Limits as they are configured, and the answer to a caller who is over one.

use server_setup::config::HttpTable;
use std::time::Duration;

/// The limits of one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallerLimits {
    /// Requests in a second; the requests of two seconds are saved up.
    pub(crate) calls_per_second: u64,
    /// Calls that run at once.
    pub(crate) calls_in_flight: u64,
    /// Calls that wait for a permit.
    pub(crate) queue: u64,
    /// The time that a call waits for a permit.
    pub(crate) queue_timeout: Duration,
    /// Bytes in a minute, sent and received.
    pub(crate) bytes_per_minute: u64,
    /// Programs that run at once, in calls and in the background.
    pub(crate) processes: u64,
}

/// The limits of all callers together, beside the calls that run at once: those permits are the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLimits {
    /// Calls that wait for a permit.
    pub(crate) queue: u64,
    /// Bytes in a second, sent and received; the bytes of two seconds are saved up.
    pub(crate) bytes_per_second: u64,
    /// Programs that run at once.
    pub(crate) processes: u64,
    /// The part of the calls at once that calls which run a program leave to others.
    pub(crate) reserved_calls: u64,
}

/// A refusal that holds for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitRejection {
    /// The limit that was reached, in words.
    pub(crate) reason: String,
    /// The time after which the caller may try again.
    pub(crate) retry_after: Duration,
}

impl CallerLimits {
    /// Returns the limits of callers whose token has none of its own.
    pub(crate) fn from_config(http: &HttpTable) -> Self {
        Self {
            calls_per_second: *http.calls_per_second,
            calls_in_flight: *http.calls_in_flight,
            queue: *http.queue,
            queue_timeout: Duration::from_millis(*http.queue_ms),
            bytes_per_minute: *http.bytes_per_minute,
            processes: *http.processes,
        }
    }
}
