//! Parses lines about one request whose status is the level, in other forms than that of access logs: morgan, uvicorn,
//! hypercorn, Squid and PHP's own server.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime};

/// The methods of requests.
const METHODS: [&[u8]; 9] =
    [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT"];
/// How far from its beginning the request of a line may stand.
const MAX_PREFIX_BYTES: usize = 120;

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

/// Returns the level of a status, a word of three digits.
fn status_level(word: &[u8]) -> Option<EntryLevel> {
    let digits = word.len() == 3 && word.iter().all(u8::is_ascii_digit);
    let status = std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()?;
    EntryLevel::from_status(status)
}

/// Parses `GET /orders 500 12.3 ms - 9`, `GET /orders 500 9 - 12.3 ms` and `::1 - GET /orders HTTP/1.1 500 9 - 12.3 ms`:
/// the formats `dev`, `tiny` and `short` of morgan, which have no time.
pub(super) fn morgan(line: &[u8]) -> Option<TextHead> {
    let mut all = words(line);
    let mut method = all.next()?;
    if !METHODS.contains(&method) {
        // The client, and the user or a dash.
        let is_client = method.contains(&b':') || method.contains(&b'.');
        method = all.nth(1).filter(|_| is_client)?;
    }
    let path = all.next()?;
    let mut status = all.next()?;
    if status.starts_with(b"HTTP/") {
        status = all.next()?;
    }
    let is_request = METHODS.contains(&method) && matches!(path.first(), Some(b'/' | b'*' | b'h'));
    let is_measured = words(line).any(|word| word == b"ms");
    let level = status_level(status).filter(|_| is_request && is_measured)?;
    Some(TextHead::untimed(Some(level), 0))
}

/// Returns the level of the status behind a request in quotes, as servers write it behind a level of their own:
/// `127.0.0.1:43022 - "GET /orders HTTP/1.1" 500 Internal Server Error`.
pub(super) fn quoted_status(rest: &[u8]) -> Option<EntryLevel> {
    let open = memchr::memchr(b'"', rest.get(..rest.len().min(MAX_PREFIX_BYTES))?)?;
    let request = rest.get(open + 1..)?;
    let close = memchr::memchr(b'"', request)?;
    if !METHODS.contains(&words(request.get(..close)?).next()?) {
        return None;
    }
    status_level(words(request.get(close + 1..)?.strip_prefix(b" ")?.trim_ascii_end()).next()?)
}

/// Parses what follows the time in a line of Squid, `  12 192.0.2.4 TCP_MISS/503 3433 GET http://… …`, and of PHP's own
/// server, `192.0.2.4:5000 [404]: GET /none`.
pub(super) fn server(rest: &[u8]) -> Option<TextHead> {
    let mut all = words(rest);
    let first = all.next()?;
    if first.contains(&b':') {
        let status = all.next()?.strip_prefix(b"[")?.strip_suffix(b"]:")?;
        let level =
            status_level(status).filter(|_| all.next().is_some_and(|word| METHODS.contains(&word)))?;
        return Some(TextHead::untimed(Some(level), 0));
    }
    let (_client, result, bytes, method) = (all.next()?, all.next()?, all.next()?, all.next()?);
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let is_method = METHODS.contains(&method) || method == b"NONE" || method == b"-";
    if !is_number(first) || !is_number(bytes) || !is_method {
        return None;
    }
    let slash = memchr::memchr(b'/', result)?;
    // Without an answer, as for a tunnel that was closed, the status is 000.
    let level = status_level(result.get(slash + 1..)?).unwrap_or(EntryLevel::Warn);
    result.get(..slash)?.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_').then_some(())?;
    Some(TextHead::untimed(Some(level), 0))
}

/// Parses a line of a load balancer of AWS: `https 2026-11-20T10:00:00.186641Z app/lb/5 192.0.2.4:2817 … 503 - 34 …`, whose
/// first status is that of the load balancer.
pub(super) fn load_balancer(line: &[u8]) -> Option<TextHead> {
    const KINDS: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];
    let mut all = words(line);
    let kind = all.next().filter(|kind| KINDS.contains(kind))?;
    let time = all.next()?;
    let (moment, _) = LogTime::parse_prefix(time).filter(|_| time.ends_with(b"Z"))?;
    let level = status_level(all.nth(6)?)?;
    let stamp = Some(WrittenTime::Full(moment));
    let message = kind.len() + 1 + time.len() + 1;
    Some(TextHead { stamp, level: Some(level), message, family: FormatFamily::Plain })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_status_is_the_level() {
        for (line, level) in [
            ("GET /orders 500 12.3 ms - 9", Some(EntryLevel::Error)),
            ("GET /orders 404 9 - 12.3 ms", Some(EntryLevel::Warn)),
            ("::1 - GET /orders HTTP/1.1 200 9 - 12.3 ms", Some(EntryLevel::Info)),
            ("192.0.2.4 ada POST /orders HTTP/1.1 503 - - 1 ms", Some(EntryLevel::Error)),
            ("GET /orders 500", None),
            ("GET the 500 things in 3 ms", None),
            ("see - GET /orders 500 1 ms", None),
        ] {
            assert_eq!(morgan(line.as_bytes()).and_then(|head| head.level), level, "{line}");
        }
        for (rest, level) in [
            (r#"127.0.0.1:4302 - "GET /boom HTTP/1.1" 500 Internal Server Error"#, Some(EntryLevel::Error)),
            (
                r#"127.0.0.1:4302 - - [25/Nov/2026:15:10:25 +0000] "GET /no 1.1" 404 - "-""#,
                Some(EntryLevel::Warn),
            ),
            (r#"said "GET out" 500 times"#, Some(EntryLevel::Error)),
            (r#"said "hello" 500 times"#, None),
            (r#"127.0.0.1 "GET /" 5000"#, None),
        ] {
            assert_eq!(quoted_status(rest.as_bytes()), level, "{rest}");
        }
        for (rest, level) in [
            ("   0 192.0.2.4 TCP_MISS/503 3433 GET http://shop/ - HIER_DIRECT/1 -", Some(EntryLevel::Error)),
            ("12 192.0.2.4 TCP_TUNNEL/000 0 CONNECT shop:443 - HIER_NONE/- -", Some(EntryLevel::Warn)),
            ("192.0.2.4:5000 [404]: GET /none - No such file", Some(EntryLevel::Warn)),
            ("192.0.2.4:5000 Accepted", None),
            ("1 of 2/500 3 GET", None),
        ] {
            assert_eq!(server(rest.as_bytes()).and_then(|head| head.level), level, "{rest}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(line: Vec<u8>, text in "[GET /:\"\\[\\]0-9.ms-]{0,60}") {
            for line in [&*line, text.as_bytes()] {
                morgan(line);
                quoted_status(line);
                server(line);
                load_balancer(line);
            }
        }
    }
}
