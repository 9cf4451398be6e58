//! Times as text.

use std::time::{Duration, SystemTime};

/// `time` as RFC 3339 has it, in UTC, to the second: `2026-11-21T22:37:00Z`.
#[cfg_attr(
    not(any(feature = "filesystem", feature = "git", feature = "mcp")),
    allow(dead_code, reason = "the remaining features need the calendar alone")
)]
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        // Rounded down, as after the epoch.
        Err(before) => {
            let before = before.duration() + Duration::from_nanos(999_999_999);
            -i64::try_from(before.as_secs()).unwrap_or(i64::MAX)
        }
    };
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day of the `days`th day after 1970-01-01 in the Gregorian calendar.
///
/// Counted in eras of 400 years, each beginning on 1 March, so that leap days come last.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_date_writes_them() {
        // `date -u -d @N +%FT%TZ`
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_763_764_620, "2025-11-21T22:37:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(rfc3339(SystemTime::UNIX_EPOCH - Duration::from_millis(500)), "1969-12-31T23:59:59Z");
    }
}
