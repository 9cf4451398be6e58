//! Parses lines that programs write without a time in front, or with a sign of their own for the level: Redis,
//! ASP.NET Core's console, PHP, Rails and Node.js.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime};

/// Parses `1:M 20 Nov 2026 10:00:00.123 # message` of Redis, whose sign is the level.
pub(super) fn redis(line: &[u8]) -> Option<TextHead> {
    let digits = line.iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
    let role = matches!(line.get(digits + 1)?, b'M' | b'S' | b'C' | b'X');
    if digits == 0 || !role || line.get(digits) != Some(&b':') || line.get(digits + 2) != Some(&b' ') {
        return None;
    }
    let (moment, used) = LogTime::parse_prefix(line.get(digits + 3..)?)?;
    let sign = digits + 3 + used + 1;
    let level = match line.get(sign)? {
        b'.' => EntryLevel::Debug,
        b'-' | b'*' => EntryLevel::Info,
        b'#' => EntryLevel::Warn,
        _ => return None,
    };
    let stamp = Some(WrittenTime::Full(moment));
    let message = (sign + 2).min(line.len());
    Some(TextHead { stamp, level: Some(level), message, family: FormatFamily::Plain })
}

/// Parses a line whose first words are the level in the way of one program.
pub(super) fn words(line: &[u8]) -> Option<TextHead> {
    match line.first()? {
        b't' | b'd' | b'f' | b'c' => dotnet(line),
        b'T' | b'D' | b'I' | b'W' | b'E' | b'F' | b'P' if line.get(4) == Some(&b'[') => logrus(line),
        b'P' => php(line),
        b'(' => node_warning(line),
        b'C' => rails_completed(line),
        b'S' => rails_started(line),
        _ => None,
    }
}

/// Parses `fail: Shop.Orders[13]` of ASP.NET Core; `info:` and `warn:` are words of other programs too.
pub(super) fn dotnet(line: &[u8]) -> Option<TextHead> {
    let level = match line.get(..6)? {
        b"trce: " => EntryLevel::Trace,
        b"dbug: " => EntryLevel::Debug,
        b"fail: " => EntryLevel::Error,
        b"crit: " => EntryLevel::Fatal,
        _ => return None,
    };
    Some(TextHead::untimed(Some(level), 6))
}

/// Parses `ERRO[2026-11-20T10:00:00Z] message` and `ERRO[0012] message` of logrus at a terminal: four letters of the
/// level, then the time or the seconds since the program began.
fn logrus(line: &[u8]) -> Option<TextHead> {
    let level = match line.get(..4)? {
        b"TRAC" => EntryLevel::Trace,
        b"DEBU" => EntryLevel::Debug,
        b"INFO" => EntryLevel::Info,
        b"WARN" => EntryLevel::Warn,
        b"ERRO" => EntryLevel::Error,
        b"FATA" | b"PANI" => EntryLevel::Fatal,
        _ => return None,
    };
    // The bound keeps a line without a closing bracket from being searched to its end.
    let inner = line.get(5..line.len().min(60))?;
    let inner = inner.get(..memchr::memchr(b']', inner)?)?;
    let stamp = match WrittenTime::parse_prefix(inner) {
        Some((stamp, used)) => Some(stamp).filter(|_| used == inner.len())?,
        None if inner.len() >= 4 && inner.iter().all(u8::is_ascii_digit) => WrittenTime::Unplaced,
        None => return None,
    };
    let message = 5 + inner.len() + 1;
    let message = message + usize::from(line.get(message) == Some(&b' '));
    Some(TextHead { stamp: Some(stamp), level: Some(level), message, family: FormatFamily::Plain })
}

/// Parses `PHP Fatal error:  message`.
pub(super) fn php(line: &[u8]) -> Option<TextHead> {
    const KINDS: [(&[u8], EntryLevel); 8] = [
        (b"Fatal error: ", EntryLevel::Fatal),
        (b"Recoverable fatal error: ", EntryLevel::Error),
        (b"Parse error: ", EntryLevel::Fatal),
        (b"Core error: ", EntryLevel::Fatal),
        (b"Warning: ", EntryLevel::Warn),
        (b"Deprecated: ", EntryLevel::Warn),
        (b"Notice: ", EntryLevel::Info),
        (b"Stack trace:", EntryLevel::Error),
    ];
    let rest = line.strip_prefix(b"PHP ")?;
    let (start, level) = KINDS.iter().find(|(start, _)| rest.starts_with(start))?;
    let used = 4 + start.len();
    let spaces = line.get(used..)?.iter().take_while(|byte| **byte == b' ').count();
    Some(TextHead::untimed(Some(*level), used + spaces))
}

/// Parses `(node:7) DeprecationWarning: message`.
fn node_warning(line: &[u8]) -> Option<TextHead> {
    let rest = line.strip_prefix(b"(node:")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let message = 6 + digits + 2;
    let closed = line.get(6 + digits..message) == Some(b") ");
    (digits > 0 && closed).then(|| TextHead::untimed(Some(EntryLevel::Warn), message))
}

/// Parses what follows the time in a line of Twisted about a failure, whose level is not written.
pub(super) fn twisted(rest: &[u8]) -> Option<TextHead> {
    let window = rest.get(..rest.len().min(120))?;
    let failed = rest.first() == Some(&b'[')
        && [&b"] Unhandled Error"[..], b"] Unhandled error in Deferred"]
            .iter()
            .any(|words| memchr::memmem::find(window, words).is_some());
    failed.then(|| TextHead::untimed(Some(EntryLevel::Error), 0))
}

/// Parses a command of a workflow of GitHub Actions: `##[error]message` in its logs, `::error file=a.js::message` as a step
/// prints it.
pub(super) fn workflow(rest: &[u8]) -> Option<TextHead> {
    let (name, end) = match rest.strip_prefix(b"##[") {
        Some(inner) => {
            let close = memchr::memchr(b']', inner.get(..inner.len().min(12))?)?;
            (inner.get(..close)?, close + 4)
        }
        None => {
            let inner = rest.strip_prefix(b"::")?;
            let length = inner.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
            let is_command = matches!(inner.get(length), Some(b' ' | b':'))
                && memchr::memmem::find(inner, b"::").is_some();
            (inner.get(..length).filter(|_| is_command)?, 0)
        }
    };
    let level = match name {
        b"error" => EntryLevel::Error,
        b"warning" => EntryLevel::Warn,
        b"notice" => EntryLevel::Info,
        b"debug" => EntryLevel::Debug,
        _ => return None,
    };
    Some(TextHead::untimed(Some(level), end))
}

/// Parses what follows the time in a line of PostgreSQL's `csvlog`: `…,ERROR,22012,"division by zero",…`, where a code of five
/// characters follows the level.
pub(super) fn postgres_csv(rest: &[u8]) -> Option<TextHead> {
    const LEVELS: [(&[u8], EntryLevel); 8] = [
        (b"LOG", EntryLevel::Info),
        (b"INFO", EntryLevel::Info),
        (b"NOTICE", EntryLevel::Info),
        (b"WARNING", EntryLevel::Warn),
        (b"ERROR", EntryLevel::Error),
        (b"FATAL", EntryLevel::Fatal),
        (b"PANIC", EntryLevel::Fatal),
        (b"DEBUG", EntryLevel::Debug),
    ];
    let window = rest.strip_prefix(b",")?;
    let window = window.get(..window.len().min(600))?;
    let mut columns = window.split(|byte| *byte == b',').peekable();
    while let Some(column) = columns.next() {
        let is_code = columns.peek().is_some_and(|next| {
            next.len() == 5 && next.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        });
        // `DEBUG1` to `DEBUG5`.
        let name = column.strip_suffix(b"1").unwrap_or(column).trim_ascii_end();
        let name = if name.starts_with(b"DEBUG") { &b"DEBUG"[..] } else { name };
        if let Some((_, level)) = LEVELS.iter().find(|(known, _)| *known == name).filter(|_| is_code) {
            return Some(TextHead::untimed(Some(*level), 1));
        }
    }
    None
}

/// Parses `kern  :err   : 2026-11-20T10:00:00,123456+00:00 message` of `dmesg -x`: facility, level and time, which may be
/// the seconds since the start in brackets.
pub(super) fn dmesg(line: &[u8]) -> Option<TextHead> {
    const FACILITIES: [&[u8]; 12] = [
        b"kern",
        b"user",
        b"mail",
        b"daemon",
        b"auth",
        b"syslog",
        b"lpr",
        b"news",
        b"uucp",
        b"cron",
        b"authpriv",
        b"ftp",
    ];
    let window = line.get(..line.len().min(24))?;
    let colon = memchr::memchr(b':', window)?;
    let facility = window.get(..colon)?.trim_ascii_end();
    let end = colon + 1 + memchr::memchr(b':', window.get(colon + 1..)?)?;
    let level = EntryLevel::from_name(window.get(colon + 1..end)?.trim_ascii())?;
    let is_facility = FACILITIES.contains(&facility) || facility.starts_with(b"local") && facility.len() == 6;
    // Both are padded to one width, which tells them from other words with colons.
    if !is_facility || line.get(end + 1) != Some(&b' ') || end - colon != 7 {
        return None;
    }
    let rest = line.get(end + 2..)?;
    let (stamp, used) = match WrittenTime::parse_prefix(rest) {
        Some((stamp, used)) => (Some(stamp), used),
        None => match (rest.first(), memchr::memchr(b']', rest.get(..rest.len().min(20))?)) {
            (Some(b'['), Some(close)) => (Some(WrittenTime::Unplaced), close + 1),
            _ => (None, 0),
        },
    };
    let message = end + 2 + used;
    let message = message + usize::from(line.get(message) == Some(&b' '));
    Some(TextHead { stamp, level: Some(level), message, family: FormatFamily::Plain })
}

/// Parses `✖  error     message` of signale and the like: a sign, then the level.
pub(super) fn sign(line: &[u8]) -> Option<TextHead> {
    if line.first()?.is_ascii() {
        return None;
    }
    let window = line.get(..line.len().min(40))?;
    let blank = memchr::memchr(b' ', window)?;
    let sign = std::str::from_utf8(window.get(..blank)?).ok()?;
    let rest = line.get(blank..)?;
    let start = blank + rest.iter().take_while(|byte| **byte == b' ').count();
    let word = line.get(start..)?.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let level = EntryLevel::from_name(line.get(start..start + word).filter(|word| word.len() >= 3)?)?;
    let after = line.get(start + word..)?;
    let spaces = after.iter().take_while(|byte| **byte == b' ').count();
    // `ℹ` counts as a letter.
    let is_letter = |c: char| c.is_alphanumeric() && !matches!(c, '\u{2100}'..='\u{214f}');
    let is_sign = !sign.chars().any(is_letter) && sign.chars().count() <= 2;
    (is_sign && spaces >= 1).then(|| TextHead::untimed(Some(level), start + word + spaces))
}

/// Parses `Completed 500 Internal Server Error in 12ms` of Rails: the status is the level.
pub(super) fn rails_completed(line: &[u8]) -> Option<TextHead> {
    let rest = line.strip_prefix(b"Completed ")?;
    let level = match rest.get(..4)? {
        [b'5', b'0'..=b'9', b'0'..=b'9', b' '] => EntryLevel::Error,
        [b'4', b'0'..=b'9', b'0'..=b'9', b' '] => EntryLevel::Warn,
        [b'1'..=b'3', b'0'..=b'9', b'0'..=b'9', b' '] => EntryLevel::Info,
        _ => return None,
    };
    let timed = memchr::memmem::find(rest.get(..rest.len().min(120))?, b" in ").is_some();
    timed.then(|| TextHead::untimed(Some(level), 0))
}

/// Parses `Started GET "/orders" for 127.0.0.1 at 2026-11-20 10:00:00 +0000` of Rails.
fn rails_started(line: &[u8]) -> Option<TextHead> {
    line.strip_prefix(b"Started ").filter(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))?;
    let at = memchr::memmem::rfind(line, b" at ")? + 4;
    let (moment, used) = LogTime::parse_prefix(line.get(at..)?)?;
    let stamp = Some(WrittenTime::Full(moment));
    (at + used == line.len()).then_some(TextHead {
        stamp,
        level: Some(EntryLevel::Info),
        message: 0,
        family: FormatFamily::Plain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head_of(line: &[u8]) -> Option<TextHead> {
        redis(line)
            .or_else(|| words(line))
            .or_else(|| dmesg(line))
            .or_else(|| sign(line))
            .or_else(|| workflow(line))
            .or_else(|| postgres_csv(line))
    }

    #[test]
    fn each_program_has_signs_of_its_own() {
        for (line, level, message) in [
            ("1:M 20 Nov 2026 10:00:00.123 # boom", EntryLevel::Warn, "boom"),
            ("fail: Shop.Orders[13]", EntryLevel::Error, "Shop.Orders[13]"),
            ("PHP Fatal error:  Uncaught Exception: x", EntryLevel::Fatal, "Uncaught Exception: x"),
            ("ERRO[0012] refused", EntryLevel::Error, "refused"),
            ("INFO[2026-11-20T10:00:00Z] retry after ERROR 5", EntryLevel::Info, "retry after ERROR 5"),
            ("(node:7) Warning: x", EntryLevel::Warn, "Warning: x"),
            ("kern  :err   : [    0.123456] boom", EntryLevel::Error, "boom"),
            ("kern  :notice: 2026-11-20T10:00:00,123456+00:00 up", EntryLevel::Info, "up"),
            ("✖  error     boom", EntryLevel::Error, "boom"),
            ("ℹ  info      up", EntryLevel::Info, "up"),
            ("##[error]failed", EntryLevel::Error, "failed"),
            ("::warning file=a.js,line=1::low", EntryLevel::Warn, "::warning file=a.js,line=1::low"),
            (",,7,ERROR,22012,\"x\"", EntryLevel::Error, ",7,ERROR,22012,\"x\""),
            (
                "Completed 500 Internal Server Error in 5ms",
                EntryLevel::Error,
                "Completed 500 Internal Server Error in 5ms",
            ),
        ] {
            let head = head_of(line.as_bytes()).unwrap();
            assert_eq!((head.level, &line[head.message..]), (Some(level), message), "{line}");
        }
        for line in [
            "fails: 3",
            "INFO[x] up",
            "PHP is up",
            "(node) x",
            "Completed 500 orders",
            "Started the server",
            "1:M x",
            "user:err: x",
            "→ error: x",
            "é error x",
            "##[group]Run",
            "::error",
            ",ERROR,x",
        ] {
            assert!(head_of(line.as_bytes()).is_none(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            for start in [&b""[..], b"1:M 20 Nov 2026 10:00:00", b"INFO[2026-11-20T10:00:00Z", b"PHP Warning: ", b"(node:", b"Completed ", b"Started G at ", b"kern  :err   : ", "✖  ".as_bytes(), b"##[", b"::", b",,ERROR"] {
                let line = [start, &bytes].concat();
                if let Some(head) = head_of(&line) {
                    prop_assert!(head.message <= line.len());
                }
            }
        }
    }
}
