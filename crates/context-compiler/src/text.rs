//! From bytes to text that is safe to quote: UTF-8, line feeds, no control characters.

use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Where a NUL makes a file binary, as git has it.
const BINARY_PROBE: usize = 8 * 1024;

/// Text, and what was done to make it that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Ends with a line feed, unless it is empty.
    pub(crate) text: String,
    /// `utf-8`, or what it was before: `utf-8, invalid bytes replaced`, `utf-16le`, `utf-16be`.
    pub(crate) encoding: &'static str,
    /// It has characters that change the direction of writing, so it may not read as it runs.
    pub(crate) bidirectional: bool,
}

/// `bytes` as text, or nothing where they are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<Text> {
    let (raw, encoding) = match bytes {
        [0xff, 0xfe, rest @ ..] => (utf16(rest, u16::from_le_bytes), "utf-16le"),
        [0xfe, 0xff, rest @ ..] => (utf16(rest, u16::from_be_bytes), "utf-16be"),
        _ => {
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
            if bytes.iter().take(BINARY_PROBE).any(|byte| *byte == 0) {
                return None;
            }
            match String::from_utf8_lossy(bytes) {
                Cow::Borrowed(text) => (Cow::Borrowed(text), "utf-8"),
                Cow::Owned(text) => (Cow::Owned(text), "utf-8, invalid bytes replaced"),
            }
        }
    };
    let text = normalise(&raw);
    let bidirectional = text.contains(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
    Some(Text { text, encoding, bidirectional })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text: String =
        char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).map(|c| c.unwrap_or('\u{fffd}')).collect();
    if !rest.is_empty() {
        text.push('\u{fffd}');
    }
    Cow::Owned(text)
}

/// `text` with line feeds alone, control characters spelled out, and one line feed at its end.
pub(crate) fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    let mut rest = text;
    while let Some(at) = rest.find(is_strange) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = match after.strip_prefix("\r\n") {
            Some(after) => {
                out.push('\n');
                after
            }
            None => {
                let mut characters = after.chars();
                if let Some(strange) = characters.next() {
                    spell(&mut out, strange);
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

/// What is not quoted as it is: controls, which terminals obey, and what XML cannot hold.
fn is_strange(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn spell(out: &mut String, c: char) {
    let code = u32::from(c);
    let _ = if code < 0x80 { write!(out, "\\x{code:02x}") } else { write!(out, "\\u{{{code:x}}}") };
}

/// What cannot be seen in a name, or moves what is around it: separators of lines, marks of direction and of joining,
/// tags (the categories Zl, Zp and Cf of Unicode).
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// `path` on one line, with nothing in it that ends a heading, a comment or an attribute, or shows it as another.
pub(crate) fn shown_path(path: &str) -> Cow<'_, str> {
    if !path.contains(|c| is_strange(c) || is_unseen(c) || matches!(c, '\t' | '\n' | '\\' | '`')) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len() + 8);
    for c in path.chars() {
        if is_strange(c) || is_unseen(c) || matches!(c, '\t' | '\n' | '`') {
            spell(&mut out, c);
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `bytes` in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `number` with a comma before each three digits.
pub(crate) fn grouped(number: usize) -> String {
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
    fn line_ends_and_marks_at_the_start_make_no_difference() {
        assert_eq!(text(b"\xef\xbb\xbfa\r\nb"), "a\nb\n");
        assert_eq!(text(b"\xff\xfea\0\n\0"), "a\n");
        assert_eq!(text(b"\xfe\xff\0a"), "a\n");
        assert_eq!(text(b"a\n \n\n"), "a\n");
        assert_eq!(text(b" \n"), "");
    }

    #[test]
    fn a_control_character_is_spelled_out() {
        assert_eq!(text(b"\x1b[2Ja\rb\x7f\xc2\x9b\tc"), "\\x1b[2Ja\\x0db\\x7f\\u{9b}\tc\n");
    }

    #[test]
    fn what_is_no_text_is_said() {
        assert_eq!(decode(b"\x7fELF\0"), None);
        let lossy = decode(b"caf\xe9 \xe2\x80\xae").unwrap();
        assert_eq!((lossy.text.as_str(), lossy.bidirectional), ("caf\u{fffd} \u{202e}\n", true));
        assert_eq!(lossy.encoding, "utf-8, invalid bytes replaced");
    }

    #[test]
    fn a_path_stays_on_its_line() {
        assert_eq!(shown_path("a\n## b`\\c"), "a\\x0a## b\\x60\\\\c");
        assert_eq!(
            shown_path("a\u{202e}b\u{2028}c\u{200d}\u{feff}"),
            "a\\u{202e}b\\u{2028}c\\u{200d}\\u{feff}"
        );
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
