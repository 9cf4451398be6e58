//! Finds the text of one edit, whatever its line endings, and replaces it.

use memchr::{memchr_iter, memmem};

use super::nearest::nearest_lines;
use super::request::Edit;
use crate::filesystem::error::EditProblem;
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

/// Replaces `edit.old_string` in `text` by `edit.new_string`.
pub(super) fn replace(text: &[u8], edit: &Edit) -> Result<EditedText, EditProblem> {
    if edit.old_string.is_empty() {
        return Err(EditProblem::Empty);
    }
    if edit.old_string == edit.new_string {
        return Err(EditProblem::Same);
    }
    // Models write LF whatever the file has, so a mismatch of line endings alone must not fail the edit. The
    // first reading that occurs decides, and the new text takes the same endings.
    let found = line_endings_to_try(text).into_iter().find_map(|endings| {
        let old = with_line_endings(&edit.old_string, endings);
        let positions: Vec<usize> = memmem::find_iter(text, &old).collect();
        (!positions.is_empty()).then_some((positions, old.len(), endings))
    });
    let Some((positions, old_length, endings)) = found else {
        // Text with a mask in it is looked for first: a manual may well contain one.
        return Err(if mask::contains(edit.old_string.as_bytes()) {
            EditProblem::Masked
        } else {
            nearest_lines(text, &edit.old_string)
        });
    };
    if positions.len() > 1 && !edit.replace_all {
        let lines = line_numbers(text, &positions);
        return Err(EditProblem::NotUnique { matches: positions.len(), lines });
    }
    let new = with_line_endings(&edit.new_string, endings);
    let growth = positions.len() * new.len().saturating_sub(old_length);
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
