//! Time limits and durations in milliseconds.

use super::error::CommandError;
use std::time::Duration;

/// Returns the duration in whole milliseconds.
pub(super) fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the requested time limit, or `default` where none was requested. The default is lowered to `max`; a
/// request above `max` is an error, so that no caller believes to have time that it does not have.
pub(super) fn effective_timeout(
    requested_ms: Option<u64>,
    default: Duration,
    max: Duration,
) -> Result<Duration, CommandError> {
    match requested_ms.map(Duration::from_millis) {
        Some(requested) if requested > max => {
            Err(CommandError::TimeoutTooLong { requested_ms: requested.as_millis(), max_ms: max.as_millis() })
        }
        Some(requested) => Ok(requested),
        None => Ok(default.min(max)),
    }
}
