//! [`Level`]: the severity of an entry, read from the names and numbers that loggers use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The severity of an entry, from the least to the most severe.
// The variants have no doc comments: each would become a paragraph of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "see above")]
pub enum EntryLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

/// The scale that the numbers under a key are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LevelScale {
    /// The scale of `level`: 10 to 60 for pino and bunyan, 100 to 600 for Monolog; numbers below 10 are syslog's
    /// (GELF).
    Pino,
    /// The scale of `levelno` in Python's logging: 10 to 50, where 50 is the most severe.
    Python,
    /// The scale of syslog (RFC 5424, section 6.2.1) and of journald's `PRIORITY`: 0 to 7, where 0 is the most severe.
    Syslog,
    /// The scale of OpenTelemetry's `severityNumber`: 1 to 24, four to a level.
    OpenTelemetry,
}

impl EntryLevel {
    /// Returns the name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Fatal => "fatal",
        }
    }

    /// Returns the level that a logger calls `name`: in any case, within ANSI colours, and with slog's offsets
    /// (`INFO+2`). winston's `verbose`, which stands above its `debug`, is `debug`.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let name = trim_colour(name).trim_ascii();
        // slog rounds down to the nearest name and adds the rest.
        if let Some(sign) = name.iter().position(|byte| matches!(byte, b'+' | b'-'))
            && let (Some(base), Some(rest)) = (name.get(..sign), name.get(sign + 1..))
            && !rest.is_empty()
            && rest.iter().all(u8::is_ascii_digit)
        {
            let level = Self::from_name(base)?;
            let below = name.get(sign) == Some(&b'-') && rest != b"0";
            return Some(if below && level == Self::Debug { Self::Trace } else { level });
        }
        let mut lower = [0_u8; 16];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        Some(match &*lower {
            b"trace" | b"trc" | b"vrb" | b"silly" | b"finest" | b"finer" | b"t" => Self::Trace,
            b"debug" | b"dbg" | b"dbug" | b"verbose" | b"fine" | b"d" | b"v" => Self::Debug,
            b"info" | b"inf" | b"information" | b"informational" | b"notice" | b"http" | b"log"
            | b"success" | b"config" | b"default" | b"i" => Self::Info,
            b"warn" | b"warning" | b"wrn" | b"w" => Self::Warn,
            b"error" | b"err" | b"eror" | b"severe" | b"e" => Self::Error,
            b"fatal" | b"critical" | b"crit" | b"panic" | b"dpanic" | b"alert" | b"emerg" | b"emergency"
            | b"ftl" | b"fatl" | b"f" | b"c" => Self::Fatal,
            _ => return None,
        })
    }

    /// Returns the level of an HTTP status: a server's failure is an error, and a client's a warning.
    pub(super) fn from_status(status: u16) -> Option<Self> {
        match status {
            500..=599 => Some(Self::Error),
            400..=499 => Some(Self::Warn),
            100..=399 => Some(Self::Info),
            _ => None,
        }
    }

    /// Returns the level that `number` stands for on `scale`.
    pub(super) fn from_number(number: i64, scale: LevelScale) -> Option<Self> {
        Some(match (scale, number) {
            (LevelScale::Pino, 10..=19) => Self::Trace,
            (LevelScale::Pino, 20..=29) | (LevelScale::Python, 10..=19) => Self::Debug,
            (LevelScale::Pino, 30..=39) | (LevelScale::Python, 20..=29) => Self::Info,
            (LevelScale::Pino, 40..=49) | (LevelScale::Python, 30..=39) => Self::Warn,
            (LevelScale::Pino, 50..=59) | (LevelScale::Python, 40..=49) => Self::Error,
            // Monolog's numbers are ten times those of the others, and 250 is a notice.
            (LevelScale::Pino, 100..=199) => Self::Debug,
            (LevelScale::Pino, 200..=299) => Self::Info,
            (LevelScale::Pino, 300..=399) => Self::Warn,
            (LevelScale::Pino, 400..=499) => Self::Error,
            (LevelScale::Pino, 60..) | (LevelScale::Python, 50..) => Self::Fatal,
            (LevelScale::Python, 1..=9) => Self::Trace,
            (LevelScale::Pino | LevelScale::Syslog, 0..=2) => Self::Fatal,
            (LevelScale::Pino | LevelScale::Syslog, 3) => Self::Error,
            (LevelScale::Pino | LevelScale::Syslog, 4) => Self::Warn,
            (LevelScale::Pino | LevelScale::Syslog, 5 | 6) => Self::Info,
            (LevelScale::Pino | LevelScale::Syslog, 7) => Self::Debug,
            (LevelScale::OpenTelemetry, 1..=4) => Self::Trace,
            (LevelScale::OpenTelemetry, 5..=8) => Self::Debug,
            (LevelScale::OpenTelemetry, 9..=12) => Self::Info,
            (LevelScale::OpenTelemetry, 13..=16) => Self::Warn,
            (LevelScale::OpenTelemetry, 17..=20) => Self::Error,
            (LevelScale::OpenTelemetry, 21..=24) => Self::Fatal,
            _ => return None,
        })
    }
}

/// Returns `name` without the ANSI sequences around it.
fn trim_colour(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"\x1b[") {
        match rest.iter().position(|byte| *byte == b'm') {
            Some(end) => name = rest.get(end + 1..).unwrap_or_default(),
            None => return name,
        }
    }
    match name.iter().position(|byte| *byte == 0x1b) {
        Some(end) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_logger_are_one_of_six_levels() {
        for (name, level) in [
            ("INFO", EntryLevel::Info),
            ("Information", EntryLevel::Info),
            ("warning", EntryLevel::Warn),
            ("\u{1b}[31merror\u{1b}[39m", EntryLevel::Error),
            ("INFO+2", EntryLevel::Info),
            ("DEBUG-4", EntryLevel::Trace),
            ("ERROR+4", EntryLevel::Error),
            ("CRITICAL", EntryLevel::Fatal),
            ("dpanic", EntryLevel::Fatal),
        ] {
            assert_eq!(EntryLevel::from_name(name.as_bytes()), Some(level), "{name}");
        }
        for name in ["", "errors", "a name that is too long", "INFO+", "+2"] {
            assert_eq!(EntryLevel::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_number_means_what_the_scale_of_its_key_says() {
        assert_eq!(EntryLevel::from_number(50, LevelScale::Pino), Some(EntryLevel::Error));
        assert_eq!(EntryLevel::from_number(50, LevelScale::Python), Some(EntryLevel::Fatal));
        assert_eq!(EntryLevel::from_number(35, LevelScale::Pino), Some(EntryLevel::Info));
        assert_eq!(EntryLevel::from_number(3, LevelScale::Pino), Some(EntryLevel::Error));
        assert_eq!(EntryLevel::from_number(3, LevelScale::Syslog), Some(EntryLevel::Error));
        assert_eq!(EntryLevel::from_number(17, LevelScale::OpenTelemetry), Some(EntryLevel::Error));
        assert_eq!(EntryLevel::from_number(-1, LevelScale::Pino), None);
    }

    #[test]
    fn more_severe_is_greater() {
        let all = [
            EntryLevel::Trace,
            EntryLevel::Debug,
            EntryLevel::Info,
            EntryLevel::Warn,
            EntryLevel::Error,
            EntryLevel::Fatal,
        ];
        assert!(all.is_sorted());
    }
}
