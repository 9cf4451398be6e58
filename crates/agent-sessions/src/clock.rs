//! Times: as they are stored, as they are shown, and as agents and callers write them.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    as_millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Converts a duration into whole milliseconds.
pub(crate) fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a time in milliseconds since 1970 as RFC 3339, in UTC, to the millisecond.
///
/// All texts have the same length, so that later times are greater texts.
pub(crate) fn rfc3339(at_ms: u64) -> String {
    let timestamp = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    // A time beyond the calendar is later than all others, and not an error.
    format!("{:.3}", timestamp.unwrap_or(Timestamp::MAX))
}

/// Returns the next moment after `now_ms` at which a clock in `zone` shows `time`, in milliseconds since 1970.
///
/// Without a zone it is the machine's own. Returns nothing if the time cannot be read or the system does not know the
/// zone.
pub(crate) fn next_time_of_day(time: &str, zone: Option<&str>, now_ms: u64) -> Option<u64> {
    let time: Time = time.parse().ok()?;
    let zone = match zone {
        Some(name) => TimeZone::get(name).ok()?,
        None => TimeZone::system(),
    };
    let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
    let today = now.to_zoned(zone.clone()).date();
    // Tomorrow by the calendar and not in 24 hours: a day on which the clocks change has 23 or 25.
    [today, today.tomorrow().ok()?].into_iter().find_map(|date| {
        let moment = zone.to_timestamp(date.to_datetime(time)).ok()?;
        if moment <= now { None } else { u64::try_from(moment.as_millisecond()).ok() }
    })
}

/// Reads the `since` of a caller: `90s`, `10m`, `2h` or `1d` ago, or a time or date of RFC 3339 in UTC.
///
/// The answer is the beginning of an [`rfc3339`] text: a time is meant if its text is not less.
pub(crate) fn parse_since(text: &str, now_ms: u64) -> Option<String> {
    let text = text.trim();
    if let Some((number, unit)) = text.len().checked_sub(1).and_then(|at| text.split_at_checked(at))
        && let Ok(number) = number.parse::<u64>()
        && let Some((_, seconds)) =
            [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)].iter().find(|(name, _)| *name == unit)
    {
        return Some(rfc3339(now_ms.saturating_sub(number.saturating_mul(seconds * 1000))));
    }
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = bytes.iter().take(shape.len()).zip(shape).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        wanted => byte == wanted,
    });
    // Only the form is checked. The text is compared and not computed with, so `2026-02-31` does no harm.
    // A date alone has 10 bytes, a time to the minute 16.
    if !fits || bytes.len() < 10 || !matches!(bytes.len(), 10 | 16..) {
        return None;
    }
    let (time, rest) = text.split_at(bytes.len().min(shape.len()));
    let fraction = rest.strip_suffix('Z').unwrap_or(rest);
    let is_fraction =
        fraction.strip_prefix('.').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    (fraction.is_empty() || is_fraction).then(|| format!("{}{fraction}", time.replace(' ', "T")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-11-21, 22:37 UTC.
    const NOW: u64 = 1_763_764_620_007;

    #[test]
    fn a_time_is_shown_to_the_millisecond() {
        assert_eq!(rfc3339(NOW), "2025-11-21T22:37:00.007Z");
    }

    #[test]
    fn a_time_of_day_is_its_next_occurrence_in_the_zone() {
        let next = |time: &str, zone: &str, now| next_time_of_day(time, Some(zone), now).map(rfc3339);
        assert_eq!(next("23:00", "UTC", NOW).unwrap(), "2025-11-21T23:00:00.000Z");
        assert_eq!(next("22:37", "UTC", NOW).unwrap(), "2025-11-22T22:37:00.000Z", "that minute has begun");
        assert_eq!(next("15:30", "No/Where", NOW), None);
        assert_eq!(next("25:00", "UTC", NOW), None);
        assert!(next_time_of_day("12:00", None, NOW).is_some_and(|at| at > NOW));
        if TimeZone::get("Europe/Rome").is_ok() {
            assert_eq!(next("15:00", "Europe/Rome", NOW).unwrap(), "2025-11-22T14:00:00.000Z");
            // The clocks went back in the night of 26 October 2025.
            let before = next("15:00", "Europe/Rome", 1_761_400_800_000 + 1);
            assert_eq!(before.unwrap(), "2025-10-26T14:00:00.000Z");
        }
    }

    #[test]
    fn since_is_how_long_ago_or_a_time() {
        assert_eq!(parse_since("90s", NOW).unwrap(), rfc3339(NOW - 90_000));
        assert_eq!(parse_since("2h", NOW).unwrap(), rfc3339(NOW - 7_200_000));
        for (text, read) in [
            ("2025-11-21", "2025-11-21"),
            ("2025-11-21T22:37:00Z", "2025-11-21T22:37:00"),
            ("2025-11-21 22:37", "2025-11-21T22:37"),
            ("2025-11-21T22:37:00.5Z", "2025-11-21T22:37:00.5"),
        ] {
            assert_eq!(parse_since(text, NOW).as_deref(), Some(read));
        }
        for wrong in ["yesterday", "5", "", "ä", "2025-11-21T22:37:00+02:00", "2025-1-1", "-5m", "1y"] {
            assert_eq!(parse_since(wrong, NOW), None, "{wrong}");
        }
    }
}
