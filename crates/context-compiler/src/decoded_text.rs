//! Decoding of bytes to text that is safe to quote: UTF-8, line feeds, no control characters.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// A NUL among so many first bytes makes a file binary. git looks at the first 8,000.
const BINARY_PROBE_BYTES: usize = 8 * 1024;

/// The encoding that a text was in before it became UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum TextEncoding {
    /// Valid UTF-8.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8 with invalid bytes, each replaced by U+FFFD.
    #[serde(rename = "utf-8, invalid bytes replaced")]
    Utf8Lossy,
    /// UTF-16 with a byte order mark, little-endian.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16 with a byte order mark, big-endian.
    #[serde(rename = "utf-16be")]
    Utf16Be,
}

/// A text that was decoded and normalised, and facts about its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodedText {
    /// The text. It ends with a line feed, unless it is empty.
    pub(crate) text: String,
    pub(crate) encoding: TextEncoding,
    /// True for a text with characters that change the direction of writing: a reader may see another order than a
    /// compiler does ("Trojan Source", CVE-2021-42574).
    pub(crate) bidirectional: bool,
}

/// Decodes and normalises `bytes`; `None` for binary content.
pub(crate) fn decode(bytes: &[u8]) -> Option<DecodedText> {
    let (raw, encoding) = match bytes {
        [0xff, 0xfe, rest @ ..] => (utf16(rest, u16::from_le_bytes), TextEncoding::Utf16Le),
        [0xfe, 0xff, rest @ ..] => (utf16(rest, u16::from_be_bytes), TextEncoding::Utf16Be),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            // After the byte order marks: a Latin text in UTF-16 has a NUL in every character.
            if bytes.iter().take(BINARY_PROBE_BYTES).any(|byte| *byte == 0) {
                return None;
            }
            match String::from_utf8_lossy(bytes) {
                Cow::Borrowed(text) => (Cow::Borrowed(text), TextEncoding::Utf8),
                Cow::Owned(text) => (Cow::Owned(text), TextEncoding::Utf8Lossy),
            }
        }
    };
    let text = normalise(&raw);
    let bidirectional = text.contains(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    Some(DecodedText { text, encoding, bidirectional })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text: String =
        char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).map(|c| c.unwrap_or('\u{fffd}')).collect();
    // Half a unit at the end: the file was cut off.
    if !rest.is_empty() {
        text.push('\u{fffd}');
    }
    Cow::Owned(text)
}

/// Returns `text` with CRLF as line feeds, control characters escaped, and one line feed at its end.
pub(crate) fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    let mut rest = text;
    while let Some(offset) = rest.find(needs_escape) {
        let (before, after) = rest.split_at(offset);
        out.push_str(before);
        rest = match after.strip_prefix("\r\n") {
            Some(after) => {
                out.push('\n');
                after
            }
            None => {
                let mut characters = after.chars();
                if let Some(control) = characters.next() {
                    push_escaped(&mut out, control);
                }
                characters.as_str()
            }
        };
    }
    out.push_str(rest);
    out.truncate(out.trim_end().len());
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// Returns true for control characters, which terminals obey, and for characters that XML 1.0 does not allow.
fn needs_escape(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn push_escaped(out: &mut String, c: char) {
    let code = u32::from(c);
    let _ = if code < 0x80 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
}

/// Returns true for characters that cannot be seen in a name, or that move the characters around them: line
/// separators, direction and joining marks, tags (the Unicode categories Zl, Zp and Cf).
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Returns `path` on one line, with everything escaped that could end a heading or an attribute, or make it look like
/// another path.
pub(crate) fn display_path(path: &str) -> Cow<'_, str> {
    if !path.contains(|c| needs_escape(c) || is_invisible(c) || matches!(c, '\t' | '\n' | '\\' | '`')) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len() + 8);
    for c in path.chars() {
        if needs_escape(c) || is_invisible(c) || matches!(c, '\t' | '\n' | '`') {
            push_escaped(&mut out, c);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns `bytes` in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns `number` with a comma between groups of three digits.
pub(crate) fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        decode(bytes).unwrap().text
    }

    #[test]
    fn line_ends_and_byte_order_marks_make_no_difference() {
        assert_eq!(text(b"\xef\xbb\xbfa\r\nb"), "a\nb\n");
        assert_eq!(text(b"\xff\xfea\0\n\0"), "a\n");
        assert_eq!(text(b"\xfe\xff\0a"), "a\n");
        assert_eq!(text(b"a\n \n\n"), "a\n");
        assert_eq!(text(b" \n"), "");
    }

    #[test]
    fn a_control_character_is_escaped() {
        assert_eq!(text(b"\x1b[2Ja\rb\x7f\xc2\x9b\tc"), "\\x1b[2Ja\\x0db\\x7f\\u{9b}\tc\n");
    }

    #[test]
    fn binary_content_is_not_decoded_and_invalid_bytes_are_reported() {
        assert_eq!(decode(b"\x7fELF\0"), None);
        let lossy = decode(b"caf\xe9 \xe2\x80\xae").unwrap();
        assert_eq!((lossy.text.as_str(), lossy.bidirectional), ("caf\u{fffd} \u{202e}\n", true));
        assert_eq!(lossy.encoding, TextEncoding::Utf8Lossy);
    }

    #[test]
    fn a_path_stays_on_its_line() {
        assert_eq!(display_path("a\n## b`\\c"), "a\\x0a## b\\x60\\\\c");
        assert_eq!(
            display_path("a\u{202e}b\u{2028}c\u{200d}\u{feff}"),
            "a\\u{202e}b\\u{2028}c\\u{200d}\\u{feff}"
        );
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
    }
}
