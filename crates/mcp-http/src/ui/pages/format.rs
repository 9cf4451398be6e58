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
        _ => format!("{} d", seconds / 86_400),
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
        assert_eq!(truncated("äöü", 2), "äö…");
        assert_eq!(
            flame_graph("trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg"),
            "node, process 4711, cpu, 2026-11-22 12:03:04 UTC"
        );
        assert_eq!(flame_graph("trace-x.svg"), "trace-x.svg");
    }
}
