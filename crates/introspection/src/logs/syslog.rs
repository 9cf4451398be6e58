//! Parses syslog: RFC 5424, RFC 3164, and the files that rsyslog and systemd write.

use super::head::{FormatFamily, TextHead};
use super::level::{EntryLevel, LevelScale};
use super::level_words::leading_level;
use super::log_time::{LogTime, WrittenTime, yearless_prefix};
use serde_json::{Map, Value};

/// The parts of a line before its message.
struct SyslogHeader<'a> {
    stamp: Option<WrittenTime>,
    priority: Option<EntryLevel>,
    /// Names and values, without those that are absent.
    fields: [(&'static str, &'a [u8]); 5],
    message: usize,
}

/// Parses the priority, `<34>`. Returns the offset after it.
pub(super) fn priority(line: &[u8]) -> Option<(usize, EntryLevel)> {
    if line.first() != Some(&b'<') {
        return None;
    }
    let count = line.iter().skip(1).take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let number: i64 = std::str::from_utf8(line.get(1..=count)?).ok()?.parse().ok()?;
    let valid = line.get(count + 1) == Some(&b'>') && number < 192;
    Some((count + 2, EntryLevel::from_number(number % 8, LevelScale::Syslog).filter(|_| valid)?))
}

/// Takes the word that begins at `at`, and returns it with the offset after the space that ends it.
fn word(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = line.get(at..)?;
    let length = rest.iter().take(256).position(|byte| *byte == b' ')?;
    (length > 0).then_some((rest.get(..length)?, at + length + 1))
}

fn parse(line: &[u8]) -> Option<SyslogHeader<'_>> {
    let (at, priority) = priority(line).map_or((0, None), |(at, level)| (at, Some(level)));
    if priority.is_some() && line.get(at..at + 2) == Some(b"1 ") {
        return modern(line, at + 2, priority);
    }
    let rest = line.get(at..)?;
    // A time with `T` alone is no sign of syslog: the process in brackets has to follow.
    let (stamp, used, sure) = match yearless_prefix(rest) {
        Some((stamp, used)) if !rest.first()?.is_ascii_digit() => (stamp, used, true),
        _ => {
            let (moment, used) = LogTime::parse_prefix(rest).filter(|_| rest.get(10) == Some(&b'T'))?;
            (WrittenTime::Full(moment), used, priority.is_some())
        }
    };
    let at = at + used;
    if line.get(at) != Some(&b' ') {
        return None;
    }
    let (host, tag_start) = match word(line, at + 1)? {
        // Without a host, as programs write it that are not started by a service manager.
        (tag, _) if sure && tag.ends_with(b"]:") => (&b""[..], at + 1),
        named => named,
    };
    let is_no_host = |byte: &u8| matches!(byte, b'[' | b'-' | b'|' | b'(' | b'<');
    if EntryLevel::from_name(host).is_some() || host.first().is_some_and(is_no_host) {
        return None;
    }
    // The tag ends with a colon, and may have the process in brackets.
    let tag = line.get(tag_start..line.len().min(tag_start + 120))?;
    let length =
        tag.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-_./@()".contains(byte)).count();
    let name = tag.get(..length).filter(|name| !name.is_empty())?;
    let (pid, after) = match tag.get(length) {
        Some(b'[') => {
            let close = memchr::memchr(b']', tag)?;
            (tag.get(length + 1..close)?, close + 1)
        }
        _ if sure => (&b""[..], length),
        _ => return None,
    };
    if tag.get(after) != Some(&b':') {
        return None;
    }
    let spaces = line.get(tag_start + after + 1..)?.iter().take_while(|byte| **byte == b' ').count();
    let message = tag_start + after + 1 + spaces;
    let fields = [("host", host), ("app", name), ("pid", pid), ("", &b""[..]), ("", &b""[..])];
    Some(SyslogHeader { stamp: Some(stamp), priority, fields, message })
}

/// Parses the rest of a line of RFC 5424 after its version.
fn modern(line: &[u8], at: usize, priority: Option<EntryLevel>) -> Option<SyslogHeader<'_>> {
    let (time, at) = word(line, at)?;
    let stamp = match time {
        b"-" => None,
        _ => Some(WrittenTime::Full(LogTime::parse_prefix(time)?.0)),
    };
    let (host, at) = word(line, at)?;
    let (app, at) = word(line, at)?;
    let (pid, at) = word(line, at)?;
    let (id, at) = word(line, at)?;
    let (data, mut message) = structured_data(line, at)?;
    // rsyslog keeps the blank that other forms have before the message.
    while line.get(message) == Some(&b' ') {
        message += 1;
    }
    if line.get(message..message + 3) == Some(b"\xef\xbb\xbf") {
        message += 3;
    }
    let fields = [
        absent("host", host),
        absent("app", app),
        absent("pid", pid),
        absent("msgid", id),
        absent("data", data),
    ];
    Some(SyslogHeader { stamp, priority, fields, message })
}

/// Returns a field, without its name where the value is absent.
fn absent<'a>(name: &'static str, value: &'a [u8]) -> (&'static str, &'a [u8]) {
    if value == b"-" { ("", &[]) } else { (name, value) }
}

/// Returns the structured data that begins at `at`, `-` or elements in brackets, and the offset after it.
fn structured_data(line: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = line.get(at..)?;
    if rest.first() != Some(&b'[') {
        let length = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        return Some((rest.get(..length)?, at + length));
    }
    let (mut quoted, mut escaped) = (false, false);
    for (index, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b']' if !quoted && rest.get(index + 1) != Some(&b'[') => {
                return Some((rest.get(..=index)?, at + index + 1));
            }
            _ => {}
        }
    }
    None
}

/// Parses the head of a line. Without a priority, the level is the one that the message begins with.
pub(super) fn head(line: &[u8]) -> Option<TextHead> {
    let SyslogHeader { stamp, priority, message, .. } = parse(line)?;
    let named = || leading_level(line.get(message..)?);
    Some(TextHead { stamp, level: priority.or_else(named), message, family: FormatFamily::Syslog })
}

/// Returns the fields that stand before the message.
pub(super) fn fields(line: &[u8]) -> Map<String, Value> {
    let Some(SyslogHeader { fields, .. }) = parse(line) else { return Map::new() };
    let present = fields.into_iter().filter(|(name, value)| !name.is_empty() && !value.is_empty());
    present.map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &str) -> String {
        head(line.as_bytes()).map_or("-".to_owned(), |head| {
            let fields = Value::Object(fields(line.as_bytes()));
            format!("{} {} {fields}", head.level.map_or("-", EntryLevel::as_str), &line[head.message..])
        })
    }

    #[test]
    fn host_program_and_process_are_told_from_the_message() {
        for (line, expected) in [
            (
                "Nov 20 10:00:00 web1 sshd[812]: error: no key",
                r#"error error: no key {"host":"web1","app":"sshd","pid":"812"}"#,
            ),
            (
                "Nov 20 10:00:00 web1 app: retry after ERROR 5",
                r#"- retry after ERROR 5 {"host":"web1","app":"app"}"#,
            ),
            (
                "Nov 20 10:00:00 web1 app: 2026-11-20 10:00:00,123 - root - ERROR - boom",
                r#"error 2026-11-20 10:00:00,123 - root - ERROR - boom {"host":"web1","app":"app"}"#,
            ),
            ("Nov  2 10:00:00 web1 kernel: up", r#"- up {"host":"web1","app":"kernel"}"#),
            ("<11>Nov 20 10:00:00 web1 app: boom", r#"error boom {"host":"web1","app":"app"}"#),
            ("2026-11-20T10:00:00.1+00:00 web1 app[1]: up", r#"- up {"host":"web1","app":"app","pid":"1"}"#),
            (
                r#"<165>1 2026-11-20T10:00:00Z web1 app - ID47 [a@1 b="c\]"][d] up"#,
                r#"info up {"host":"web1","app":"app","msgid":"ID47","data":"[a@1 b=\"c\\]\"][d]"}"#,
            ),
            ("<34>1 - - - - - - boom", "fatal boom {}"),
            ("<34>1 - h - - - -  boom", r#"fatal boom {"host":"h"}"#),
            ("Nov 20 10:00:00 dnsmasq[7]: warning: low", r#"warn warning: low {"app":"dnsmasq","pid":"7"}"#),
            ("2026-11-20T10:00:00Z ERROR app[1]: boom", "-"),
            ("2026-11-20T10:00:00Z main: up", "-"),
            ("Nov 20 10:00:00 and then", "-"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[ \\[\\]\":a\\\\0-9-]{0,60}") {
            for start in [&b""[..], b"<34>1 - h a ", b"<34>1 2026-11-20T10:00:00Z h a - - ", b"Nov 20 10:00:00 h "] {
                for line in [[start, &bytes].concat(), [start, text.as_bytes()].concat()] {
                    if let Some(head) = head(&line) {
                        prop_assert!(head.message <= line.len());
                        fields(&line);
                    }
                }
            }
        }
    }
}
