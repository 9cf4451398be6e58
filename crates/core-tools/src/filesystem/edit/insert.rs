//! Inserts lines after a line.

use memchr::{memchr_iter, memmem};

use super::diff::MAX_BYTES;
use super::problem::EditProblem;
use super::replace::EditedText;

/// The UTF-8 byte order mark, which stays first.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Inserts `lines` after line `after` of `text`; 0 is its start. They become whole lines, with the line ends of the file.
pub(super) fn insert(text: &[u8], after: i64, lines: &str) -> Result<EditedText, EditProblem> {
    if lines.is_empty() {
        return Err(EditProblem::NothingToInsert);
    }
    let line_end = line_end_of(text);
    let start = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let total = count_lines(&text[start..]);
    let wanted = usize::try_from(after).ok().filter(|wanted| *wanted <= total);
    let Some(wanted) = wanted else { return Err(EditProblem::NoSuchLine { line: after, total }) };
    let position = match wanted.checked_sub(1) {
        None => start,
        Some(index) => memchr_iter(b'\n', text).nth(index).map_or(text.len(), |newline| newline + 1),
    };
    if text.len().saturating_add(lines.len()) as u64 > MAX_BYTES {
        return Err(EditProblem::TooLarge { matches: 1, limit: MAX_BYTES });
    }
    let mut changed = text[..position].to_vec();
    // The last line may have no line end yet.
    if position > start && changed.last() != Some(&b'\n') {
        changed.extend_from_slice(line_end);
    }
    for line in lines.strip_suffix('\n').unwrap_or(lines).split('\n') {
        changed.extend_from_slice(line.strip_suffix('\r').unwrap_or(line).as_bytes());
        changed.extend_from_slice(line_end);
    }
    changed.extend_from_slice(&text[position..]);
    Ok(EditedText { text: changed, count: 1 })
}

/// Returns the line end that most lines of `text` have.
pub(in crate::filesystem) fn line_end_of(text: &[u8]) -> &'static [u8] {
    let crlf = memmem::find_iter(text, b"\r\n").count();
    if crlf > memchr_iter(b'\n', text).count() / 2 { b"\r\n" } else { b"\n" }
}

/// Returns the number of lines; one without a line end counts.
fn count_lines(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count() + usize::from(text.last().is_some_and(|last| *last != b'\n'))
}
