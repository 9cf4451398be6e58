//! Times, as they are kept and as they are shown.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Now, in milliseconds since 1970.
pub(super) fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// As RFC 3339 has it, in UTC, to the millisecond. Later times are greater texts.
pub(super) fn text(at: u64) -> String {
    let seconds = crate::time::rfc3339(UNIX_EPOCH + Duration::from_millis(at));
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), at % 1000)
}

/// What a caller writes: `90s`, `10m`, `2h`, `1d` ago, or a time or date of RFC 3339 in UTC. As the beginning of a
/// [`text`]: the times meant are those whose text is not less.
pub(super) fn since(written: &str, now: u64) -> Option<String> {
    let written = written.trim();
    if let Some((number, unit)) = written.len().checked_sub(1).and_then(|at| written.split_at_checked(at))
        && let Ok(number) = number.parse::<u64>()
        && let Some(unit) =
            [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)].iter().find(|(name, _)| *name == unit)
    {
        return Some(text(now.saturating_sub(number.saturating_mul(unit.1 * 1000))));
    }
    let bytes = written.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    let fits = bytes.iter().take(shape.len()).zip(shape).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        wanted => byte == wanted,
    });
    if !fits || bytes.len() < 10 || !matches!(bytes.len(), 10 | 16..) {
        return None;
    }
    let (time, rest) = written.split_at(bytes.len().min(shape.len()));
    let fraction = rest.strip_suffix('Z').unwrap_or(rest);
    let is_fraction =
        fraction.strip_prefix('.').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    (fraction.is_empty() || is_fraction).then(|| format!("{}{fraction}", time.replace(' ', "T")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_to_the_millisecond() {
        assert_eq!(text(1_763_764_620_007), "2025-11-21T22:37:00.007Z");
    }

    #[test]
    fn since_is_how_long_ago_or_a_time() {
        let now = 1_763_764_620_007;
        assert_eq!(since("90s", now).unwrap(), text(now - 90_000));
        assert_eq!(since("2h", now).unwrap(), text(now - 7_200_000));
        for (written, read) in [
            ("2025-11-21", "2025-11-21"),
            ("2025-11-21T22:37:00Z", "2025-11-21T22:37:00"),
            ("2025-11-21 22:37", "2025-11-21T22:37"),
            ("2025-11-21T22:37:00.5Z", "2025-11-21T22:37:00.5"),
        ] {
            assert_eq!(since(written, now).as_deref(), Some(read));
        }
        for wrong in ["yesterday", "5", "", "ä", "2025-11-21T22:37:00+02:00", "2025-1-1", "-5m", "1y"] {
            assert_eq!(since(wrong, now), None, "{wrong}");
        }
    }
}
