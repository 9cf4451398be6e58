//! Builds the message of an entry from its lines, without control characters and within the limit.

use super::stack_trace;

// A page holds 36 KB, so one entry with both at their limit still leaves room for others.
/// The maximum size of a message, and of all fields together, in bytes.
pub(super) const MAX_CONTENT_BYTES: usize = 8 << 10;
/// The part of a message that is kept for the causes within a long trace, and for its last lines.
const CAUSES_BYTES: usize = 1 << 10;
const LAST_LINES_BYTES: usize = 2 << 10;
/// The bytes that the notes about what was left out may take.
const NOTES_BYTES: usize = 100;

/// Converts `bytes` to text without control characters, so that a log cannot drive the reader's terminal.
pub(super) fn to_plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    // Characters beyond ASCII may be controls too. Most lines have neither.
    if text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return text.into_owned();
    }
    text.chars().filter(|character| *character == '\t' || !character.is_control()).collect()
}

/// Converts `bytes` like [`to_plain_text`], and keeps line feeds.
pub(super) fn to_plain_text_lines(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes.split(|byte| *byte == b'\n').map(to_plain_text).collect();
    lines.join("\n")
}

/// Cuts `text` to at most `max_bytes` bytes and appends how many bytes were left out.
pub(super) fn shorten(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let mut end = max_bytes;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let missing = text.len() - end;
        text.truncate(end);
        text.push_str(&format!(" [... {missing} bytes left out]"));
    }
}

/// Appends the lines that continue an entry to its message.
///
/// Where they are too long, the first and the last lines are kept, and of the others those that name a cause: Python
/// prints the exception below the trace, and Java the first cause after all frames.
pub(super) fn append(message: &mut String, lines: &[String]) {
    let size: usize = lines.iter().map(|line| line.len() + 1).sum();
    if message.len() + size <= MAX_CONTENT_BYTES {
        for line in lines {
            message.push('\n');
            message.push_str(line);
        }
        return;
    }
    let last_bytes = size.min(LAST_LINES_BYTES);
    shorten(message, MAX_CONTENT_BYTES - if lines.is_empty() { 0 } else { last_bytes + NOTES_BYTES });
    let first_bytes =
        MAX_CONTENT_BYTES.saturating_sub(message.len() + LAST_LINES_BYTES + CAUSES_BYTES + NOTES_BYTES);
    let first = count_within(lines.iter(), first_bytes);
    let rest = lines.get(first..).unwrap_or_default();
    let last = count_within(rest.iter().rev(), last_bytes);
    let (middle, end) = rest.split_at(rest.len() - last);
    let causes: Vec<&String> =
        middle.iter().filter(|line| stack_trace::tells_cause(line.as_bytes())).collect();
    let causes = causes.get(..count_within(causes.iter().copied(), CAUSES_BYTES)).unwrap_or_default();
    let left_out = middle.len() - causes.len();
    for line in lines.iter().take(first).chain(causes.iter().copied()) {
        message.push('\n');
        message.push_str(line);
    }
    if left_out > 0 {
        message.push_str(&format!("\n[... {left_out} lines left out]"));
    }
    for line in end {
        message.push('\n');
        message.push_str(line);
    }
}

/// Returns how many of the lines have at most `bytes` bytes together.
fn count_within<'a>(lines: impl Iterator<Item = &'a String>, bytes: usize) -> usize {
    let mut remaining = bytes;
    lines
        .take_while(|line| match remaining.checked_sub(line.len() + 1) {
            Some(rest) => {
                remaining = rest;
                true
            }
            None => false,
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_trace_keeps_its_causes_and_its_end() {
        let mut lines: Vec<String> =
            (0..300).map(|frame| format!("\tat shop.Orders.f{frame}(Orders.java:{frame})")).collect();
        lines.insert(200, "Caused by: java.net.ConnectException: refused".to_owned());
        lines.push("Caused by: shop.RootCause: no pens".to_owned());
        let mut message = "failed".to_owned();
        append(&mut message, &lines);
        assert!(message.len() <= MAX_CONTENT_BYTES, "{}", message.len());
        assert!(message.starts_with("failed\n\tat shop.Orders.f0("));
        assert!(message.contains("\nCaused by: java.net.ConnectException: refused\n"));
        assert!(message.contains(" lines left out]"));
        assert!(message.ends_with("Caused by: shop.RootCause: no pens"));
    }

    proptest! {
        #[test]
        fn no_message_is_larger_than_its_limit(first in 0_usize..12_000, lines in prop::collection::vec(0_usize..3000, 0..20)) {
            let mut message = "x".repeat(first);
            let lines: Vec<String> = lines.into_iter().map(|length| "é".repeat(length)).collect();
            append(&mut message, &lines);
            prop_assert!(message.len() <= MAX_CONTENT_BYTES + NOTES_BYTES);
        }
    }
}
