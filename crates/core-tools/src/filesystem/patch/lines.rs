//! The lines of a file, and how leniently they are compared.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::filesystem::edit::line_end_of;

/// The UTF-8 byte order mark, which belongs to no line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line of a file: its text, and its line end, which the last line may lack.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatchedFileLine<'a> {
    pub(super) text: &'a [u8],
    pub(super) end: &'a [u8],
}

/// The lines of a file.
pub(super) struct PatchedFileLines<'a> {
    pub(super) byte_order_mark: &'a [u8],
    pub(super) lines: Vec<PatchedFileLine<'a>>,
    /// The line end that new lines get.
    pub(super) line_end: &'static [u8],
    /// The keys by which lines are compared, for each leniency; computed when they are needed.
    keys: [OnceCell<Vec<Cow<'a, [u8]>>>; 4],
}

/// The differences that do not count when lines are compared, each with those before it: the levels of Codex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IgnoredDifferences {
    Exact,
    /// Blanks at the end.
    TrailingBlanks,
    /// Blanks at both ends.
    Indentation,
    /// Typographic dashes, quotes and blanks for those of ASCII.
    Punctuation,
}

impl IgnoredDifferences {
    pub(super) const ALL: [Self; 4] =
        [Self::Exact, Self::TrailingBlanks, Self::Indentation, Self::Punctuation];

    /// Returns the part of a line that is compared.
    pub(super) fn key(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => Cow::Borrowed(text),
            Self::TrailingBlanks => Cow::Borrowed(text.trim_ascii_end()),
            Self::Indentation => Cow::Borrowed(text.trim_ascii()),
            Self::Punctuation => {
                let text = String::from_utf8_lossy(text);
                // The text is trimmed again below, because a typographic blank at its ends has become a plain one.
                let plain: String = text.trim().chars().map(plain_character).collect();
                Cow::Owned(plain.trim().as_bytes().to_vec())
            }
        }
    }
}

/// Returns the ASCII character that looks like a typographic one.
fn plain_character(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

impl<'a> PatchedFileLines<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        let start = if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let (byte_order_mark, text) = content.split_at(start);
        let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let length = match line {
                [.., b'\r', b'\n'] => line.len() - 2,
                [.., b'\n'] => line.len() - 1,
                _ => line.len(),
            };
            let (text, end) = line.split_at(length);
            PatchedFileLine { text, end }
        });
        let lines = lines.collect();
        Self { byte_order_mark, lines, line_end: line_end_of(content), keys: Default::default() }
    }

    /// Returns the index of each line at which `wanted` begins.
    pub(super) fn find_all(&self, wanted: &[&str], leniency: IgnoredDifferences) -> Vec<usize> {
        let wanted: Vec<Cow<'_, [u8]>> = wanted.iter().map(|line| leniency.key(line.as_bytes())).collect();
        find_all(self.keys(leniency), &wanted)
    }

    /// Returns the parts of the lines that are compared.
    pub(super) fn keys(&self, leniency: IgnoredDifferences) -> &[Cow<'a, [u8]>] {
        // Most patches fit exactly, so that the keys of the other levels are never computed.
        self.keys[leniency as usize]
            .get_or_init(|| self.lines.iter().map(|line| leniency.key(line.text)).collect())
    }
}

/// Returns the positions of `wanted` in `lines`, in linear time (Knuth, Morris, Pratt).
// A patch and a file of equal lines would otherwise take the product of their lengths.
fn find_all(lines: &[Cow<'_, [u8]>], wanted: &[Cow<'_, [u8]>]) -> Vec<usize> {
    let mut borders = vec![0; wanted.len()];
    for index in 1..wanted.len() {
        let mut border: usize = borders[index - 1];
        while border > 0 && wanted[index] != wanted[border] {
            border = borders[border - 1];
        }
        borders[index] = border + usize::from(wanted[index] == wanted[border]);
    }
    let (mut found, mut matched) = (Vec::new(), 0);
    for (index, line) in lines.iter().enumerate() {
        while matched > 0 && (matched == wanted.len() || *line != wanted[matched]) {
            matched = borders[matched - 1];
        }
        matched += usize::from(wanted.get(matched).is_some_and(|wanted| wanted == line));
        if matched == wanted.len() && matched > 0 {
            found.push(index + 1 - matched);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn positions_are_those_of_a_plain_search(text in "[ab]{0,40}", wanted in "[ab]{1,6}") {
            let lines = |text: &str| text.chars().map(|c| c.to_string()).collect::<Vec<_>>();
            let (text, wanted) = (lines(&text), lines(&wanted));
            let keys = |lines: &[String]| -> Vec<Cow<'static, [u8]>> {
                lines.iter().map(|line| Cow::Owned(line.clone().into_bytes())).collect()
            };
            let plain: Vec<usize> = (0..text.len()).filter(|start| text[*start..].starts_with(&wanted)).collect();
            prop_assert_eq!(find_all(&keys(&text), &keys(&wanted)), plain);
        }

        #[test]
        fn lines_put_together_are_the_file(text in "(\u{feff})?[ab\r\n]{0,40}") {
            let lines = PatchedFileLines::new(text.as_bytes());
            let mut together = lines.byte_order_mark.to_vec();
            for line in &lines.lines {
                together.extend_from_slice(line.text);
                together.extend_from_slice(line.end);
            }
            prop_assert_eq!(together, text.into_bytes());
        }
    }
}
