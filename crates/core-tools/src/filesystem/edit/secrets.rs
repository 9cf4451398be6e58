//! The secrets of a file that is edited: no edit takes one apart, and no answer shows one that lost its name.
//!
//! Redaction recognises a secret by its form and by the name beside it. An edit that removes the name, or a part of the
//! value, would show the rest, and one that finds a part of the value would say how it begins.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::redact::Redactor;

/// Values with fewer bytes are found in ordinary text.
const MIN_BYTES: usize = 6;
/// The mark in the place of a value that a changed text would no longer hide.
const MASK: &str = "[redacted:secret]";

/// The values that are masked in the file as it was.
#[derive(Debug, Default)]
pub(super) struct FileSecrets {
    /// By their first bytes, so that a text is looked through once, however many there are; the longest first.
    by_beginning: HashMap<[u8; MIN_BYTES], Vec<String>>,
    longest: usize,
}

impl FileSecrets {
    /// Finds the secrets of `original` with `redactor`.
    pub(super) fn new(original: &[u8], redactor: Option<&Redactor>) -> Self {
        let mut secrets = Self::default();
        let Some(redactor) = redactor else { return secrets };
        let text = String::from_utf8_lossy(original);
        for value in redactor.spans(&text).into_iter().filter_map(|span| text.get(span)) {
            let Some(beginning) = value.as_bytes().first_chunk::<MIN_BYTES>() else { continue };
            secrets.longest = secrets.longest.max(value.len());
            secrets.by_beginning.entry(*beginning).or_default().push(value.to_owned());
        }
        for values in secrets.by_beginning.values_mut() {
            // The longest value comes first: a shorter one that begins alike would leave the rest of it visible.
            values.sort_by_key(|value| std::cmp::Reverse(value.len()));
            values.dedup();
        }
        secrets
    }

    /// Keeps those of `positions`, where a text of `length` bytes begins in `text`, that take no secret apart.
    pub(super) fn retain_whole(&self, text: &[u8], positions: &mut Vec<usize>, length: usize) {
        if self.by_beginning.is_empty() {
            return;
        }
        positions.retain(|&position| {
            let end = position + length;
            // One that begins before the text and reaches into it, or begins in it and reaches out.
            let before = position.saturating_sub(self.longest)..position;
            let takes_apart = before
                .chain(position..end)
                .filter_map(|start| Some((start, start + self.longest_at(text, start)?.len())))
                .any(|(from, to)| position < to && (from < position || to > end));
            !takes_apart
        });
    }

    /// Returns true if no secret has a byte between `from` and `to` of `text`. An empty place within one has none of its own,
    /// and still takes it apart.
    pub(super) fn are_apart_from(&self, text: &[u8], from: usize, to: usize) -> bool {
        if self.by_beginning.is_empty() {
            return true;
        }
        // A secret that covers this place can begin at most its own length before it.
        let starts = from.saturating_sub(self.longest)..to.max(from + 1);
        let secrets = starts.filter_map(|start| Some((start, start + self.longest_at(text, start)?.len())));
        let touches = |(start, end): (usize, usize)| {
            if from == to { start < from && from < end } else { start < to && from < end }
        };
        !secrets.into_iter().any(touches)
    }

    /// Returns `text` without the secrets.
    pub(super) fn masked<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        if self.by_beginning.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::from_utf8_lossy(text).into_owned();
        self.mask(&mut masked);
        Cow::Owned(masked.into_bytes())
    }

    /// Masks the secrets in `text`.
    pub(super) fn mask(&self, text: &mut String) {
        if self.by_beginning.is_empty() {
            return;
        }
        let mut masked = String::with_capacity(text.len());
        let (mut copied, mut at) = (0, 0);
        while at < text.len() {
            match self.longest_at(text.as_bytes(), at) {
                Some(value) => {
                    masked.push_str(&text[copied..at]);
                    masked.push_str(MASK);
                    at += value.len();
                    copied = at;
                }
                None => at += 1,
            }
        }
        masked.push_str(&text[copied..]);
        *text = masked;
    }

    /// Returns the longest secret that begins at `at`.
    fn longest_at(&self, text: &[u8], at: usize) -> Option<&str> {
        let rest = text.get(at..)?;
        let values = self.by_beginning.get(rest.first_chunk::<MIN_BYTES>()?)?;
        values.iter().map(String::as_str).find(|value| rest.starts_with(value.as_bytes()))
    }
}
