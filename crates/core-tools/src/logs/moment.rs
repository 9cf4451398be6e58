//! Points in time, as log lines and callers write them.

use std::time::{Duration, SystemTime};

const NANOS: i128 = 1_000_000_000;

/// A point in time, in nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i128);

impl Moment {
    pub(super) fn now() -> Self {
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)),
            Err(_) => Self(0),
        }
    }

    pub(super) fn before(self, duration: Duration) -> Self {
        Self(self.0 - i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX / 2))
    }

    /// A number since 1970: seconds, milli-, micro- or nanoseconds, as its size says. Each reading covers the
    /// years from 1973 to 5138.
    pub(super) fn from_number(number: i128) -> Option<Self> {
        Some(Self(match number.unsigned_abs() {
            0 => return None,
            1..100_000_000_000 => number * NANOS,
            100_000_000_000..100_000_000_000_000 => number * 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => number * 1_000,
            100_000_000_000_000_000..=9_000_000_000_000_000_000 => number,
            _ => return None,
        }))
    }

    /// As [`from_number`](Self::from_number), with a fraction, of which microseconds are kept.
    pub(super) fn from_float(number: f64) -> Option<Self> {
        if !number.is_finite() || number.abs() >= 9e18 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, reason = "its range is checked above")]
        if number.abs() < 1e11 && number != 0.0 {
            Some(Self((number * 1e6).round() as i128 * 1_000))
        } else {
            Self::from_number(number.round() as i128)
        }
    }

    /// The moment that the whole of `text` says.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some((moment, used)) = Self::parse_prefix(text.as_bytes()) {
            return (used == text.len()).then_some(moment);
        }
        if let Some((day, 10)) = date(text.as_bytes()).filter(|_| text.len() == 10) {
            return Some(Self(i128::from(day) * 86_400 * NANOS));
        }
        match text.parse::<i128>() {
            Ok(number) => Self::from_number(number),
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                Self::from_float(text.parse().ok()?)
            }
            Err(_) => None,
        }
    }

    /// The date and time that `text` begins with, and how many bytes that is. `2026-11-20T10:00:00Z`, also with
    /// `/` or a space, a fraction behind `.` or `,`, an offset; `20/Nov/2026:10:00:00 +0000`. Without an
    /// offset it is taken for UTC.
    pub(super) fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
        let (day, mut at) = date(text).or_else(|| common_date(text))?;
        if !matches!(text.get(at)?, b'T' | b't' | b' ' | b':') {
            return None;
        }
        at += 1;
        let (seconds, nanos, used) = clock(text.get(at..)?)?;
        at += used;
        let (offset, used) = zone(text.get(at..)?);
        let seconds = i128::from(day) * 86_400 + i128::from(seconds) - i128::from(offset);
        Some((Self(seconds * NANOS + i128::from(nanos)), at + used))
    }
}

impl std::fmt::Display for Moment {
    /// RFC 3339 in UTC, to the millisecond, or finer where it is.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, nanos) = (self.0.div_euclid(NANOS), self.0.rem_euclid(NANOS));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = crate::time::civil(i64::try_from(days).unwrap_or_default());
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:", second / 3600)?;
        write!(f, "{:02}:{:02}.", second / 60 % 60, second % 60)?;
        match nanos {
            _ if nanos % 1_000_000 == 0 => write!(f, "{:03}Z", nanos / 1_000_000),
            _ if nanos % 1_000 == 0 => write!(f, "{:06}Z", nanos / 1_000),
            _ => write!(f, "{nanos:09}Z"),
        }
    }
}

/// What callers write for `since` and `until`: a moment, or how long ago: `90s`, `10m`, `2h`, `1d`.
pub(super) fn parse_bound(text: &str, now: Moment) -> Option<Moment> {
    let text = text.trim();
    if let Some((number, unit)) = text.len().checked_sub(1).and_then(|last| text.split_at_checked(last))
        && let Ok(number) = number.parse::<u32>()
    {
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Moment::parse(text),
        };
        return Some(now.before(Duration::from_secs(u64::from(number) * seconds)));
    }
    Moment::parse(text)
}

/// The whole number of exactly these digits.
fn digits(text: Option<&[u8]>) -> Option<i64> {
    let text = text?;
    let all = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    all.then(|| text.iter().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// `2026-11-20` or `2026/11/20`, as days since 1970.
fn date(text: &[u8]) -> Option<(i64, usize)> {
    let separator = *text.get(4)?;
    if !matches!(separator, b'-' | b'/') || text.get(7) != Some(&separator) {
        return None;
    }
    let (year, month, day) = (digits(text.get(..4))?, digits(text.get(5..7))?, digits(text.get(8..10))?);
    Some((days(year, month, day)?, 10))
}

/// `20/Nov/2026`, as web servers write it.
fn common_date(text: &[u8]) -> Option<(i64, usize)> {
    if text.get(2) != Some(&b'/') || text.get(6) != Some(&b'/') {
        return None;
    }
    let month = month(text.get(3..6)?)?;
    Some((days(digits(text.get(7..11))?, month, digits(text.get(..2))?)?, 11))
}

/// The month of an English abbreviation, from 1.
fn month(name: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    MONTHS.chunks(3).zip(1..).find(|(month, _)| month.eq_ignore_ascii_case(name)).map(|(_, number)| number)
}

fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The inverse of `time::civil`: years begin on 1 March, so that leap days come last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// `10:00:00`, with a fraction behind `.` or `,`: seconds, nanoseconds, bytes.
pub(super) fn clock(text: &[u8]) -> Option<(i64, u32, usize)> {
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') {
        return None;
    }
    let (hour, minute, second) = (digits(text.get(..2))?, digits(text.get(3..5))?, digits(text.get(6..8))?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = hour * 3600 + minute * 60 + second;
    let fraction = match text.get(8) {
        Some(b'.' | b',') => text.get(9..).unwrap_or_default(),
        _ => &[],
    };
    let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return Some((seconds, 0, 8));
    }
    let mut nanos = 0;
    for place in 0..9 {
        let digit = fraction.get(place).filter(|_| place < length).map_or(0, |byte| byte - b'0');
        nanos = nanos * 10 + u32::from(digit);
    }
    Some((seconds, nanos, 9 + length))
}

/// `Z`, `+01:00`, `+0100`, ` +0100` or ` UTC`: seconds east, and bytes.
fn zone(text: &[u8]) -> (i64, usize) {
    let space = usize::from(text.first() == Some(&b' '));
    let rest = text.get(space..).unwrap_or_default();
    let sign = match rest.first() {
        Some(b'Z' | b'z') if space == 0 => return (0, 1),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ if rest.starts_with(b"UTC") || rest.starts_with(b"GMT") => return (0, space + 3),
        _ => return (0, 0),
    };
    let colon = usize::from(rest.get(3) == Some(&b':'));
    match (digits(rest.get(1..3)), digits(rest.get(3 + colon..5 + colon))) {
        (Some(hours @ 0..=23), Some(minutes @ 0..=59)) => {
            (sign * (hours * 3600 + minutes * 60), space + 5 + colon)
        }
        (Some(hours @ 0..=23), None) if space == 0 => (sign * hours * 3600, 3),
        _ => (0, 0),
    }
}

/// How many bytes of a time without a year `text` begins with: `10:00:00`, `Nov 20 10:00:00`. It marks the
/// beginning of an entry, but which day it was is not known.
pub(super) fn clock_prefix(text: &[u8]) -> Option<usize> {
    let date = match month(text.get(..3).unwrap_or_default()) {
        Some(_) if text.get(3) == Some(&b' ') && text.get(6) == Some(&b' ') => 7,
        _ => 0,
    };
    clock(text.get(date..)?).map(|(_, _, used)| date + used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Option<String> {
        Moment::parse(text).map(|moment| moment.to_string())
    }

    #[test]
    fn times_in_the_forms_of_the_loggers_are_one_form() {
        for (text, expected) in [
            ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.123456789Z"),
            ("2026-11-20T10:00:00.1234567Z", "2026-11-20T10:00:00.123456700Z"),
            ("2026-11-20T11:30:00+01:30", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20T02:00:00.5-0800", "2026-11-20T10:00:00.500Z"),
            ("2026-11-20 10:00:00,123", "2026-11-20T10:00:00.123Z"),
            ("2026/11/20 10:00:00", "2026-11-20T10:00:00.000Z"),
            ("20/Nov/2026:10:00:00 +0000", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20 10:00:00 UTC", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20", "2026-11-20T00:00:00.000Z"),
            ("1795168800", "2026-11-20T10:00:00.000Z"),
            ("1795168800123", "2026-11-20T10:00:00.123Z"),
            ("1795168800123456", "2026-11-20T10:00:00.123456Z"),
            ("1795168800123456789", "2026-11-20T10:00:00.123456789Z"),
            ("1795168800.123456", "2026-11-20T10:00:00.123456Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "now", "2026-13-01", "2026-11-20T25:00:00Z", "2026-11-20T10:00:00Zzz", "1.2.3"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn a_bound_may_be_how_long_ago() {
        let now = Moment::parse("2026-11-20T10:00:00Z").unwrap();
        for (text, expected) in [
            ("90s", "2026-11-20T09:58:30.000Z"),
            ("10m", "2026-11-20T09:50:00.000Z"),
            ("2h", "2026-11-20T08:00:00.000Z"),
            ("1d", "2026-11-19T10:00:00.000Z"),
            ("2026-11-20T09:00:00Z", "2026-11-20T09:00:00.000Z"),
        ] {
            assert_eq!(parse_bound(text, now).map(|moment| moment.to_string()).as_deref(), Some(expected));
        }
        for text in ["", "m", "-5m", "5w", "yesterday"] {
            assert_eq!(parse_bound(text, now), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_as_the_same(nanos in -62_000_000_000_000_000_000_i128..250_000_000_000_000_000_000) {
            let moment = Moment(nanos);
            prop_assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}", number in any::<f64>(), whole in any::<i64>()) {
            let _ = Moment::parse(&text);
            let _ = parse_bound(&text, Moment(0));
            let _ = Moment::from_float(number).map(|moment| moment.to_string());
            let _ = Moment::from_number(whole.into()).map(|moment| moment.to_string());
        }
    }
}
