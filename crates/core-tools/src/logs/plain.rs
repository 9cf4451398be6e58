//! Lines that are text: what a person would take for the beginning of an entry, and for the rest of one.

use super::level::{Level, Scale};
use super::moment::{Moment, clock_prefix};

/// What the beginning of a line of text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) timestamp: Option<Moment>,
    pub(super) level: Option<Level>,
    /// Where the message begins.
    pub(super) message: usize,
}

/// A level is looked for in so many bytes after the time.
const LEVEL_WITHIN: usize = 60;

/// The beginning of an entry, if `line` is one: it has a time in front, or a level near it.
pub(super) fn head(line: &[u8]) -> Option<Head> {
    if let Some(head) = glog(line).or_else(|| panic(line)) {
        return Some(head);
    }
    let (mut at, priority) = syslog_priority(line);
    let bracket = usize::from(matches!(line.get(at), Some(b'[' | b'(')));
    let timed = line.get(at + bracket..).unwrap_or_default();
    let timestamp = Moment::parse_prefix(timed);
    let clock = timestamp.map(|(_, used)| used).or_else(|| clock_prefix(timed));
    if let Some(used) = clock {
        at = skip_separators(line, at + bracket + used);
    }
    let timestamp = timestamp.map(|(moment, _)| moment);
    let rest = line.get(at..).unwrap_or_default();
    let found = find_level(rest, clock.is_some());
    match (found, priority) {
        (Some((level, after)), _) => {
            let message = after.map_or(at, |after| skip_separators(line, at + after));
            Some(Head { timestamp, level: Some(level), message })
        }
        (None, Some(level)) => Some(Head { timestamp, level: Some(level), message: at }),
        (None, None) => clock.map(|_| Head { timestamp, level: None, message: at }),
    }
}

/// `E1120 10:00:00.000000 123 file.go:1] message`: glog and klog.
fn glog(line: &[u8]) -> Option<Head> {
    let level = match line.first()? {
        b'I' => Level::Info,
        b'W' => Level::Warn,
        b'E' => Level::Error,
        b'F' => Level::Fatal,
        _ => return None,
    };
    let numbered = line.get(1..5)?.iter().all(u8::is_ascii_digit) && line.get(5) == Some(&b' ');
    let used = clock_prefix(line.get(6..)?).filter(|_| numbered)?;
    Some(Head { timestamp: None, level: Some(level), message: skip_separators(line, 6 + used) })
}

/// What a runtime prints when a program dies.
fn panic(line: &[u8]) -> Option<Head> {
    let starts = |start: &str| line.starts_with(start.as_bytes());
    let window = line.get(..line.len().min(160)).unwrap_or_default();
    let rust = starts("thread '") && memchr::memmem::find(window, b" panicked at").is_some();
    let level = match () {
        () if rust || starts("panic: ") => Level::Error,
        () if starts("fatal error: ") || starts("FATAL ERROR: ") => Level::Fatal,
        () => return None,
    };
    Some(Head { timestamp: None, level: Some(level), message: 0 })
}

/// `<34>` of syslog, and its version.
fn syslog_priority(line: &[u8]) -> (usize, Option<Level>) {
    let digits = line.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let number = line.get(1..=digits).and_then(|digits| std::str::from_utf8(digits).ok());
    let closed = line.first() == Some(&b'<') && line.get(digits + 1) == Some(&b'>');
    match number.and_then(|number| number.parse::<i64>().ok()).filter(|number| closed && *number < 192) {
        Some(number) => {
            let at = digits + 2;
            let version = line.get(at..at + 2) == Some(b"1 ");
            (at + if version { 2 } else { 0 }, Level::from_number(number % 8, Scale::Syslog))
        }
        None => (0, None),
    }
}

fn skip_separators(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b']' | b')' | b'|' | b':' | b'-')) {
        at += 1;
    }
    at.min(line.len())
}

/// The level that `rest` names near its beginning, and where the message goes on if it is the first word.
fn find_level(rest: &[u8], timed: bool) -> Option<(Level, Option<usize>)> {
    let window = rest.get(..rest.len().min(LEVEL_WITHIN)).unwrap_or_default();
    let is_word = |byte: &u8| byte.is_ascii_alphabetic();
    let mut at = 0;
    let mut first = true;
    while at < window.len() {
        let skipped = window.get(at..)?.iter().take_while(|byte| !is_word(byte)).count();
        let start = at + skipped;
        let length = window.get(start..)?.iter().take_while(|byte| is_word(byte)).count();
        let end = start + length;
        // Cut by the window, or a part of something longer: `/ERROR`, `ERROR_CODE`, `errors.rs`.
        let before = start.checked_sub(1).and_then(|before| rest.get(before)).copied();
        let after = rest.get(end).copied();
        let alone = matches!(before, None | Some(b' ' | b'\t' | b'[' | b'(' | b'<' | b'|' | b'-' | b':'))
            && matches!(after, None | Some(b' ' | b'\t' | b']' | b')' | b'>' | b'|' | b'-' | b':' | b','));
        let word = window.get(start..end)?;
        if alone
            && (3..=13).contains(&length)
            && let Some(level) = Level::from_name(word)
        {
            let upper = word.iter().all(u8::is_ascii_uppercase);
            let marked = after == Some(b':') || before == Some(b'[') && after == Some(b']');
            // In small letters `log` and `default` are words like others.
            let leads =
                first && (timed || marked) && !matches!(word, b"log" | b"default" | b"config" | b"fine");
            if upper || leads || before == Some(b'[') && after == Some(b']') {
                return Some((level, first.then_some(end)));
            }
        }
        first &= length == 0;
        at = end.max(start + 1);
    }
    None
}

/// Whether `line`, which is no beginning, goes on with the entry before it: it is indented, or a part of a
/// stack trace, or closes a bracket.
pub(super) fn continues(line: &[u8]) -> bool {
    const STARTS: &[&str] = &[
        "at ",
        "Caused by",
        "... ",
        "--- ",
        "During handling of",
        "The above exception",
        "goroutine ",
        "created by ",
        "stack backtrace:",
        "note: run with",
        "Suppressed: ",
        "exit status ",
    ];
    let numbered = line.first() == Some(&b'#') && line.get(1).is_some_and(u8::is_ascii_digit);
    line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
        || numbered
        || STARTS.iter().any(|start| line.starts_with(start.as_bytes()))
        || line.iter().all(|byte| b"{}[](),;^~ \t".contains(byte))
}

/// Whether `line` is the name of an exception, as it stands above or below a stack trace: `ValueError: bad`,
/// `java.lang.IllegalStateException`, `Traceback (most recent call last):`.
pub(super) fn is_exception(line: &[u8]) -> bool {
    const STARTS: &[&str] = &["Traceback (most recent", "Exception in thread ", "Uncaught ", "Unhandled "];
    const ENDS: &[&str] = &["Error", "Exception", "Interrupt", "Throwable", "Fault", "Iteration", "Exit"];
    if STARTS.iter().any(|start| line.starts_with(start.as_bytes())) {
        return true;
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let length = line.iter().take(128).take_while(|byte| is_name(byte)).count();
    let name = line.get(..length).unwrap_or_default();
    let name = name.rsplit(|byte| matches!(byte, b'.' | b'$')).next().unwrap_or_default();
    let ended = matches!(line.get(length), None | Some(b':' | b'\r'))
        || matches!(line.get(length..length + 2), Some(b" [" | b" {"));
    ended
        && name.first().is_some_and(u8::is_ascii_uppercase)
        && ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Whether `line` is nothing but the name of a function with its package, as Go prints frames: `main.serve`,
/// `net/http.(*conn).serve(0xc000102000)`.
pub(super) fn is_frame(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./*()-$,{}[]".contains(byte);
    let dot = memchr::memrchr(b'.', line.split(|byte| *byte == b'{').next().unwrap_or_default());
    line.first().is_some_and(u8::is_ascii_alphabetic)
        && line.iter().all(is_name)
        && dot.is_some_and(|dot| line.get(dot + 1).is_some_and(u8::is_ascii_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &str) -> String {
        match head(line.as_bytes()) {
            Some(Head { timestamp, level, message }) => format!(
                "{} {} {}",
                timestamp.map_or("-".to_owned(), |moment| moment.to_string()),
                level.map_or("-", Level::as_str),
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
            ("Nov 20 10:00:00 host app[1]: up", "- - host app[1]: up"),
            (
                "<11>1 2026-11-20T10:00:00Z host app - - boom",
                "2026-11-20T10:00:00.000Z error host app - - boom",
            ),
            ("ERROR:root:boom", "- error root:boom"),
            ("error: could not compile", "- error could not compile"),
            ("[warn] low disk", "- warn low disk"),
            ("E1120 10:00:00.000000   12 main.go:1] boom", "- error 12 main.go:1] boom"),
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

    #[test]
    fn parts_of_stack_traces_are_told_from_text() {
        for line in [
            "    at f (a.js:1:2)",
            "\tat a.B.c(B.java:1)",
            "Caused by: x",
            "... 12 more",
            "}",
            "  ^",
            "#1 /a.php",
        ] {
            assert!(continues(line.as_bytes()), "{line}");
        }
        for line in [
            "ValueError: bad",
            "java.lang.IllegalStateException",
            "TypeError: x is not a function",
            "Traceback (most recent call last):",
            "Error [ERR_X]: y",
            "a.b.C$InnerException: z",
        ] {
            assert!(is_exception(line.as_bytes()), "{line}");
        }
        for line in
            ["listening", "error: x", "ERROR: x", "Errors: 0", "Error handling is on", "attached", "#tag"]
        {
            assert!(!continues(line.as_bytes()) && !is_exception(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn frames_of_go_are_told_from_words() {
        for line in
            ["main.uber", "runtime.main", "net/http.(*conn).serve(0xc000102000,0x1)", "main.main.func1"]
        {
            assert!(is_frame(line.as_bytes()), "{line}");
        }
        for line in ["listening", "up.", "3.14", "see a.b now", ""] {
            assert!(!is_frame(line.as_bytes()), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[\\[\\]<>(): 0-9ERORINFOTZ-]{0,70}") {
            for line in [&*bytes, text.as_bytes()] {
                if let Some(head) = head(line) {
                    prop_assert!(head.message <= line.len());
                }
                continues(line);
                is_exception(line);
                is_frame(line);
            }
        }
    }
}
