//! Parses access logs of IIS (W3C extended format) and `HAProxy` (HTTP format), whose statuses are the level.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime};

/// The methods that a line of IIS may have.
const METHODS: [&[u8]; 9] =
    [b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT"];
/// How far from the beginning of a line of `HAProxy` its time may stand.
const MAX_CLIENT_BYTES: usize = 64;

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.trim_end().parse().ok()
}

/// Returns the level of a status; one below zero is that of a request that was aborted.
fn level(status: i64) -> Option<EntryLevel> {
    match status {
        -1 => Some(EntryLevel::Warn),
        status => EntryLevel::from_status(u16::try_from(status).ok()?),
    }
}

/// Parses what follows the time in a line of IIS, `10.0.0.1 GET /orders id=1 443 - 10.0.0.9 Agent - 500 0 0 123`: status,
/// substatus, the code of Windows, and the time taken come last. Returns the level and the offset of the request.
pub(super) fn iis(rest: &[u8]) -> Option<(EntryLevel, usize)> {
    let address_end = memchr::memchr(b' ', rest)?;
    let address = std::str::from_utf8(rest.get(..address_end)?).ok()?;
    let request = address_end + 1;
    let method = words(rest.get(request..)?).next()?;
    if !METHODS.contains(&method) || address.parse::<std::net::IpAddr>().is_err() {
        return None;
    }
    let words: Vec<&[u8]> = words(rest.trim_ascii_end()).collect();
    let [.., status, substatus, code, taken] = words.as_slice() else { return None };
    let is_numbers = [substatus, code, taken].into_iter().all(|word| number(word).is_some());
    let level = if is_numbers { level(number(status)?)? } else { return None };
    Some((level, request))
}

/// Parses a line of `HAProxy`: `10.0.1.2:33317 [20/Nov/2026:10:00:00.655] http-in static/srv1 10/0/30/69/109 200 2750 - -
/// ---- …` of HTTP, the same with three times and without a status of TCP, and the error of a connection.
pub(super) fn haproxy(line: &[u8]) -> Option<TextHead> {
    let open = memchr::memchr(b'[', line.get(..line.len().min(MAX_CLIENT_BYTES))?)?;
    let client = line.get(..open)?.strip_suffix(b" ")?;
    if !client.contains(&b':') || client.contains(&b' ') {
        return None;
    }
    let (moment, used) = LogTime::parse_prefix(line.get(open + 1..)?)?;
    let message = open + 1 + used + 2;
    if line.get(message - 2..message) != Some(b"] ") {
        return None;
    }
    let mut words = words(line.get(message..)?);
    let (frontend, server, timers) = (words.next()?, words.next()?, words.next()?);
    let level = match timers.iter().filter(|byte| **byte == b'/').count() {
        // `http-in/1: SSL handshake failure`
        _ if frontend.contains(&b'/') && frontend.ends_with(b":") => EntryLevel::Warn,
        4 if server.contains(&b'/') => level(number(words.next()?)?)?,
        2 if server.contains(&b'/') => {
            number(words.next()?)?;
            session_level(words.next()?)?
        }
        _ => return None,
    };
    let stamp = Some(WrittenTime::Full(moment));
    Some(TextHead { stamp, level: Some(level), message, family: FormatFamily::Plain })
}

/// Returns the level of the two letters that tell how a session of TCP ended: by whom, and when.
fn session_level(state: &[u8]) -> Option<EntryLevel> {
    match state {
        [b'-', b'-'] => Some(EntryLevel::Info),
        // The server failed, or a resource of the proxy, or the proxy itself.
        [b'S' | b's' | b'R' | b'I', _] => Some(EntryLevel::Error),
        [b'C' | b'c' | b'P' | b'L' | b'D' | b'U' | b'K' | b'-', _] => Some(EntryLevel::Warn),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_status_is_the_level() {
        for (status, expected) in [(200, EntryLevel::Info), (404, EntryLevel::Warn), (503, EntryLevel::Error)]
        {
            let line =
                format!("10.0.0.1 GET /orders id=1 443 - 10.0.0.9 Mozilla/5.0+(X11) - {status} 0 0 123");
            assert_eq!(iis(line.as_bytes()), Some((expected, 9)));
            let line = format!(
                "10.0.1.2:33317 [20/Nov/2026:10:00:00.655] http-in static/srv1 10/0/30/69/109 {status} 2750 - - ---- 1/1/1/1/0 0/0 \"GET / HTTP/1.1\""
            );
            let head = haproxy(line.as_bytes()).unwrap();
            assert_eq!((head.level, head.message), (Some(expected), 42));
        }
        for (state, expected) in
            [("--", EntryLevel::Info), ("cD", EntryLevel::Warn), ("SC", EntryLevel::Error)]
        {
            let line = format!(
                "10.0.1.2:33313 [20/Nov/2026:10:00:00.655] fnt bck/srv1 0/0/5007 212 {state} 0/0/0/0/3 0/0"
            );
            assert_eq!(haproxy(line.as_bytes()).unwrap().level, Some(expected), "{line}");
        }
        let failed = b"10.0.1.2:33313 [20/Nov/2026:10:00:00.655] https-in/1: SSL handshake failure";
        assert_eq!(haproxy(failed).unwrap().level, Some(EntryLevel::Warn));
        for line in ["10.0.0.1 GET the 5 0 0 things", "10.0.0.1 said 200 0 0 0", "GET /"] {
            assert_eq!(iis(line.as_bytes()), None, "{line}");
        }
        assert_eq!(haproxy(b"a:1 [20/Nov/2026:10:00:00.655] three words here"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(line: Vec<u8>) {
            iis(&line);
            haproxy(&line);
        }
    }
}
