//! Numbers and times in words.

use std::time::{Duration, SystemTime};

/// Cuts a text to so many characters.
pub(super) fn truncated(text: &str, max_chars: usize) -> String {
    let mut short: String = text.chars().take(max_chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Writes a moment as the time of its day, or how long ago it was.
pub(super) fn moment(at: SystemTime) -> String {
    let ago = at.elapsed().unwrap_or_default();
    if ago > Duration::from_secs(12 * 3600) {
        return format!("{} ago", duration(ago));
    }
    // The page is in UTC, as the audit is, because the zone of the browser is not known here.
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Writes a duration in its largest units.
pub(super) fn duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 if millis == 0 => format!("{} µs", duration.as_micros()),
        0 => format!("{millis} ms"),
        1..=59 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

/// Writes a number of bytes.
pub(super) fn bytes(bytes: usize) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Writes a number of processors.
pub(super) fn processors(processors: f64) -> String {
    match processors {
        0.0 => "0 processors".to_owned(),
        _ if (processors - 1.0).abs() < 0.05 => "1 processor".to_owned(),
        _ if processors < 0.1 => format!("{processors:.2} processors"),
        _ => format!("{processors:.1} processors"),
    }
}

/// Writes a number with as many digits as it needs.
pub(super) fn number(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 || number.fract() < f64::EPSILON => format!("{}", (number * 10.0).round() / 10.0),
        _ => format!("{}", (number * 100.0).round() / 100.0),
    }
}

/// Writes an amount of memory or disk space.
pub(super) fn space(bytes: u64) -> String {
    let gigabytes = crate::activity::as_f64(bytes) / 1e9;
    match bytes {
        0..=999_999_999 => format!("{} MB", bytes / 1_000_000),
        _ if gigabytes < 100.0 => format!("{gigabytes:.1} GB"),
        _ => format!("{gigabytes:.0} GB"),
    }
}

/// Writes a time from now on in its largest unit, rounded.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        7200..172_800 => format!("{} h", (seconds + 1800) / 3600),
        _ => format!("{} days", (seconds + 43_200) / 86_400),
    }
}

/// Writes the day of a time, with its weekday, in UTC.
pub(super) fn day(at: SystemTime) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let days = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    // The first of January 1970 was a Thursday.
    let weekday = WEEKDAYS.get(usize::try_from(days % 7).unwrap_or(0)).copied().unwrap_or_default();
    let date = audit_log::timestamp(at);
    format!("{weekday} {}", date.split('T').next().unwrap_or_default())
}

/// Writes the day of a time, with its weekday, and its minute, in UTC.
pub(super) fn day_and_time(at: SystemTime) -> String {
    let time = audit_log::timestamp(at);
    let minute = time.split('T').nth(1).and_then(|time| time.get(..5)).unwrap_or_default();
    format!("{} {minute}", day(at))
}

/// Describes a flame graph by its file name, `trace-2026-11-22T120304.123-node-4711-cpu-….svg`.
pub(super) fn flame_graph(name: &str) -> String {
    let words = || {
        let rest = name.strip_prefix("trace-")?;
        let (date, time) = (rest.get(..10)?, rest.get(11..17)?);
        let mut parts = rest.get(17..)?.split('-').skip(1);
        let (runtime, pid, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let (hour, minute, second) = (time.get(..2)?, time.get(2..4)?, time.get(4..)?);
        Some(format!("{runtime}, process {pid}, {kind}, {date} {hour}:{minute}:{second} UTC"))
    };
    words().unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_units_of_their_size() {
        for (millis, words) in [
            (0, "0 µs"),
            (12, "12 ms"),
            (3_250, "3.2 s"),
            (250_000, "4 min 10 s"),
            (7_260_000, "2 h 1 min"),
            (200_000_000, "2 d"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), words);
        }
        assert_eq!(bytes(12_345), "12 KB");
        assert_eq!([0.0, 0.123, 3.0, 12.34, 1234.6].map(number), ["0", "0.12", "3", "12.3", "1235"]);
        assert_eq!(
            [0.0, 0.05, 1.0, 1.94].map(processors).join(" "),
            "0 processors 0.05 processors 1 processor 1.9 processors"
        );
        assert_eq!([12_000_000, 3_210_000_000].map(space), ["12 MB", "3.2 GB"]);
        assert_eq!(span(3 * 86_400), "3 days");
        assert_eq!(day(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_737_600)), "Fri 2026-11-27");
        assert_eq!(
            day_and_time(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_737_600 + 3660)),
            "Fri 2026-11-27 01:01"
        );
        assert_eq!(truncated("äöü", 2), "äö…");
        assert_eq!(
            flame_graph("trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg"),
            "node, process 4711, cpu, 2026-11-22 12:03:04 UTC"
        );
        assert_eq!(flame_graph("trace-x.svg"), "trace-x.svg");
    }
}
