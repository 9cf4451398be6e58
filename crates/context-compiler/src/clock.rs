//! The clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the nanoseconds from 1970 to now. They are compared with the times of files and are never part of a result.
pub(crate) fn now_ns() -> i128 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0))
}
