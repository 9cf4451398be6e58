//! Finds the text of one edit, whatever its line endings, and replaces it.

use memchr::{memchr_iter, memmem};

use super::diff::MAX_BYTES;
use super::line_numbers::{numbered_lines, without_numbers};
use super::nearest::nearest_lines;
use super::problem::EditProblem;
use super::secrets::FileSecrets;
use crate::filesystem::mask;

/// The most line numbers named in an error.
const MAX_LINES_NAMED: usize = 10;

/// A text after one edit.
pub(super) struct EditedText {
    pub(super) text: Vec<u8>,
    /// The number of pieces replaced.
    pub(super) count: usize,
}

/// The line endings that a string is given before it is looked for or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEndings {
    /// As the caller wrote them.
    AsGiven,
    Lf,
    Crlf,
}

/// Replaces `old` in `text` by `new`: the one occurrence, or `all`.
///
/// An occurrence that would take one of `secrets` apart counts as none, so that nobody learns of it.
pub(super) fn replace(
    text: &[u8],
    old: &str,
    new: &str,
    all: bool,
    secrets: &FileSecrets,
) -> Result<EditedText, EditProblem> {
    if old.is_empty() {
        return Err(EditProblem::Empty);
    }
    if old == new {
        return Err(EditProblem::Same);
    }
    // Models write LF whatever the file has, so a mismatch of line endings alone must not fail the edit. The
    // first reading that occurs decides, and the new text takes the same endings.
    let Some((positions, old_length, endings)) = find(text, old, secrets) else {
        return Err(why_not_found(text, old, secrets));
    };
    if positions.len() > 1 && !all {
        let lines = line_numbers(text, &positions);
        return Err(EditProblem::NotUnique { matches: positions.len(), lines });
    }
    let new = with_line_endings(new, endings);
    let growth = positions.len().saturating_mul(new.len().saturating_sub(old_length));
    // Before the memory is taken: a short text in the place of millions of matches can make terabytes.
    if text.len().saturating_add(growth) as u64 > MAX_BYTES {
        return Err(EditProblem::TooLarge { matches: positions.len(), limit: MAX_BYTES });
    }
    let mut changed = Vec::with_capacity(text.len() + growth);
    let mut copied = 0;
    for &start in &positions {
        changed.extend_from_slice(&text[copied..start]);
        changed.extend_from_slice(&new);
        copied = start + old_length;
    }
    changed.extend_from_slice(&text[copied..]);
    Ok(EditedText { text: changed, count: positions.len() })
}

/// Returns where `old` begins in `text`, its length there, and the line endings it was found with.
fn find(text: &[u8], old: &str, secrets: &FileSecrets) -> Option<(Vec<usize>, usize, LineEndings)> {
    line_endings_to_try(text).into_iter().find_map(|endings| {
        let old = with_line_endings(old, endings);
        let mut positions: Vec<usize> = memmem::find_iter(text, &old).collect();
        secrets.retain_whole(text, &mut positions, old.len());
        (!positions.is_empty()).then_some((positions, old.len(), endings))
    })
}

/// Returns the reason why `old` does not occur, with what the caller probably meant.
fn why_not_found(text: &[u8], old: &str, secrets: &FileSecrets) -> EditProblem {
    // Text with a mask in it was looked for first: a manual may well contain one.
    if mask::contains(old.as_bytes()) {
        return EditProblem::Masked;
    }
    match numbered_lines(old) {
        Some((first, last)) if find(text, &without_numbers(old), secrets).is_some() => {
            EditProblem::LineNumbers { first, last }
        }
        // How near a guess comes to a secret tells as much as finding it.
        _ => nearest_lines(&secrets.masked(text), old),
    }
}

/// Returns the readings of a string's line endings, the likeliest in `text` first.
fn line_endings_to_try(text: &[u8]) -> [LineEndings; 3] {
    let crlf = memmem::find_iter(text, b"\r\n").count();
    // The majority decides: files with mixed endings exist.
    if crlf > memchr_iter(b'\n', text).count() / 2 {
        [LineEndings::Crlf, LineEndings::AsGiven, LineEndings::Lf]
    } else {
        [LineEndings::AsGiven, LineEndings::Lf, LineEndings::Crlf]
    }
}

/// Returns `text` with these line endings.
fn with_line_endings(text: &str, endings: LineEndings) -> Vec<u8> {
    match endings {
        LineEndings::AsGiven => text.as_bytes().to_vec(),
        LineEndings::Lf => text.replace("\r\n", "\n").into_bytes(),
        LineEndings::Crlf => text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes(),
    }
}

/// Returns the numbers, from 1, of the lines in which the first `positions` lie.
fn line_numbers(text: &[u8], positions: &[usize]) -> Vec<usize> {
    let (mut line, mut counted) = (1, 0);
    positions
        .iter()
        .take(MAX_LINES_NAMED)
        .map(|&position| {
            line += memchr_iter(b'\n', &text[counted..position]).count();
            counted = position;
            line
        })
        .collect()
}
