//! The text of a JSON file with comments and trailing commas: where its members lie.

use super::error::MergeError;
use serde_json::Value;
use std::ops::Range;

/// A text and its positions.
pub(super) struct JsonText<'a> {
    /// The text as it is.
    pub(super) original: &'a str,
    /// The same with blanks in place of comments and trailing commas, so that each position means the same in both.
    pub(super) plain: String,
}

/// An object in the text.
#[derive(Debug)]
pub(super) struct ObjectSpan {
    /// The position after its opening brace.
    pub(super) start: usize,
    /// The position of its closing brace.
    pub(super) end: usize,
    pub(super) members: Vec<MemberSpan>,
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct MemberSpan {
    pub(super) key: String,
    pub(super) key_start: usize,
    pub(super) value: Range<usize>,
}

impl<'a> JsonText<'a> {
    pub(super) fn new(original: &'a str) -> Self {
        let mut plain = original.as_bytes().to_vec();
        blank_comments(&mut plain);
        blank_trailing_commas(&mut plain);
        // Blanks take the place of whole characters, and a comment ends at the end of one.
        let plain = String::from_utf8(plain).unwrap_or_else(|_| original.to_owned());
        Self { original, plain }
    }

    /// Parses the text.
    pub(super) fn parse(&self) -> Result<Value, MergeError> {
        serde_json::from_str(&self.plain).map_err(|error| MergeError::Syntax(error.to_string()))
    }

    /// Returns the object whose opening brace is the first character from `position` on that is no blank. The text must
    /// have been parsed.
    pub(super) fn object_at(&self, position: usize) -> Option<ObjectSpan> {
        let bytes = self.plain.as_bytes();
        let mut at = self.skip_blanks(position);
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        at += 1;
        let start = at;
        let mut members = Vec::new();
        loop {
            at = self.skip_blanks(at);
            match bytes.get(at)? {
                b'}' => return Some(ObjectSpan { start, end: at, members }),
                b',' => at += 1,
                _ => {
                    let key_end = self.value_end(at)?;
                    let key = serde_json::from_str(&self.plain[at..key_end]).ok()?;
                    let value_start = self.skip_blanks(self.skip_blanks(key_end) + 1);
                    let value_end = self.value_end(value_start)?;
                    members.push(MemberSpan { key, key_start: at, value: value_start..value_end });
                    at = value_end;
                }
            }
        }
    }

    /// Returns the end of the value that begins at `start`.
    fn value_end(&self, start: usize) -> Option<usize> {
        let bytes = self.plain.as_bytes();
        let (mut at, mut depth) = (start, 0_usize);
        loop {
            match bytes.get(at)? {
                b'"' => at = string_end(bytes, at)?,
                b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
                b'}' | b']' => (at, depth) = (at + 1, depth.checked_sub(1)?),
                _ if depth > 0 => at += 1,
                _ => {
                    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
                    let rest = bytes[at..].iter().position(is_end);
                    return Some(rest.map_or(bytes.len(), |length| at + length));
                }
            }
            if depth == 0 {
                return Some(at);
            }
        }
    }

    fn skip_blanks(&self, from: usize) -> usize {
        let rest = self.plain.as_bytes().get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    /// Returns true if there is a comment in this part of the text.
    pub(super) fn has_comment(&self, part: Range<usize>) -> bool {
        let (original, plain) = (&self.original.as_bytes()[part.clone()], &self.plain.as_bytes()[part]);
        original.iter().zip(plain).any(|(original, plain)| original != plain && *original != b',')
    }

    /// Returns the position of a trailing comma in this part of the text.
    pub(super) fn trailing_comma(&self, part: Range<usize>) -> Option<usize> {
        let without_comments = {
            let mut bytes = self.original.as_bytes().to_vec();
            blank_comments(&mut bytes);
            bytes
        };
        without_comments[part.clone()].iter().position(|byte| *byte == b',').map(|at| part.start + at)
    }

    /// Returns the blanks with which the line of `position` begins, if nothing but blanks is before it.
    pub(super) fn indentation(&self, position: usize) -> Option<&'a str> {
        let line = &self.original[..position];
        let blanks = &line[line.rfind('\n').map_or(0, |end| end + 1)..];
        blanks.bytes().all(|byte| byte == b' ' || byte == b'\t').then_some(blanks)
    }
}

/// Returns the end of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Replaces comments, and a byte order mark, by blanks. Line ends stay.
fn blank_comments(bytes: &mut [u8]) {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'"', _) => at = string_end(bytes, at).unwrap_or(bytes.len()),
            (b'/', Some(b'/')) => {
                let length = bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
                bytes[at..at + length].fill(b' ');
                at += length;
            }
            (b'/', Some(b'*')) => {
                let end = bytes[at + 2..].windows(2).position(|two| two == b"*/").map(|found| at + found + 4);
                // One that does not end stays, and is an error of syntax.
                let Some(end) = end else { return };
                bytes[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at = end;
            }
            _ => at += 1,
        }
    }
}

/// Replaces each comma before a closing bracket by a blank.
fn blank_trailing_commas(bytes: &mut [u8]) {
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at = string_end(bytes, at).unwrap_or(bytes.len());
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
}
