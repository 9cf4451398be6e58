//! Finds the level that a line of text names near its beginning.

use super::level::EntryLevel;

// Further on, a word like `ERROR` is part of the message.
/// The number of bytes in which a level is searched, brackets aside.
const WINDOW_BYTES: usize = 60;
/// The longest group in brackets that is passed over: the name of a thread or a logger.
const MAX_GROUP_BYTES: usize = 160;

/// Finds the level that `rest` names near its beginning. Returns also the offset after it, if nothing stands before it.
/// `timed` is true after a time, where a word in lower case counts too.
///
/// A word in brackets is a level only if it fills them: `[http-nio-8080-exec-1]` and `[error-handler-1]` are names of
/// threads.
pub(super) fn find_level(rest: &[u8], timed: bool) -> Option<(EntryLevel, Option<usize>)> {
    search(rest, timed, false)
}

/// Returns the level that a message begins with. Words of the message are not searched: before the level there are only
/// groups in brackets, numbers and what ends with a separator, as in `app - ERROR - message`.
pub(super) fn leading_level(message: &[u8]) -> Option<EntryLevel> {
    search(message, false, true).map(|(level, _)| level)
}

/// Finds a level, with `strict` only where no ordinary word stands before it.
fn search(rest: &[u8], timed: bool, strict: bool) -> Option<(EntryLevel, Option<usize>)> {
    let (mut at, mut remaining) = (0, WINDOW_BYTES);
    // True while nothing but groups in brackets was seen, and while nothing at all was.
    let (mut only_groups, mut first) = (true, true);
    while remaining > 0 {
        let blank = rest.get(at..)?.iter().take_while(|byte| is_separator(**byte)).count();
        at += blank;
        remaining = remaining.saturating_sub(blank);
        let token = rest.get(at..).filter(|rest| !rest.is_empty())?;
        if let Some((inner, length)) = group(token) {
            if let Some(level) = group_level(inner) {
                return Some((level, first.then_some(at + length)));
            }
            at += length;
            first = false;
            continue;
        }
        let length = token.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count().max(1);
        if let Some((level, used)) = token_level(token, length, timed && first, only_groups) {
            return Some((level, first.then_some(at + used).filter(|_| used > 0)));
        }
        if strict && !is_column(token, length) {
            return None;
        }
        // A program with its process, `unbound[12:0]`, is passed over as a group is.
        (first, only_groups) = (false, only_groups && is_program(token.get(..length).unwrap_or_default()));
        at += length;
        remaining = remaining.saturating_sub(length);
    }
    None
}

/// Returns whether `word` is a program with the number of its process: `app[12]` or `app[12:0]:`.
fn is_program(word: &[u8]) -> bool {
    let word = word.strip_suffix(b":").unwrap_or(word);
    let Some(open) = memchr::memchr(b'[', word) else { return false };
    let number = word.get(open + 1..).and_then(|rest| rest.strip_suffix(b"]"));
    open > 0
        && number.is_some_and(|number| {
            !number.is_empty() && number.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
        })
}

/// Returns whether the word of `length` bytes that `token` begins with is no word of a message: it is a number or a time,
/// or a separator follows.
fn is_column(token: &[u8], length: usize) -> bool {
    let after = token.get(length..).unwrap_or_default().trim_ascii_start();
    let separators = |byte: Option<&u8>| matches!(byte, Some(b'|' | b'-' | b':' | b'>' | b','));
    token.first().is_some_and(u8::is_ascii_digit)
        || separators(after.first())
        || separators(token.get(..length).and_then(<[u8]>::last))
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'|' | b'-' | b':' | b',' | b']' | b')' | b'>' | b'*')
}

/// Returns the content of the brackets that `token` begins with, and the length with them.
fn group(token: &[u8]) -> Option<(&[u8], usize)> {
    let close = match token.first()? {
        b'[' => b']',
        b'(' => b')',
        b'<' => b'>',
        _ => return None,
    };
    let window = token.get(..token.len().min(MAX_GROUP_BYTES))?;
    let end = memchr::memchr(close, window)?;
    Some((token.get(1..end)?.trim_ascii(), end + 1))
}

/// Returns the level that fills a pair of brackets: `[error]`, `[core:error]` (Apache), `[ERROR main.c:12]`.
fn group_level(inner: &[u8]) -> Option<EntryLevel> {
    let name = match memchr::memrchr(b':', inner) {
        Some(colon) if colon + 1 < inner.len() => inner.get(colon + 1..)?,
        _ => inner,
    };
    // MariaDB: in a line of text it is an ordinary word, as in rustc's `note: `.
    if name.eq_ignore_ascii_case(b"note") {
        return Some(EntryLevel::Info);
    }
    if (3..=13).contains(&name.len())
        && name.iter().all(u8::is_ascii_alphabetic)
        && let Some(level) = EntryLevel::from_name(name)
    {
        return Some(level);
    }
    let length = inner.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let leads = (3..=13).contains(&length) && matches!(inner.get(length), Some(b' ' | b':' | b'|'));
    EntryLevel::from_name(inner.get(..length)?).filter(|_| leads)
}

/// Finds the level in a token of `length` bytes. Returns also the length up to its end if it begins the token, else 0.
fn token_level(token: &[u8], length: usize, timed: bool, leads: bool) -> Option<(EntryLevel, usize)> {
    let word = |from: usize| {
        token
            .get(from..length)
            .map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count())
    };
    let named = |from: usize, count: usize| {
        let name = token.get(from..from + count).filter(|name| (3..=13).contains(&name.len()))?;
        Some((EntryLevel::from_name(name)?, name.iter().all(u8::is_ascii_uppercase), name))
    };
    let count = word(0);
    let after = token.get(count).copied();
    if let Some((level, upper, name)) = named(0, count) {
        let ended = matches!(after, None | Some(b' ' | b'\t' | b']' | b')' | b'>' | b'|' | b':' | b','));
        let marked = after == Some(b':') && matches!(token.get(count + 1), None | Some(b' ' | b'\t'))
            || after == Some(b':') && leads;
        // But in capitals, these are ordinary words.
        let ordinary = [&b"log"[..], b"default", b"config", b"fine", b"http", b"success"]
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word));
        if upper && (ended || matches!(after, Some(b'/' | b'-') if leads))
            || leads && ended && (marked || timed && !ordinary)
        {
            // What follows a slash is a part of the same name, as in `ERROR/MainProcess`.
            return Some((level, if after == Some(b'/') { 0 } else { count }));
        }
    }
    // `root:ERROR:boom`, `app.ERROR: boom` (Monolog), `app|ERROR|boom`, `app-ERROR-boom`
    let body = token.get(..length)?;
    let mut from = 0;
    while let Some(found) =
        body.get(from..)?.iter().position(|byte| matches!(byte, b'|' | b':' | b'.' | b'-' | b'[' | b'<'))
    {
        let before = *body.get(from + found)?;
        from += found + 1;
        let count = word(from);
        let after = token.get(from + count).copied();
        let ended = match before {
            b'.' => after == Some(b':'),
            b'-' => after == Some(b'-'),
            b'[' => after == Some(b']'),
            b'<' => after == Some(b'>'),
            _ => matches!(after, None | Some(b'|' | b':' | b' ' | b'\t')),
        };
        if ended && let Some((level, true, _)) = named(from, count) {
            return Some((level, 0));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(rest: &str) -> &'static str {
        find_level(rest.as_bytes(), true).map_or("-", |(level, _)| level.as_str())
    }

    #[test]
    fn names_of_threads_and_loggers_do_not_mislead() {
        for (rest, level) in [
            ("[http-nio-8080-exec-1] ERROR c.e.Orders - boom", "error"),
            ("[info-thread-3] ERROR boom", "error"),
            ("[trace-pool] WARN boom", "warn"),
            ("[error-handler-1] INFO up", "info"),
            ("[Error Handler 1] INFO up", "info"),
            ("error-handler-1 INFO up", "info"),
            ("[DEBUG-worker] ERROR boom", "error"),
            ("http server ERROR boom", "error"),
            (
                "[reactor-http-nio-with-a-name-that-is-longer-than-the-whole-window-of-sixty] ERROR boom",
                "error",
            ),
            ("(warn-pool) FATAL boom", "fatal"),
            ("[main] info up", "-"),
            ("[api] error: boom", "error"),
            ("[fatal.handlers] [INFO ] up", "info"),
            ("trace-id-7 ERROR boom", "error"),
            ("unbound[12:0] error: boom", "error"),
            ("app[12]: warning: boom", "warn"),
            ("app[x] error: boom", "-"),
            ("Config loaded from app.conf", "-"),
        ] {
            assert_eq!(found(rest), level, "{rest}");
        }
    }

    #[test]
    fn levels_stand_between_the_separators_of_the_loggers() {
        for (rest, level) in [
            ("ERROR:root:boom", "error"),
            ("root:ERROR:boom", "error"),
            ("root - ERROR - boom", "error"),
            ("ERROR-boom", "error"),
            ("app.ERROR: boom", "error"),
            ("|ERROR|App|boom", "error"),
            ("[core:error] [pid 1:tid 2] boom", "error"),
            ("[12] [ERROR] boom", "error"),
            ("ERROR/MainProcess] boom", "error"),
            ("<err> boom", "error"),
            ("/ERROR boom", "-"),
            ("ERROR_CODE=3", "-"),
            ("GET /errors.rs", "-"),
        ] {
            assert_eq!(found(rest), level, "{rest}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]<>(): |.ERORINFOTZhtp-]{0,90}", timed: bool) {
            for rest in [&*bytes, text.as_bytes()] {
                if let Some((_, Some(after))) = find_level(rest, timed) {
                    prop_assert!(after <= rest.len());
                }
            }
        }
    }
}
