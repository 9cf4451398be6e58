//! Recognises the heads of entries in logs of plain text, whichever family of formats they are of.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::level_words::find_level;
use super::log_time::{LogTime, WrittenTime, clock_prefix, yearless_prefix};
use super::{frameworks, iis_haproxy, klog, request_lines, stack_trace, syslog, web_server};

/// Parses the head of an entry: a line with a time in front, or with a level near its beginning.
// The order is from what the first bytes decide to what has to search.
pub(super) fn head(line: &[u8]) -> Option<TextHead> {
    if let Some(head) = klog::head(line).or_else(|| stack_trace::panic(line)) {
        return Some(head);
    }
    let (mut at, priority) = syslog::priority(line).map_or((0, None), |(at, level)| (at, Some(level)));
    if let Some(head) = syslog_head(line, priority.is_some()) {
        // HAProxy logs by syslog, whose level is that of the program and not of the request.
        let request = line.get(head.message..).and_then(iis_haproxy::haproxy);
        return Some(match request {
            Some(request) => TextHead { level: request.level, ..head },
            None => head,
        });
    }
    let bracket = usize::from(matches!(line.get(at), Some(b'[' | b'(')));
    let timed = line.get(at + bracket..).unwrap_or_default();
    let written = WrittenTime::parse_prefix(timed)
        .or_else(|| yearless_prefix(timed))
        .or_else(|| epoch_prefix(timed, bracket == 1))
        .or_else(|| Some((WrittenTime::Unplaced, clock_prefix(timed)?)));
    let Some((stamp, used)) = written else { return untimed(line, at, priority) };
    let stamp = Some(stamp);
    if bracket == 1
        && let Some(head) = web_server::head(line)
    {
        return Some(head);
    }
    let after_time = at + bracket + used;
    if is_java_util(timed, used) {
        let message = skip_separators(line, after_time);
        return Some(TextHead { stamp, level: None, message, family: FormatFamily::JavaUtil });
    }
    at = skip_separators(line, after_time);
    let rest = line.get(at..).unwrap_or_default();
    let own = frameworks::php(rest)
        .or_else(|| frameworks::dotnet(rest))
        .or_else(|| frameworks::rails_completed(rest))
        .or_else(|| frameworks::twisted(rest))
        .or_else(|| klog::capnslog(rest))
        .or_else(|| request_lines::server(rest))
        .or_else(|| frameworks::workflow(rest))
        .or_else(|| frameworks::postgres_csv(rest))
        .or_else(|| panic_message(rest));
    if let Some(own) = own {
        return Some(TextHead { stamp, message: at + own.message, ..own });
    }
    let head = |level, message| Some(TextHead { stamp, level, message, family: FormatFamily::Plain });
    if let Some((level, request)) = iis_haproxy::iis(rest) {
        return head(Some(level), at + request);
    }
    match (find_level(rest, true), priority) {
        (Some((level, after)), _) => {
            head(Some(with_status(level, rest)), after.map_or(at, |after| skip_separators(line, at + after)))
        }
        (None, level) => head(level, at),
    }
}

/// Returns the level of a line that a server wrote as information about a request: that of its status.
fn with_status(level: EntryLevel, rest: &[u8]) -> EntryLevel {
    match level {
        EntryLevel::Info => request_lines::quoted_status(rest).unwrap_or(level),
        _ => level,
    }
}

/// Parses the head of a line of syslog.
fn syslog_head(line: &[u8], prioritized: bool) -> Option<TextHead> {
    let likely = match line {
        [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => true,
        // RFC 3339, as rsyslog writes it.
        [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => {
            memchr::memmem::find(line.get(..line.len().min(160))?, b"]:").is_some()
        }
        _ => prioritized,
    };
    if likely { syslog::head(line) } else { None }
}

/// Parses the head of a line without a time in front.
fn untimed(line: &[u8], at: usize, priority: Option<EntryLevel>) -> Option<TextHead> {
    if let Some(head) = web_server::head(line)
        .or_else(|| iis_haproxy::haproxy(line))
        .or_else(|| request_lines::morgan(line))
        .or_else(|| frameworks::redis(line))
        .or_else(|| frameworks::words(line))
        .or_else(|| frameworks::dmesg(line))
        .or_else(|| frameworks::workflow(line))
        .or_else(|| request_lines::load_balancer(line))
        .or_else(|| frameworks::sign(line))
    {
        return Some(head);
    }
    match (find_level(line.get(at..).unwrap_or_default(), false), priority) {
        (Some((level, after)), _) => {
            let level = with_status(level, line);
            let Some(after) = after else { return Some(TextHead::untimed(Some(level), at)) };
            // The time may stand behind the level: `WARNING 2026-11-20 10:00:00,123 low`.
            let message = skip_separators(line, at + after);
            let bracket = usize::from(line.get(message) == Some(&b'['));
            let timed = line.get(message + bracket..).unwrap_or_default();
            let Some((stamp, used)) = WrittenTime::parse_prefix(timed) else {
                return Some(TextHead::untimed(Some(level), message));
            };
            let message = skip_separators(line, message + bracket + used);
            Some(TextHead { stamp: Some(stamp), level: Some(level), message, family: FormatFamily::Plain })
        }
        (None, Some(level)) => Some(TextHead::untimed(Some(level), at)),
        (None, None) => None,
    }
}

/// Parses the message of a panic that a server caught and logged: `http: panic serving 127.0.0.1:4: boom` of Go.
fn panic_message(rest: &[u8]) -> Option<TextHead> {
    let caught = rest.starts_with(b"panic: ") || rest.starts_with(b"http: panic serving ");
    caught.then(|| TextHead::untimed(Some(EntryLevel::Error), 0))
}

/// Parses seconds since 1970 with a fraction of three or more digits, `1795168800.123`, or ten digits that brackets or a
/// colon and a blank end, `[1795168800]` and `1795168800: `.
fn epoch_prefix(text: &[u8], in_bracket: bool) -> Option<(WrittenTime, usize)> {
    let is_whole = text.get(..10).is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
    let is_ended = match in_bracket {
        true => text.get(10) == Some(&b']'),
        false => text.get(10..12) == Some(b": "),
    };
    if is_whole && is_ended {
        let number = std::str::from_utf8(text.get(..10)?).ok()?;
        return Some((WrittenTime::Full(LogTime::parse(number)?), 10));
    }
    let digits = |from: usize| {
        text.get(from..).unwrap_or_default().iter().take(10).take_while(|byte| byte.is_ascii_digit()).count()
    };
    let fraction = if text.get(10) == Some(&b'.') && digits(0) == 10 { digits(11) } else { 0 };
    let number = std::str::from_utf8(text.get(..11 + fraction)?).ok().filter(|_| fraction >= 3)?;
    Some((WrittenTime::Full(LogTime::parse(number)?), 11 + fraction))
}

/// Returns whether the line may be the first of two of java.util.logging: its time has twelve hours, and a class and a
/// method follow, or the name of a logger.
fn is_java_util(timed: &[u8], used: usize) -> bool {
    let half = timed.get(used.saturating_sub(2)..used);
    let (words, rest) = (timed.get(used..).unwrap_or_default().trim_ascii(), timed.first());
    let is_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'<' | b'>');
    let mut names = words.split(|byte| *byte == b' ');
    matches!(half, Some(b"AM" | b"PM"))
        && rest.is_some_and(u8::is_ascii_uppercase)
        && names.clone().count() <= 2
        && names.all(|name| !name.is_empty() && name.iter().all(is_name))
        && find_level(words, true).is_none()
}

/// Returns whether `line` begins with a time, so that it begins an entry whatever follows.
pub(super) fn is_timed(line: &[u8]) -> bool {
    klog::head(line).is_some() || WrittenTime::parse_prefix(line).is_some() || yearless_prefix(line).is_some()
}

/// Returns the offset of the first byte from `at` on that is no separator.
fn skip_separators(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b']' | b')' | b'|' | b':' | b'-')) {
        at += 1;
    }
    at.min(line.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &str) -> String {
        let changed = LogTime::parse("2026-11-21T00:00:00Z").unwrap();
        match head(line.as_bytes()) {
            Some(TextHead { stamp, level, message, .. }) => format!(
                "{} {} {}",
                stamp
                    .and_then(|stamp| stamp.resolve(changed))
                    .map_or("-".to_owned(), |moment| moment.to_string()),
                level.map_or("-", EntryLevel::as_str),
                &line[message..]
            ),
            None => "none".to_owned(),
        }
    }

    #[test]
    fn the_beginnings_of_entries_in_the_usual_layouts() {
        for (line, expected) in [
            ("2026-11-20T10:00:00Z ERROR boom", "2026-11-20T10:00:00.000Z error boom"),
            ("[2026-11-20T10:00:00Z WARN  app::db] slow", "2026-11-20T10:00:00.000Z warn app::db] slow"),
            (
                "2026-11-20 10:00:00,123 - root - ERROR - boom",
                "2026-11-20T10:00:00.123Z error root - ERROR - boom",
            ),
            (
                "2026/11/20 10:00:00 [error] 12#0: *1 open() failed",
                "2026-11-20T10:00:00.000Z error 12#0: *1 open() failed",
            ),
            (
                "2026-11-20 10:00:00.123 [main] INFO c.a.B - up",
                "2026-11-20T10:00:00.123Z info [main] INFO c.a.B - up",
            ),
            (
                "2026-11-20T10:00:00.000Z\tINFO\tmain.go:1\tup\t{}",
                "2026-11-20T10:00:00.000Z info main.go:1\tup\t{}",
            ),
            ("10:00:00.123 INFO up", "- info up"),
            ("Nov 20 10:00:00 host app[1]: up", "2026-11-20T10:00:00.000Z - up"),
            ("<11>1 2026-11-20T10:00:00Z host app - - - boom", "2026-11-20T10:00:00.000Z error boom"),
            ("ERROR:root:boom", "- error root:boom"),
            ("error: could not compile", "- error could not compile"),
            ("[warn] low disk", "- warn low disk"),
            (
                "E1120 10:00:00.000000   12 main.go:1] boom",
                "2026-11-20T10:00:00.000Z error 12 main.go:1] boom",
            ),
            (
                "thread 'main' panicked at src/main.rs:2:5:",
                "- error thread 'main' panicked at src/main.rs:2:5:",
            ),
            ("panic: runtime error: index out of range", "- error panic: runtime error: index out of range"),
            ("2026-11-20T10:00:00Z up", "2026-11-20T10:00:00.000Z - up"),
            ("GET /ERROR HTTP/1.1", "none"),
            ("no error here", "none"),
            ("listening on 3000", "none"),
            ("errors: 0", "none"),
            ("", "none"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[\\[\\]<>(): 0-9ERORINFOTZ-]{0,70}") {
            for line in [&*bytes, text.as_bytes()] {
                if let Some(head) = head(line) {
                    prop_assert!(head.message <= line.len());
                }
            }
        }
    }
}
