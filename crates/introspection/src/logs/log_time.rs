//! [`LogTime`]: a point in time, parsed from log lines and from arguments.

use jiff::Timestamp;
use std::time::{Duration, SystemTime};

const NANOS: i128 = 1_000_000_000;

/// A point in time, in nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogTime(i128);

impl LogTime {
    /// The beginning of 1970.
    pub(super) const EPOCH: Self = Self(0);

    /// Returns the current time.
    pub(super) fn now() -> Self {
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)),
            Err(_) => Self(0),
        }
    }

    /// Returns the point in time that is `duration` earlier.
    pub(super) fn before(self, duration: Duration) -> Self {
        Self(self.0 - i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX / 2))
    }

    /// Converts a number of seconds, milli-, micro- or nanoseconds since 1970; its magnitude tells the unit. Each unit
    /// covers the years from 1973 to 5138.
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

    /// Converts a number like [`from_number`](Self::from_number), keeping microseconds of its fraction.
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

    /// Parses the whole of `text`: a date and time, a date, or a number.
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

    /// Parses the date and time that `text` begins with, and returns its length in bytes too.
    ///
    /// Accepts ISO 8601, also with `/` or a space, with a fraction after `.` or `,` and with an offset; the forms of
    /// web servers (`20/Nov/2026:10:00:00 +0000`, `Fri Nov 20 10:00:00.123 2026`), of Java (`20-Nov-2026 10:00:00.123`,
    /// `Nov 20, 2026 10:00:00 AM`), of mail (`Fri, 20 Nov 2026 10:00:00 GMT`) and of Redis
    /// (`20 Nov 2026 10:00:00.123`), `20.11.2026 10:00:00`, and `11/20/2026 10:00:00` where it is clear which number is
    /// the day. A time without an offset counts as UTC; one in a zone whose offset is not known is no time.
    pub(super) fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
        match WrittenTime::parse_prefix(text)? {
            (WrittenTime::Full(moment), used) => Some((moment, used)),
            _ => None,
        }
    }

    fn at(day: i64, seconds: i64, nanos: u32) -> Self {
        Self((i128::from(day) * 86_400 + i128::from(seconds)) * NANOS + i128::from(nanos))
    }

    /// Returns the point in time of a file's last change.
    pub(super) fn of_system(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)),
            Err(_) => Self(0),
        }
    }
}

/// A time as a logger wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenTime {
    /// A time with its year.
    Full(LogTime),
    /// A time without its year, as of syslog (RFC 3164), klog and Android.
    Yearless {
        /// The month, from 1.
        month: i64,
        /// The day of the month, from 1.
        day: i64,
        /// The time of that day, in seconds and nanoseconds.
        clock: (i64, u32),
    },
    /// A clock without a day, or a time in a zone whose offset is not known.
    Unplaced,
}

impl WrittenTime {
    /// Parses the date and time that `text` begins with, like [`LogTime::parse_prefix`], and returns its length.
    pub(super) fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
        match text.first()? {
            byte if byte.is_ascii_digit() => Self::parse_numeric(text),
            byte if byte.is_ascii_uppercase() => Self::parse_named(text),
            _ => None,
        }
    }

    /// Returns the time of a day in a zone `offset` seconds east of UTC, if the offset is known.
    fn in_zone(day: i64, seconds: i64, nanos: u32, offset: Option<i64>) -> Self {
        offset.map_or(Self::Unplaced, |offset| Self::Full(LogTime::at(day, seconds - offset, nanos)))
    }

    fn parse_numeric(text: &[u8]) -> Option<(Self, usize)> {
        let (day, mut at) = date(text).or_else(|| common_date(text)).or_else(|| spaced_date(text))?;
        at += match text.get(at..)? {
            // MariaDB pads the hour with a blank: `2026-11-20  9:00:00`.
            [b' ', b' ', b'0'..=b'9', b':', ..] => 2,
            [b'T' | b't' | b' ' | b':', b':', ..] => 2,
            [b'T' | b't' | b' ' | b':', ..] => 1,
            [b',', b' ', ..] => 2,
            _ => return None,
        };
        let rest = text.get(at..)?;
        let (seconds, nanos, used) =
            clock_of_half_day(rest).or_else(|| clock(rest)).or_else(|| padded_clock(text.get(at - 1..)?))?;
        at += used;
        let (offset, used) = zone(text.get(at..)?);
        Some((Self::in_zone(day, seconds, nanos, offset), at + used))
    }

    /// Parses a date that begins with the name of a weekday or a month.
    fn parse_named(text: &[u8]) -> Option<(Self, usize)> {
        const WEEKDAYS: &[u8] = b"MonTueWedThuFriSatSun";
        let weekday = WEEKDAYS.chunks(3).any(|name| text.starts_with(name));
        if weekday && text.get(3..5) == Some(b", ") {
            let (moment, used) = Self::parse_numeric(text.get(5..)?)?;
            return Some((moment, used + 5));
        }
        let start = if weekday && text.get(3) == Some(&b' ') { 4 } else { 0 };
        let name = text.get(start..start + 3)?;
        let month = month(name)?;
        let (day, used) = short_number(text.get(start + 4..)?)?;
        let mut at = start + 4 + used;
        if text.get(at..at + 2) == Some(b", ") {
            // `Nov 20, 2026 10:00:00 AM`
            let year = digits(text.get(at + 2..at + 6))?;
            at += 7;
            let rest = text.get(at..)?;
            let (seconds, nanos, used) = clock_of_half_day(rest).or_else(|| clock(rest))?;
            at += used;
            let (offset, used) = zone(text.get(at..)?);
            return Some((Self::in_zone(days(year, month, day)?, seconds, nanos, offset), at + used));
        }
        // `Fri Nov 20 10:00:00.123456 2026`, and `Fri Nov 20 10:00:00 CET 2026` of `date` and Java
        let (seconds, nanos, used) = clock(text.get(at + 1..)?)?;
        at += 1 + used;
        let (offset, used) = zone(text.get(at..)?);
        at += used;
        let year = text.get(at + 1..at + 5).filter(|_| text.get(at) == Some(&b' '))?;
        let ended = text.get(at + 5).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let year = digits(Some(year)).filter(|year| ended && (1970..2200).contains(year))?;
        Some((Self::in_zone(days(year, month, day)?, seconds, nanos, offset), at + 5))
    }

    /// Returns the point in time: for a time without a year, the last such time before the end of the day after
    /// `reference`, as clocks and time zones differ.
    pub(super) fn resolve(self, reference: LogTime) -> Option<LogTime> {
        let (month, day, (seconds, nanos)) = match self {
            Self::Full(moment) => return Some(moment),
            Self::Unplaced => return None,
            Self::Yearless { month, day, clock } => (month, day, clock),
        };
        let elapsed_days = i64::try_from(reference.0.div_euclid(86_400 * NANOS)).ok()?;
        let year = 1970 + elapsed_days.div_euclid(365);
        let latest = LogTime(reference.0.saturating_add(86_400 * NANOS));
        let in_year = |year| Some(LogTime::at(days(year, month, day)?, seconds, nanos));
        // The quotient is at most one year too great in the next centuries; a leap day may be eight years ago.
        (year - 9..=year + 1)
            .rev()
            .filter(|year| is_in_month(*year, month, day))
            .filter_map(in_year)
            .find(|moment| *moment <= latest)
    }
}

/// Returns whether the month of this year has the day.
fn is_in_month(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    day <= match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Parses a time without a year that `text` begins with, `Nov 20 10:00:00` or `11-20 10:00:00.123`, and returns its
/// length.
pub(super) fn yearless_prefix(text: &[u8]) -> Option<(WrittenTime, usize)> {
    let (month, day, at) = match text.first()? {
        byte if byte.is_ascii_digit() => {
            let dashed = text.get(2) == Some(&b'-') && text.get(5) == Some(&b' ');
            (digits(text.get(..2)).filter(|_| dashed)?, digits(text.get(3..5))?, 6)
        }
        _ => {
            let month = month(text.get(..3)?).filter(|_| text.get(3) == Some(&b' '))?;
            let (day, used) = short_number(text.get(4..)?)?;
            (month, day, 4 + used + 1)
        }
    };
    if text.get(at - 1) != Some(&b' ') || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (seconds, nanos, used) = clock(text.get(at..)?)?;
    Some((WrittenTime::Yearless { month, day, clock: (seconds, nanos) }, at + used))
}

impl std::fmt::Display for LogTime {
    /// Formats the time as RFC 3339 in UTC, with as many digits as it has, at least milliseconds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Every moment that can be read lies within the years of `Timestamp` (-9999 to 9999); an offset can lead
        // out of them by hours.
        let limit = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let timestamp = Timestamp::from_nanosecond(self.0).unwrap_or(limit);
        match self.0.rem_euclid(NANOS) {
            nanos if nanos % 1_000_000 == 0 => write!(f, "{timestamp:.3}"),
            nanos if nanos % 1_000 == 0 => write!(f, "{timestamp:.6}"),
            _ => write!(f, "{timestamp:.9}"),
        }
    }
}

/// Parses the value of `since` or `until`: a time, or how long ago it was: `90s`, `10m`, `2h`, `1d`.
pub(super) fn parse_bound(text: &str, now: LogTime) -> Option<LogTime> {
    let text = text.trim();
    if let Some((number, unit)) = text.len().checked_sub(1).and_then(|last| text.split_at_checked(last))
        && let Ok(number) = number.parse::<u32>()
    {
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return LogTime::parse(text),
        };
        return Some(now.before(Duration::from_secs(u64::from(number) * seconds)));
    }
    LogTime::parse(text)
}

/// Parses a whole number of exactly these digits.
fn digits(text: Option<&[u8]>) -> Option<i64> {
    let text = text?;
    let all = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    all.then(|| text.iter().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Parses a date of numbers to days since 1970, and returns its length.
fn date(text: &[u8]) -> Option<(i64, usize)> {
    let separator = *text.get(4)?;
    if matches!(separator, b'-' | b'/' | b'.') && text.get(7) == Some(&separator) {
        let (year, month, day) = (digits(text.get(..4))?, digits(text.get(5..7))?, digits(text.get(8..10))?);
        return Some((days(year, month, day)?, 10));
    }
    let separator = *text.get(2)?;
    if matches!(separator, b'.' | b'/') && text.get(5) == Some(&separator) {
        return day_first_date(text, separator);
    }
    // `20261120T100000` has its time without colons, and `20261120 10:00:00` with.
    let (year, month, day) = (digits(text.get(..4))?, digits(text.get(4..6))?, digits(text.get(6..8))?);
    let plausible = (1970..2200).contains(&year) && matches!(text.get(8), Some(b' ' | b'T'));
    Some((days(year, month, day).filter(|_| plausible)?, 8))
}

/// Parses `20.11.2026`, or `11/20/2026` and `20/11/2026` where only one reading is a date.
fn day_first_date(text: &[u8], separator: u8) -> Option<(i64, usize)> {
    let (first, second) = (digits(text.get(..2))?, digits(text.get(3..5))?);
    let Some(year) = digits(text.get(6..10)) else {
        // Spark writes `26/11/20`, the year first; a day cannot be told from a year below 32.
        let (year, day) = (first, digits(text.get(6..8))?);
        let spark = separator == b'/' && (24..=99).contains(&year) && text.get(8) == Some(&b' ');
        return Some((days(2000 + year, second, day).filter(|_| spark)?, 8));
    };
    let (month, day) = match separator {
        b'.' => (second, first),
        _ if first > 12 => (second, first),
        _ if second > 12 || first == second => (first, second),
        _ => return None,
    };
    Some((days(year, month, day)?, 10))
}

/// Parses `20/Nov/2026` or `20-Nov-2026` to days since 1970, and returns its length.
fn common_date(text: &[u8]) -> Option<(i64, usize)> {
    let separator = *text.get(2)?;
    if !matches!(separator, b'/' | b'-') || text.get(6) != Some(&separator) {
        return None;
    }
    let month = month(text.get(3..6)?)?;
    Some((days(digits(text.get(7..11))?, month, digits(text.get(..2))?)?, 11))
}

/// Parses `20 Nov 2026` to days since 1970, and returns its length.
fn spaced_date(text: &[u8]) -> Option<(i64, usize)> {
    let (day, used) = short_number(text)?;
    let rest = text.get(used..)?;
    let spaced = rest.first() == Some(&b' ') && rest.get(4) == Some(&b' ');
    let month = month(rest.get(1..4)?).filter(|_| spaced)?;
    Some((days(digits(rest.get(5..9))?, month, day)?, used + 9))
}

/// Parses a number of one or two digits, perhaps after a space that pads it, and returns its length.
fn short_number(text: &[u8]) -> Option<(i64, usize)> {
    let pad = usize::from(text.first() == Some(&b' '));
    let length = text.iter().skip(pad).take(2).take_while(|byte| byte.is_ascii_digit()).count();
    Some((digits(text.get(pad..pad + length))?, pad + length))
}

/// Returns the number of the month with this English abbreviation, from 1.
fn month(name: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    MONTHS.chunks(3).zip(1..).find(|(month, _)| month.eq_ignore_ascii_case(name)).map(|(_, number)| number)
}

/// Converts a civil date to days since 1970.
// Plain arithmetic, as this runs for every line of text; jiff is used where an answer is formatted.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin on 1 March here, so that a leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// Parses `10:00:00`, with a fraction after `.` or `,`. Returns seconds, nanoseconds and the length in bytes.
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
    for index in 0..9 {
        let digit = fraction.get(index).filter(|_| index < length).map_or(0, |byte| byte - b'0');
        nanos = nanos * 10 + u32::from(digit);
    }
    Some((seconds, nanos, 9 + length))
}

/// Reads a clock whose hour is padded with a blank, ` 9:00:00`. The length does not count the blank.
fn padded_clock(text: &[u8]) -> Option<(i64, u32, usize)> {
    let mut padded = text.get(..text.len().min(24))?.to_vec();
    let hour = padded.first_mut().filter(|byte| **byte == b' ')?;
    *hour = b'0';
    let (seconds, nanos, used) = clock(&padded)?;
    Some((seconds, nanos, used - 1))
}

/// Parses `1:00:00 PM` or `01:00:00.123 am`. Returns seconds, nanoseconds and the length in bytes.
fn clock_of_half_day(text: &[u8]) -> Option<(i64, u32, usize)> {
    let short = text.get(1) == Some(&b':');
    let mut padded = Vec::new();
    let text = if short {
        padded.push(b'0');
        padded.extend(text.iter().take(24));
        padded.as_slice()
    } else {
        text
    };
    let (seconds, nanos, used) = clock(text)?;
    let half = text.get(used..used + 3)?;
    let afternoon = match half {
        [b' ', b'P' | b'p', b'M' | b'm'] => true,
        [b' ', b'A' | b'a', b'M' | b'm'] => false,
        _ => return None,
    };
    let (hour, rest) = (seconds / 3600, seconds % 3600);
    let hour =
        if (1..=12).contains(&hour) { hour % 12 + if afternoon { 12 } else { 0 } } else { return None };
    Some((hour * 3600 + rest, nanos, used + 3 - usize::from(short)))
}

/// The abbreviations of time zones that have one meaning in practice, and their minutes east of UTC.
const ZONES: [(&[u8], i64); 45] = [
    (b"UTC", 0),
    (b"GMT", 0),
    (b"WET", 0),
    (b"WEST", 60),
    (b"WAT", 60),
    (b"CET", 60),
    (b"CEST", 120),
    (b"CAT", 120),
    (b"SAST", 120),
    (b"EET", 120),
    (b"EEST", 180),
    (b"EAT", 180),
    (b"MSK", 180),
    (b"PKT", 300),
    (b"NPT", 345),
    (b"WIB", 420),
    (b"WITA", 480),
    (b"AWST", 480),
    (b"HKT", 480),
    (b"SGT", 480),
    (b"MYT", 480),
    (b"WIT", 540),
    (b"JST", 540),
    (b"KST", 540),
    (b"ACST", 570),
    (b"AEST", 600),
    (b"ACDT", 630),
    (b"AEDT", 660),
    (b"NZST", 720),
    (b"NZDT", 780),
    (b"NDT", -150),
    (b"BRT", -180),
    (b"ADT", -180),
    (b"NST", -210),
    (b"EDT", -240),
    (b"EST", -300),
    (b"CDT", -300),
    (b"MDT", -360),
    (b"MST", -420),
    (b"PDT", -420),
    (b"PST", -480),
    (b"AKDT", -480),
    (b"AKST", -540),
    (b"HST", -600),
    (b"HDT", -540),
];

/// The abbreviations that stand for more than one zone (`IST` is India's, Israel's and Ireland's), and some that are no
/// longer kept: a time with one of them cannot be placed.
const UNKNOWN_ZONES: [&[u8]; 15] = [
    b"IST", b"CST", b"BST", b"AST", b"SST", b"AMT", b"GST", b"ICT", b"PHT", b"CLT", b"CLST", b"UYT", b"BRST",
    b"IRST", b"UZT",
];

/// The beginnings of the names of places that stand for a zone.
const ZONE_AREAS: [&[u8]; 10] = [
    b"Africa/",
    b"America/",
    b"Antarctica/",
    b"Asia/",
    b"Atlantic/",
    b"Australia/",
    b"Etc/",
    b"Europe/",
    b"Indian/",
    b"Pacific/",
];

/// Parses the zone that `text` begins with: `Z`, `+01:00`, `+0100`, ` +0100`, ` -03`, ` UTC`, ` GMT+8`, ` CET` or
/// ` Europe/Berlin`. Returns seconds east of UTC, `None` where they are not known, and the length in bytes; both are 0
/// where there is no zone.
fn zone(text: &[u8]) -> (Option<i64>, usize) {
    const NO_ZONE: (Option<i64>, usize) = (Some(0), 0);
    let space = usize::from(text.first() == Some(&b' '));
    let rest = text.get(space..).unwrap_or_default();
    match rest.first() {
        Some(b'Z' | b'z') if space == 0 => (Some(0), 1),
        Some(b'+' | b'-') => match numeric_offset(rest, space == 1) {
            Some((offset, length)) => (Some(offset), space + length),
            None => NO_ZONE,
        },
        Some(b'A'..=b'Z') => match named_zone(rest) {
            Some((offset, length)) => (offset, space + length),
            None => NO_ZONE,
        },
        _ => NO_ZONE,
    }
}

/// Parses `+01:00`, `+0100` or `+01`, which after a space has to be a word of its own.
fn numeric_offset(text: &[u8], spaced: bool) -> Option<(i64, usize)> {
    let sign = if text.first() == Some(&b'-') { -1 } else { 1 };
    let hours = digits(text.get(1..3)).filter(|hours| *hours < 24)?;
    let colon = usize::from(text.get(3) == Some(&b':'));
    if let Some(minutes) = digits(text.get(3 + colon..5 + colon)) {
        return (minutes < 60).then_some((sign * (hours * 3600 + minutes * 60), 5 + colon));
    }
    let is_word = matches!(text.get(3), None | Some(b' ' | b'\t' | b']' | b')' | b'|' | b',' | b':' | b'"'));
    (!spaced || is_word && hours <= 14).then_some((sign * hours * 3600, 3))
}

/// Parses the name of a zone. Returns its seconds east of UTC, if they are known, and its length.
fn named_zone(text: &[u8]) -> Option<(Option<i64>, usize)> {
    if ZONE_AREAS.iter().any(|area| text.starts_with(area)) {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'+');
        return Some((None, text.iter().take(48).take_while(is_name).count()));
    }
    let length = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    if text.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    let name = text.get(..length)?;
    if UNKNOWN_ZONES.contains(&name) {
        return Some((None, length));
    }
    let (_, minutes) = ZONES.iter().find(|(known, _)| *known == name)?;
    // `UTC+3`, and Java's `GMT+05:30`
    let (offset, more) = match (name, text.get(length)) {
        (b"UTC" | b"GMT", Some(b'+' | b'-')) => short_offset(text.get(length..)?).unwrap_or((0, 0)),
        _ => (minutes * 60, 0),
    };
    Some((Some(offset), length + more))
}

/// Parses `+3`, `+03`, `+5:30` or `+0530`.
fn short_offset(text: &[u8]) -> Option<(i64, usize)> {
    let sign = if text.first() == Some(&b'-') { -1 } else { 1 };
    let count = text.iter().skip(1).take(2).take_while(|byte| byte.is_ascii_digit()).count();
    let hours = digits(text.get(1..=count)).filter(|hours| *hours < 24)?;
    let colon = usize::from(text.get(1 + count) == Some(&b':'));
    let at = 1 + count + colon;
    match digits(text.get(at..at + 2)).filter(|minutes| *minutes < 60) {
        Some(minutes) => Some((sign * (hours * 3600 + minutes * 60), at + 2)),
        None => Some((sign * hours * 3600, 1 + count)),
    }
}

/// Returns the length of a clock without a day that `text` begins with, `10:00:00.123`. It marks the head of an entry,
/// but its day is not known.
pub(super) fn clock_prefix(text: &[u8]) -> Option<usize> {
    clock(text).map(|(_, _, used)| used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> Option<String> {
        LogTime::parse(text).map(|moment| moment.to_string())
    }

    #[test]
    fn zones_are_converted_and_those_with_several_meanings_are_not_understood() {
        for (zone, hour) in [
            (" -03", "13:00"),
            (" +08", "02:00"),
            (" +0530", "04:30"),
            (" +05:45", "04:15"),
            (" HKT", "02:00"),
            (" SGT", "02:00"),
            (" KST", "01:00"),
            (" JST", "01:00"),
            (" SAST", "08:00"),
            (" EST", "15:00"),
            (" UTC+3", "07:00"),
            (" GMT-05:30", "15:30"),
            (" -12 items", "22:00"),
            (" MSTeams up", "10:00"),
            (" - 03 items", "10:00"),
            (" -15 items", "10:00"),
            (" API up", "10:00"),
        ] {
            let text = format!("2026-11-20 10:00:00{zone}");
            let (time, _) = LogTime::parse_prefix(text.as_bytes()).unwrap();
            assert_eq!(time.to_string(), format!("2026-11-20T{hour}:00.000Z"), "{text}");
        }
        for (zone, day) in [(" AEDT", "2026-11-19T23:00:00.000Z"), (" NZDT", "2026-11-19T21:00:00.000Z")] {
            assert_eq!(shown(&format!("2026-11-20 10:00:00{zone}")).as_deref(), Some(day));
        }
        for zone in [" IST", " CST", " BST", " IST [7]", " Asia/Kolkata"] {
            let text = format!("2026-11-20 10:00:00{zone}");
            assert!(
                matches!(WrittenTime::parse_prefix(text.as_bytes()), Some((WrittenTime::Unplaced, _))),
                "{text}"
            );
            assert_eq!(shown(&text), None, "{text}");
        }
        assert_eq!(shown("Fri Nov 20 10:00:00 CET 2026").as_deref(), Some("2026-11-20T09:00:00.000Z"));
        assert_eq!(shown("Nov 20, 2026 10:00:00 AM JST").as_deref(), Some("2026-11-20T01:00:00.000Z"));
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
            ("20-Nov-2026 10:00:00.123", "2026-11-20T10:00:00.123Z"),
            ("20-Nov-2026::10:00:00", "2026-11-20T10:00:00.000Z"),
            ("Nov 20, 2026 10:00:00 AM", "2026-11-20T10:00:00.000Z"),
            ("Nov 2, 2026 1:05:09 PM", "2026-11-02T13:05:09.000Z"),
            ("Nov 20, 2026 12:00:01 AM", "2026-11-20T00:00:01.000Z"),
            ("Fri Nov 20 10:00:00.123456 2026", "2026-11-20T10:00:00.123456Z"),
            ("Fri, 20 Nov 2026 10:00:00 GMT", "2026-11-20T10:00:00.000Z"),
            ("20 Nov 2026 10:00:00.123", "2026-11-20T10:00:00.123Z"),
            ("20.11.2026 10:00:00", "2026-11-20T10:00:00.000Z"),
            ("11/20/2026 10:00:00 PM", "2026-11-20T22:00:00.000Z"),
            ("20/11/2026 10:00:00", "2026-11-20T10:00:00.000Z"),
            ("2026-11-20 11:00:00.123 CET", "2026-11-20T10:00:00.123Z"),
            ("20261120 10:00:00", "2026-11-20T10:00:00.000Z"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-11-20T25:00:00Z",
            "2026-11-20T10:00:00Zzz",
            "1.2.3",
            "05/06/2026 10:00:00",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn a_bound_may_be_how_long_ago() {
        let now = LogTime::parse("2026-11-20T10:00:00Z").unwrap();
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

    #[test]
    fn a_time_without_a_year_is_the_last_one_before_the_file_changed() {
        let changed = LogTime::parse("2026-03-01T00:00:00Z").unwrap();
        for (text, expected) in [
            ("Feb 28 10:00:00", "2026-02-28T10:00:00.000Z"),
            ("Mar  1 23:00:00", "2026-03-01T23:00:00.000Z"),
            ("Nov 20 10:00:00.5", "2025-11-20T10:00:00.500Z"),
            ("02-29 10:00:00.123", "2024-02-29T10:00:00.123Z"),
        ] {
            let (stamp, used) = yearless_prefix(text.as_bytes()).unwrap();
            assert_eq!(
                (stamp.resolve(changed).unwrap().to_string().as_str(), used),
                (expected, text.len()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "[0-9 :.,/A-Za-z+-]{0,40}") {
            for text in [&*bytes, text.as_bytes()] {
                if let Some((_, used)) = LogTime::parse_prefix(text) {
                    prop_assert!(used <= text.len());
                }
                if let Some((stamp, used)) = yearless_prefix(text) {
                    prop_assert!(used <= text.len());
                    let _ = stamp.resolve(LogTime(0));
                }
            }
        }

        #[test]
        fn what_is_shown_reads_back_as_the_same(nanos in -62_000_000_000_000_000_000_i128..250_000_000_000_000_000_000) {
            let moment = LogTime(nanos);
            prop_assert_eq!(LogTime::parse(&moment.to_string()), Some(moment));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}", number in any::<f64>(), whole in any::<i64>()) {
            let _ = LogTime::parse(&text);
            let _ = parse_bound(&text, LogTime(0));
            let _ = LogTime::from_float(number).map(|moment| moment.to_string());
            let _ = LogTime::from_number(whole.into()).map(|moment| moment.to_string());
        }
    }
}
