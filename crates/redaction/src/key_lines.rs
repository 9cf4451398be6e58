//! Lines of private keys that are shown without what stands around them.
//!
//! A key in PEM armour is recognized by its BEGIN or END line. A page of a file, a match of a search or a hunk of a diff may
//! have neither. The caller then reads what stands around such lines, and masks them by that.

use crate::pem::{KIND, longest_group};
use crate::redactor::Redactor;

/// A part of a line with fewer bytes may stand in any text: it is masked only where it is the whole line.
const MIN_PART_BYTES: usize = 16;
/// The shortest last line of a key that is looked for.
const MIN_LINE_BYTES: usize = 4;

/// The lines of the private keys in a text, for a caller that shows a part of that text.
///
/// Made by [`Redactor::key_lines`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLines {
    /// The secret part of each line.
    parts: Vec<String>,
}

impl Redactor {
    /// Returns the lines of the private keys in `text`, which should reach [`KEY_CONTEXT_LINES`] lines beyond the part that
    /// is shown, on both sides.
    pub fn key_lines(&self, text: &str) -> KeyLines {
        let keys = self.secrets(text).into_iter().filter(|span| span.kind == KIND);
        let parts = keys.filter_map(|span| text.get(span.start..span.end)).map(str::to_owned).collect();
        KeyLines { parts }
    }
}

/// The most lines of a key on either side of one of its lines: RSA with 16384 bits has 200.
pub const KEY_CONTEXT_LINES: usize = 250;

/// Returns true if `line` may be one of a private key: it has a long stretch of base64, or nothing else.
///
/// Most lines of a text are none. Those that are cost a look at [what stands around them](Redactor::key_lines).
pub fn may_be_key_line(line: &str) -> bool {
    let line = line.trim();
    let group = longest_group(line.as_bytes(), 0, line.len()).map_or(0, |(start, end)| end - start);
    group >= MIN_PART_BYTES || (group >= MIN_LINE_BYTES && group == line.len())
}

impl KeyLines {
    /// Takes each of `lines` that may be one of a private key for one: what stands around them cannot be read.
    pub fn of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        Self {
            parts: lines.filter(|line| may_be_key_line(line)).map(|line| line.trim().to_owned()).collect(),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds the lines of another part of the text.
    pub fn extend(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// Returns `text`, which may have several lines, with a mark in the place of each line of a key.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let content = line.trim();
            let is_secret = |part: &&String| {
                if part.len() >= MIN_PART_BYTES {
                    content.contains(part.as_str())
                } else {
                    content == part.as_str()
                }
            };
            match self.parts.iter().filter(is_secret).max_by_key(|part| part.len()) {
                Some(part) => masked.push_str(&line.replace(part.as_str(), &format!("[redacted:{KIND}]"))),
                None => masked.push_str(line),
            }
        }
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RedactionOptions;

    fn redactor() -> Redactor {
        Redactor::new(RedactionOptions::default()).unwrap()
    }

    /// A key with lines of which no two are alike.
    fn key() -> (Vec<String>, String) {
        let line =
            |line: usize| format!("{line:02}AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefghijklmnopqrstuvw+/");
        let mut body: Vec<String> = (0..20).map(line).collect();
        body.push("c2hvcnQ=".to_owned());
        let label = ["PRIVATE", "KEY"].join(" ");
        let text =
            format!("before\n-----BEGIN {label}-----\n{}\n-----END {label}-----\nafter\n", body.join("\n"));
        (body, text)
    }

    #[test]
    fn each_line_of_a_key_is_masked_alone_as_in_its_file() {
        let (body, text) = key();
        let lines = redactor().key_lines(&text);
        for line in &body {
            assert!(may_be_key_line(line), "{line}");
            assert_eq!(lines.mask(line), "[redacted:private-key]", "{line}");
        }
        assert_eq!(lines.mask("  before\nafter\n"), "  before\nafter\n");
        assert_eq!(lines.mask(&text).matches("[redacted:private-key]").count(), body.len());
        let certificate = text.replace("PRIVATE KEY", "CERTIFICATE");
        assert!(redactor().key_lines(&certificate).is_empty());
    }

    #[test]
    fn a_short_last_line_is_masked_only_where_it_stands_alone() {
        let (_, text) = key();
        let lines = redactor().key_lines(&text);
        assert_eq!(lines.mask("the word c2hvcnQ= is short"), "the word c2hvcnQ= is short");
    }

    #[test]
    fn lines_of_code_and_text_are_not_looked_into() {
        for line in ["let value = compute(a, b);", "", "}", "a sentence of some words", "  - item: 5"] {
            assert!(!may_be_key_line(line), "{line}");
        }
    }
}
