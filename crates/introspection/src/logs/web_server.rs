//! Parses access logs: nginx, Apache, Traefik, Envoy, Django and Werkzeug.

use super::head::{FormatFamily, TextHead};
use super::level::EntryLevel;
use super::log_time::{LogTime, WrittenTime};
use serde_json::{Map, Value};

/// How far from the beginning of a line its time may stand.
const MAX_CLIENT_BYTES: usize = 250;

/// The parts of a line of an access log.
struct AccessLogLine<'a> {
    stamp: LogTime,
    /// The words before the time: the client, and perhaps the virtual host and the user.
    before: &'a [u8],
    request: &'a [u8],
    status: u16,
    /// The rest of the line after the status.
    after: &'a [u8],
    /// The offset of the request.
    message: usize,
}

fn parse(line: &[u8]) -> Option<AccessLogLine<'_>> {
    let open = memchr::memchr(b'[', line.get(..line.len().min(MAX_CLIENT_BYTES))?)?;
    let timed = line.get(open + 1..)?;
    if !timed.first()?.is_ascii_digit() {
        return None;
    }
    let before = line.get(..open)?;
    // A line that begins with the time names no client; else there are at least a client and two more words.
    if open > 0 && before.iter().filter(|byte| **byte == b' ').count() < 3 {
        return None;
    }
    let (stamp, used) = LogTime::parse_prefix(timed)?;
    let message = open + 1 + used + 3;
    if line.get(message - 3..message) != Some(b"] \"") {
        return None;
    }
    let end = closing_quote(line, message)?;
    let rest = line.get(end + 1..)?;
    let number = rest.get(1..4).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let ended = matches!(rest.get(4), None | Some(b' ' | b'\r'));
    if rest.first() != Some(&b' ') || !ended {
        return None;
    }
    let status = number.iter().fold(0_u16, |status, digit| status * 10 + u16::from(digit - b'0'));
    let (request, after) = (line.get(message..end)?, rest.get(4..).unwrap_or_default().trim_ascii());
    Some(AccessLogLine { stamp, before, request, status, after, message })
}

/// Returns the offset of the quote that ends the text which begins at `from`.
fn closing_quote(line: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let found = from + memchr::memchr2(b'"', b'\\', line.get(from..)?)?;
        match line.get(found)? {
            b'"' => return Some(found),
            _ => from = found + 2,
        }
    }
}

/// Parses the head of a line: a status of at least 500 is an error, one of at least 400 a warning.
pub(super) fn head(line: &[u8]) -> Option<TextHead> {
    let AccessLogLine { stamp, status, message, .. } = parse(line)?;
    let level = match status {
        500.. => EntryLevel::Error,
        400.. => EntryLevel::Warn,
        _ => EntryLevel::Info,
    };
    Some(TextHead {
        stamp: Some(WrittenTime::Full(stamp)),
        level: Some(level),
        message,
        family: FormatFamily::Access,
    })
}

/// Returns the message, the request with its status, and the other fields.
pub(super) fn details(line: &[u8]) -> Option<(String, Map<String, Value>)> {
    let access = parse(line)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = Map::new();
    let before = text(access.before);
    let mut words = before.split_whitespace();
    match (words.next(), words.clone().count()) {
        // Apache's vhost_combined names the host first.
        (Some(host), 3) if host.contains(':') && host.parse::<std::net::IpAddr>().is_err() => {
            fields.insert("host".to_owned(), host.into());
            fields.insert("client".to_owned(), words.next().unwrap_or_default().into());
        }
        (Some(client), _) => {
            fields.insert("client".to_owned(), client.into());
        }
        (None, _) => {}
    }
    if let Some(user) = words.nth(1).filter(|user| *user != "-") {
        fields.insert("user".to_owned(), user.into());
    }
    let request = text(access.request);
    let mut words = request.split(' ');
    // What a client sent may be no request at all.
    if let (Some(method), Some(target), Some(_), None) =
        (words.next(), words.next(), words.next(), words.next())
        && method.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        fields.insert("method".to_owned(), method.into());
        fields.insert("path".to_owned(), target.split('?').next().unwrap_or_default().into());
    }
    fields.insert("status".to_owned(), access.status.into());
    let after = text(access.after);
    let mut rest = after.as_str();
    let size = rest.split(' ').next().unwrap_or_default();
    if let Ok(bytes) = size.parse::<u64>() {
        fields.insert("bytes".to_owned(), bytes.into());
        rest = rest.get(size.len()..).unwrap_or_default().trim_start();
    } else if size == "-" {
        rest = rest.get(1..).unwrap_or_default().trim_start();
    }
    for name in ["referer", "agent"] {
        let Some(end) = rest.strip_prefix('"').and_then(|_| closing_quote(rest.as_bytes(), 1)) else { break };
        let value = rest.get(1..end).unwrap_or_default();
        if value != "-" {
            fields.insert(name.to_owned(), value.into());
        }
        rest = rest.get(end + 1..).unwrap_or_default().trim_start();
    }
    if !rest.is_empty() {
        fields.insert("rest".to_owned(), rest.into());
    }
    Some((format!("{request} {}", access.status), fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_of_a_combined_line_are_named() {
        let line = br#"203.0.113.9 - ada [20/Nov/2026:10:00:00 +0000] "GET /a\"b HTTP/1.1" 502 157 "-" "curl/8.5" rt=0.2"#;
        let (message, fields) = details(line).unwrap();
        assert_eq!(message, r#"GET /a\"b HTTP/1.1 502"#);
        assert_eq!(
            Value::Object(fields).to_string(),
            r#"{"client":"203.0.113.9","user":"ada","method":"GET","path":"/a\\\"b","status":502,"bytes":157,"agent":"curl/8.5","rest":"rt=0.2"}"#
        );
    }

    #[test]
    fn a_request_has_its_method_and_its_path_without_the_query() {
        for (request, method, path) in [
            ("POST /cart/7?from=mail HTTP/1.1", Some("POST"), Some("/cart/7")),
            ("GET / HTTP/2.0", Some("GET"), Some("/")),
            ("-", None, None),
            ("\\x16\\x03\\x01 a b", None, None),
            ("GET /", None, None),
        ] {
            let line = format!("203.0.113.9 - - [20/Nov/2026:10:00:00 +0000] \"{request}\" 400 0");
            let (_, fields) = details(line.as_bytes()).unwrap();
            let field = |name: &str| fields.get(name).and_then(Value::as_str);
            assert_eq!((field("method"), field("path")), (method, path), "{request}");
            assert_eq!(fields["status"], 400);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), end in "[\" 0-9a\\\\-]{0,30}") {
            for start in [&b""[..], b"h - - [20/Nov/2026:10:00:00 +0000] \"", b"[2026-11-20T10:00:00Z] \""] {
                for line in [[start, &bytes].concat(), [start, end.as_bytes()].concat()] {
                    if let Some(head) = head(&line) {
                        prop_assert!(head.message <= line.len());
                        prop_assert!(details(&line).is_some());
                    }
                }
            }
        }
    }
}
