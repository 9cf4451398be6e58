//! Private keys in PEM armour (RFC 7468), whole or cut: a page of a file may hold only one end of a key.
//!
//! The lines that say BEGIN and END stay, and so does the number of lines: line numbers in an answer still
//! fit the file. Certificates and public keys are no secrets and are left alone.

use crate::span::SecretSpan;
use crate::token_runs::{BASE64, end_of, start_of};

/// The kind of secret that a key is.
pub(crate) const KIND: &str = "private-key";
/// A line of a key is at least this long, except the last. (64 in RFC 7468, 70 in OpenSSH's format, 76 in MIME.)
const MIN_FULL_LINE: usize = 40;

/// Appends to `spans` the lines of the key whose label has `PRIVATE KEY` at `label`.
pub(crate) fn find(text: &str, label: usize, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    // The label may have words before it, such as `RSA` or `ENCRYPTED`.
    let head = &bytes[label.saturating_sub(40)..label];
    let behind = label + "PRIVATE KEY".len();
    let dashes = behind + bytes[behind..].iter().take(12).position(|&byte| byte == b'-').unwrap_or(12);
    if !bytes[dashes.min(bytes.len())..].starts_with(b"----") {
        return;
    }
    let begin = memchr::memmem::rfind(head, b"-BEGIN ").or_else(|| memchr::memmem::rfind(head, b"- BEGIN "));
    let end = memchr::memmem::rfind(head, b"-END ").or_else(|| memchr::memmem::rfind(head, b"- END "));
    match (begin, end) {
        (begin, Some(end)) if begin.is_none_or(|begin| begin < end) => {
            let line = label - head.len() + end;
            before_end(bytes, line, spans);
        }
        (Some(_), _) => {
            let body = dashes + bytes[dashes..].iter().take(6).take_while(|&&byte| byte == b'-').count();
            behind_begin(bytes, body, spans);
        }
        _ => {}
    }
}

/// Appends to `spans` the lines of a text that holds nothing but the middle of a key, as a page of its file or what
/// `sed -n` prints of it. A last line in brackets says which page it is.
///
/// The middle of a certificate looks the same and is masked too; but only a page that begins and ends
/// within one is taken, so none that has anything else, such as a frame, a name or a shorter last line.
pub(crate) fn middle(text: &str, spans: &mut Vec<SecretSpan>) {
    /// With fewer lines there are too few characters for [`is_mixed`].
    const MIN_LINES: usize = 3;
    /// The line length of RFC 7468, and that of OpenSSH's own format.
    const WIDTHS: [usize; 2] = [64, 70];
    let bytes = text.as_bytes();
    // This is all that most texts are asked.
    let width = end_of(bytes, 0, BASE64, WIDTHS[1] + 1);
    if !WIDTHS.contains(&width) {
        return;
    }
    let first = spans.len();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_ascii_end();
        let end = start + line.len();
        if body.len() == width && end_of(bytes, start, BASE64, width) == start + width {
            spans.push(SecretSpan { start, end: start + width, kind: KIND });
        } else if end < bytes.len() || !(body.starts_with('[') && body.ends_with(']')) {
            spans.truncate(first);
            return;
        }
        start = end;
    }
    if spans.len() - first < MIN_LINES || !is_mixed(&bytes[..MIN_LINES * width]) {
        spans.truncate(first);
    }
}

/// Returns true if nearly all of the 64 characters are there, as they are in 192 of anything encrypted or random. A
/// list of SHA-256 sums, whose lines are as long, has 16 of them.
fn is_mixed(bytes: &[u8]) -> bool {
    let mut seen = [false; 256];
    bytes.iter().for_each(|&byte| seen[byte as usize] = true);
    seen.iter().filter(|&&seen| seen).count() >= 50
}

/// Appends the lines of the body that begins at `body`, behind a BEGIN line.
fn behind_begin(bytes: &[u8], body: usize, spans: &mut Vec<SecretSpan>) {
    // The body has no dashes, so the next ones are its end, or the start of something else.
    let next = memchr::memmem::find(&bytes[body..], b"----").map(|at| body + at);
    let end = next.unwrap_or(bytes.len());
    let has_end = next.is_some_and(|at| {
        let label =
            bytes[at..].iter().position(|&byte| byte != b'-').map_or(&[][..], |dashes| &bytes[at + dashes..]);
        label.trim_ascii_start().starts_with(b"END ")
    });
    let first = spans.len();
    let mut start = body;
    while start < end {
        let line_end = memchr::memchr(b'\n', &bytes[start..end]).map_or(end, |at| start + at);
        let has_body = spans.len() > first;
        let group = longest_group(bytes, start, line_end)
            .filter(|(from, to)| to - from >= if has_end { 16 } else { MIN_FULL_LINE })
            .or_else(|| {
                last_group(bytes, start, line_end).filter(|(from, _)| {
                    line_end == bytes.len() || (has_end && (has_body || is_alone(bytes, start, *from)))
                })
            });
        if let Some((from, to)) = group {
            spans.push(SecretSpan { start: from, end: to, kind: KIND });
        } else if !has_end && !is_gap(&bytes[start..line_end]) {
            return;
        }
        start = line_end + 1;
    }
}

/// Appends the lines above the END line at `marker`, of a key whose BEGIN is not in the text.
fn before_end(bytes: &[u8], marker: usize, spans: &mut Vec<SecretSpan>) {
    let first = spans.len();
    // A key that has its BEGIN was masked from there.
    let mut end = start_of_line(bytes, marker);
    // In JSON the whole key is one line.
    let group = longest_group(bytes, end, marker).filter(|(from, to)| {
        to - from >= 16 && bytes[*to..marker].iter().all(|byte| matches!(byte, b'\\' | b'n' | b'r' | b'-'))
    });
    spans.extend(group.map(|(start, end)| SecretSpan { start, end, kind: KIND }));
    let mut is_nearest = true;
    while end > 0 {
        let line_end = end - 1;
        let start = start_of_line(bytes, line_end);
        let group = longest_group(bytes, start, line_end)
            .filter(|(from, to)| to - from >= MIN_FULL_LINE)
            .or_else(|| last_group(bytes, start, line_end).filter(|_| is_nearest));
        let Some((from, to)) = group else { break };
        if spans[..first].last().is_some_and(|span| span.end >= from) {
            break;
        }
        spans.push(SecretSpan { start: from, end: to, kind: KIND });
        is_nearest = false;
        end = start;
    }
}

/// Appends the lines of the body of a key in `PuTTY`'s format. `count` is the place of their number.
pub(crate) fn putty(bytes: &[u8], count: usize, spans: &mut Vec<SecretSpan>) {
    /// An RSA key with 16384 bits has fewer.
    const MAX_LINES: usize = 250;
    let mut start = memchr::memchr(b'\n', &bytes[count..]).map_or(bytes.len(), |at| count + at + 1);
    let digits = bytes[count..start].trim_ascii();
    let lines = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    for _ in 0..usize::min(lines, MAX_LINES) {
        let end = end_of(bytes, start, BASE64, bytes.len() - start);
        let end = end + bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
        if end == start {
            return;
        }
        spans.push(SecretSpan { start, end, kind: KIND });
        start = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at + 1);
    }
}

fn start_of_line(bytes: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1)
}

/// Returns true if a line belongs to a key without being a part of its body: empty, or a header of RFC 1421.
fn is_gap(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || memchr::memmem::find(line, b": ").is_some()
}

/// Returns the base64 at the end of a line, which may be the short last line of a key.
fn last_group(bytes: &[u8], line: usize, line_end: usize) -> Option<(usize, usize)> {
    let end = line + bytes[line..line_end].trim_ascii_end().len();
    let padding = bytes[line..end].iter().rev().take_while(|&&byte| byte == b'=').count();
    let start = start_of(bytes, end - padding, BASE64, end - padding - line);
    (end - start >= 4).then_some((start, end))
}

/// Returns true if nothing but blanks stands between the start of the line and `at`.
fn is_alone(bytes: &[u8], line: usize, at: usize) -> bool {
    bytes[line..at].trim_ascii().is_empty()
}

/// Returns the longest stretch of base64 in a line. Escaped line ends (`\n` in JSON and in environment files) are a
/// part of it, but neither its first nor its last.
pub(crate) fn longest_group(bytes: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut group: Option<(usize, usize)> = None;
    let mut at = start;
    while at < end {
        let mut run = end_of(bytes, at, BASE64, end - at);
        run += bytes[run..end].iter().take_while(|&&byte| byte == b'=').count();
        if run > at {
            let grown = (group.map_or(at, |(from, _)| from), run);
            group = Some(grown);
            if best.is_none_or(|(from, to)| to - from < grown.1 - grown.0) {
                best = Some(grown);
            }
            at = run;
            continue;
        }
        let slashes = bytes[at..end].iter().take_while(|&&byte| byte == b'\\').count();
        if slashes > 0 && matches!(bytes.get(at + slashes), Some(b'n' | b'r')) && at + slashes < end {
            at += slashes + 1;
        } else {
            group = None;
            at += 1;
        }
    }
    best
}
