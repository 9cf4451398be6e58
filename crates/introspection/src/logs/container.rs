//! Opens the wrappers that container runtimes put around each line: Kubernetes (CRI), docker's json-file, and the
//! names that docker compose and PM2 put in front.

use super::level::EntryLevel;
use super::log_time::LogTime;
use std::borrow::Cow;

/// A line of a container, without what its runtime added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerLine<'a> {
    pub(super) content: Cow<'a, [u8]>,
    pub(super) time: Option<LogTime>,
    /// The name of a field and its value: the stream or the service.
    pub(super) field: (&'static str, &'a [u8]),
    pub(super) piece: ContainerLinePiece,
}

/// The part of a line that a runtime wrote: runtimes cut long lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContainerLinePiece {
    /// True if the line goes on in the next piece of the same stream.
    pub(super) partial: bool,
    pub(super) stderr: bool,
}

/// Opens `line` if a runtime wrapped it.
// Called for every line that no prefix was remembered for, so each form is excluded by its first bytes.
pub(super) fn open(line: &[u8]) -> Option<ContainerLine<'_>> {
    match line {
        [b'{', b'"', b'l', b'o', b'g', b'"', b':', ..] => docker(line),
        [b'0'..=b'9', _, _, _, b'-', ..] => cri(line),
        [b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9', ..] => prefixed(line),
        _ => None,
    }
}

/// Returns whether a runtime cut the line that `bytes` begin with.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    open(line).is_some_and(|line| line.piece.partial)
}

/// Opens `2026-11-20T10:00:00.123456789Z stdout F content`.
fn cri(line: &[u8]) -> Option<ContainerLine<'_>> {
    let space = memchr::memchr(b' ', line.get(..line.len().min(40))?)?;
    let rest = line.get(space + 1..)?;
    let (stream, after) = match rest {
        [b's', b't', b'd', b'o', b'u', b't', b' ', after @ ..] => (&b"stdout"[..], after),
        [b's', b't', b'd', b'e', b'r', b'r', b' ', after @ ..] => (&b"stderr"[..], after),
        _ => return None,
    };
    let tags = after.get(..after.len().min(20))?;
    let length = memchr::memchr(b' ', tags).unwrap_or(tags.len());
    let partial = match after.get(..length)? {
        [b'P'] | [b'P', b':', ..] => true,
        [b'F'] | [b'F', b':', ..] => false,
        _ => return None,
    };
    let (time, used) = LogTime::parse_prefix(line)?;
    if used != space {
        return None;
    }
    let content = after.get(length + 1..).unwrap_or_default();
    let piece = ContainerLinePiece { partial, stderr: stream == b"stderr" };
    Some(ContainerLine { content: content.into(), time: Some(time), field: ("stream", stream), piece })
}

/// Opens `{"log":"content\n","stream":"stdout","time":"2026-11-20T10:00:00.123456789Z"}`.
fn docker(line: &[u8]) -> Option<ContainerLine<'_>> {
    let start = 7 + line.get(7..)?.iter().take_while(|byte| **byte == b' ').count();
    if line.get(start) != Some(&b'"') {
        return None;
    }
    let mut end = start + 1;
    loop {
        end += memchr::memchr2(b'"', b'\\', line.get(end..)?)?;
        if line.get(end) == Some(&b'"') {
            break;
        }
        end += 2;
    }
    let tail = line.get(end + 1..)?;
    // A logger may have a member `log` of its own: docker has exactly these beside it.
    let stream = member(tail, b"\"stream\":")?;
    let stderr = match stream {
        b"stdout" => false,
        b"stderr" => true,
        _ => return None,
    };
    let time = member(tail, b"\"time\":")?;
    let time = LogTime::parse(std::str::from_utf8(time).ok()?)?;
    let raw = line.get(start + 1..end)?;
    let (body, partial) = match raw.strip_suffix(b"\\n") {
        // `\\n` is a backslash and a letter.
        Some(body) if body.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0 => (body, false),
        _ => (raw, true),
    };
    let content = if memchr::memchr(b'\\', body).is_none() {
        Cow::Borrowed(body)
    } else {
        let quoted = [b"\"", body, b"\""].concat();
        // Docker puts U+FFFD for what is no UTF-8, so only a broken line fails here.
        Cow::Owned(serde_json::from_slice::<String>(&quoted).ok()?.into_bytes())
    };
    let piece = ContainerLinePiece { partial, stderr };
    Some(ContainerLine { content, time: Some(time), field: ("stream", stream), piece })
}

/// Returns the text of the first member with this key, which has no escapes.
fn member<'a>(tail: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(tail, key)? + key.len();
    let rest = tail.get(at..)?.trim_ascii_start().strip_prefix(b"\"")?;
    rest.get(..memchr::memchr(b'"', rest)?)
}

/// Opens `web-1  | content` of docker compose, and `0|web  | content` of PM2.
fn prefixed(line: &[u8]) -> Option<ContainerLine<'_>> {
    let window = line.get(..line.len().min(64))?;
    let first = memchr::memchr(b'|', window)?;
    let bar = first + memchr::memmem::find(window.get(first..)?, b"| ")?;
    let name = window.get(..bar)?.trim_ascii_end();
    let process = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let name = match name.get(process) {
        Some(b'|') if process > 0 => name.get(process + 1..)?.trim_ascii(),
        _ if bar > name.len() => name,
        _ => return None,
    };
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.iter().all(allowed) || EntryLevel::from_name(name).is_some() {
        return None;
    }
    // A date or a clock is no name of a service.
    if name.iter().all(|byte| !byte.is_ascii_alphabetic()) {
        return None;
    }
    let piece = ContainerLinePiece { partial: false, stderr: false };
    Some(ContainerLine { content: line.get(bar + 2..)?.into(), time: None, field: ("service", name), piece })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(line: &str) -> Option<(String, bool)> {
        let wrapped = open(line.as_bytes())?;
        Some((String::from_utf8_lossy(&wrapped.content).into_owned(), wrapped.piece.partial))
    }

    #[test]
    fn what_the_application_wrote_is_taken_out() {
        for (line, content, partial) in [
            ("2026-11-20T10:00:00.123456789Z stdout F up", "up", false),
            ("2026-11-20T10:00:00.123456789+00:00 stderr P half", "half", true),
            ("2026-11-20T10:00:00Z stdout F ", "", false),
            (r#"{"log":"up\n","stream":"stdout","time":"2026-11-20T10:00:00Z"}"#, "up", false),
            (
                r#"{"log":"say \"hi\"\\\n","stream":"stderr","time":"2026-11-20T10:00:00Z"}"#,
                "say \"hi\"\\",
                false,
            ),
            (r#"{"log":"half","stream":"stdout","time":"2026-11-20T10:00:00Z"}"#, "half", true),
            ("web-1  | up", "up", false),
            ("0|api  | up", "up", false),
        ] {
            assert_eq!(shown(line), Some((content.to_owned(), partial)), "{line}");
        }
        for line in [
            "2026-11-20T10:00:00Z stdout is closed",
            r#"{"log":"x","level":"error"}"#,
            "2026-11-20 10:00:00.123 | INFO | x",
            "10:00:00 | INFO | x",
            "INFO | x",
            "a b | c",
        ] {
            assert_eq!(shown(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[\\\\\"n,:{}a-z |]{0,50}") {
            for start in [&b""[..], b"{\"log\":\"", b"{\"log\":\"\\n\",\"stream\":\"stdout\",", b"2026-11-20T10:00:00Z stdout "] {
                open(&[start, &bytes].concat());
                open(&[start, text.as_bytes()].concat());
            }
        }
    }
}
