//! How severe an entry is, in the words and numbers of the loggers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How severe an entry is, least first.
// The variants have no doc comments: each would become a paragraph of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "see above")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
    Fatal,
}

/// What a number means as a level: the scale that a key's numbers are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// `level`: pino and bunyan count 10 to 60; below 10 it is syslog's (GELF).
    Tens,
    /// `levelno` of Python's logging: 10 to 50, and 50 is the worst.
    Python,
    /// `PRIORITY` of syslog (RFC 5424, section 6.2.1) and journald: 0 to 7, and 0 is the worst.
    Syslog,
    /// `severityNumber` of OpenTelemetry: 1 to 24, four to a level.
    Telemetry,
}

impl Level {
    /// The name, in small letters.
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

    /// The level that a logger calls `name`, in whatever case, within ANSI colours, and with slog's offsets
    /// (`INFO+2`). winston's `verbose`, which stands above its `debug`, is `debug`.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let name = without_colour(name).trim_ascii();
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
            b"trace" | b"trc" | b"silly" | b"finest" | b"finer" | b"t" => Self::Trace,
            b"debug" | b"dbg" | b"dbug" | b"verbose" | b"fine" | b"d" | b"v" => Self::Debug,
            b"info" | b"inf" | b"information" | b"informational" | b"notice" | b"http" | b"log"
            | b"success" | b"config" | b"default" | b"i" => Self::Info,
            b"warn" | b"warning" | b"wrn" | b"w" => Self::Warn,
            b"error" | b"err" | b"eror" | b"severe" | b"e" => Self::Error,
            b"fatal" | b"critical" | b"crit" | b"panic" | b"dpanic" | b"alert" | b"emerg" | b"emergency"
            | b"ftl" | b"f" | b"c" => Self::Fatal,
            _ => return None,
        })
    }

    pub(super) fn from_number(number: i64, scale: Scale) -> Option<Self> {
        Some(match (scale, number) {
            (Scale::Tens, 10..=19) => Self::Trace,
            (Scale::Tens, 20..=29) | (Scale::Python, 10..=19) => Self::Debug,
            (Scale::Tens, 30..=39) | (Scale::Python, 20..=29) => Self::Info,
            (Scale::Tens, 40..=49) | (Scale::Python, 30..=39) => Self::Warn,
            (Scale::Tens, 50..=59) | (Scale::Python, 40..=49) => Self::Error,
            (Scale::Tens, 60..) | (Scale::Python, 50..) => Self::Fatal,
            (Scale::Python, 1..=9) => Self::Trace,
            (Scale::Tens | Scale::Syslog, 0..=2) => Self::Fatal,
            (Scale::Tens | Scale::Syslog, 3) => Self::Error,
            (Scale::Tens | Scale::Syslog, 4) => Self::Warn,
            (Scale::Tens | Scale::Syslog, 5 | 6) => Self::Info,
            (Scale::Tens | Scale::Syslog, 7) => Self::Debug,
            (Scale::Telemetry, 1..=4) => Self::Trace,
            (Scale::Telemetry, 5..=8) => Self::Debug,
            (Scale::Telemetry, 9..=12) => Self::Info,
            (Scale::Telemetry, 13..=16) => Self::Warn,
            (Scale::Telemetry, 17..=20) => Self::Error,
            (Scale::Telemetry, 21..=24) => Self::Fatal,
            _ => return None,
        })
    }
}

/// `name` without the ANSI sequences around it.
fn without_colour(mut name: &[u8]) -> &[u8] {
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
            ("INFO", Level::Info),
            ("Information", Level::Info),
            ("warning", Level::Warn),
            ("\u{1b}[31merror\u{1b}[39m", Level::Error),
            ("INFO+2", Level::Info),
            ("DEBUG-4", Level::Trace),
            ("ERROR+4", Level::Error),
            ("CRITICAL", Level::Fatal),
            ("dpanic", Level::Fatal),
        ] {
            assert_eq!(Level::from_name(name.as_bytes()), Some(level), "{name}");
        }
        for name in ["", "errors", "a name that is too long", "INFO+", "+2"] {
            assert_eq!(Level::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn a_number_means_what_the_scale_of_its_key_says() {
        assert_eq!(Level::from_number(50, Scale::Tens), Some(Level::Error));
        assert_eq!(Level::from_number(50, Scale::Python), Some(Level::Fatal));
        assert_eq!(Level::from_number(35, Scale::Tens), Some(Level::Info));
        assert_eq!(Level::from_number(3, Scale::Tens), Some(Level::Error));
        assert_eq!(Level::from_number(3, Scale::Syslog), Some(Level::Error));
        assert_eq!(Level::from_number(17, Scale::Telemetry), Some(Level::Error));
        assert_eq!(Level::from_number(-1, Scale::Tens), None);
    }

    #[test]
    fn more_severe_is_greater() {
        let all = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error, Level::Fatal];
        assert!(all.is_sorted());
    }
}
