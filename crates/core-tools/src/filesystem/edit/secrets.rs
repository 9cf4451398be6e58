//! The secrets of a file that is edited: no edit takes one apart, and no answer shows one that lost its name.
//!
//! Redaction recognises a secret by its form and by the name beside it. An edit that removes the name, or a part of the
//! value, would show the rest, and one that finds a part of the value would say how it begins.

use memchr::memmem;

use super::problem::EditProblem;
use super::request::EditResult;
use crate::filesystem::error::Error;
use crate::redact::Redactor;

/// Values with fewer bytes are found in ordinary text.
const MIN_BYTES: usize = 6;
/// What stands in the place of a value that a changed text would no longer hide.
const MASK: &str = "[redacted:secret]";

/// The values that are masked in the file as it was.
#[derive(Debug, Default)]
pub(super) struct FileSecrets {
    values: Vec<String>,
}

impl FileSecrets {
    /// Finds the secrets of `original` with `redactor`.
    pub(super) fn new(original: &[u8], redactor: Option<&Redactor>) -> Self {
        let Some(redactor) = redactor else { return Self::default() };
        let text = String::from_utf8_lossy(original);
        let mut values: Vec<String> = redactor
            .spans(&text)
            .into_iter()
            .filter_map(|span| text.get(span))
            .filter(|value| value.len() >= MIN_BYTES)
            .map(str::to_owned)
            .collect();
        // The longest first, so that a value which is a part of another leaves nothing of that.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// Keeps those of `positions`, where a text of `length` bytes begins in `text`, that take no secret apart.
    pub(super) fn retain_whole(&self, text: &[u8], positions: &mut Vec<usize>, length: usize) {
        if positions.is_empty() {
            return;
        }
        for value in &self.values {
            for start in memmem::find_iter(text, value.as_bytes()) {
                let end = start + value.len();
                positions.retain(|&position| {
                    let overlaps = position < end && start < position + length;
                    let is_whole = position <= start && end <= position + length;
                    !overlaps || is_whole
                });
            }
        }
    }

    /// Masks the secrets in what is returned of an edit.
    pub(super) fn mask(&self, result: Result<EditResult, Error>) -> Result<EditResult, Error> {
        if self.values.is_empty() {
            return result;
        }
        match result {
            Ok(mut edited) => {
                self.mask_text(&mut edited.diff);
                Ok(edited)
            }
            Err(Error::Edit {
                path,
                number,
                count,
                problem: EditProblem::NotFound { mut nearest, blanks_only },
            }) => {
                nearest.iter_mut().for_each(|(_, line)| self.mask_text(line));
                Err(Error::Edit {
                    path,
                    number,
                    count,
                    problem: EditProblem::NotFound { nearest, blanks_only },
                })
            }
            Err(error) => Err(error),
        }
    }

    fn mask_text(&self, text: &mut String) {
        for value in &self.values {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), MASK);
            }
        }
    }
}
