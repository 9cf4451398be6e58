//! Times as the audit writes them, and as an operator gives them.

use jiff::{Timestamp, civil, tz::TimeZone};
use std::time::{Duration, SystemTime};

/// The error for a text that is no time, with the text.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a time; expected 90s, 15m, 12h, 30d or 8w ago, 2026-11-24, or 2026-11-24T10:00:00Z")]
pub struct TimeError(String);

/// Returns `time` as RFC 3339 has it, in UTC, to the millisecond: texts of this form are in the order of their times.
pub fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    // Rounded down, so that no record is later than a look at the clock after it.
    let time = Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time);
    format!("{time:.3}")
}

/// Parses a time as an operator gives it: a span before `now` (`90s`, `15m`, `12h`, `30d`, `8w`), a day in UTC, which is
/// its beginning, or a time of RFC 3339. Returns it as [`timestamp`] writes it.
///
/// # Errors
/// The text is none of these.
pub fn parse_time(text: &str, now: SystemTime) -> Result<String, TimeError> {
    let wrong = || TimeError(text.to_owned());
    if let Some(span) = parse_span(text) {
        return Ok(timestamp(now.checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH)));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(timestamp(time.into()));
    }
    let day: civil::Date = text.parse().map_err(|_| wrong())?;
    let begin = day.to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
    Ok(timestamp(begin.timestamp().into()))
}

/// Parses a time of RFC 3339.
pub fn instant(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

/// Parses a span of time in one unit: `90s`, `15m`, `12h`, `30d` or `8w`.
pub fn parse_span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_days_and_instants() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_763_764_620_123);
        assert_eq!(timestamp(now), "2025-11-21T22:37:00.123Z");
        for (given, found) in [
            ("90s", "2025-11-21T22:35:30.123Z"),
            ("2d", "2025-11-19T22:37:00.123Z"),
            ("2025-11-01", "2025-11-01T00:00:00.000Z"),
            ("2025-11-01T10:00:00+02:00", "2025-11-01T08:00:00.000Z"),
        ] {
            assert_eq!(parse_time(given, now).unwrap(), found);
        }
        for wrong in ["", "d", "yesterday", "2025-13-01", "-1d", "99999999999999999999w"] {
            assert!(parse_time(wrong, now).is_err(), "{wrong}");
        }
    }
}
