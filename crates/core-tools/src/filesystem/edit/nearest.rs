//! Finds the lines that come nearest to a text which does not occur, for the error message.

use memchr::{memchr_iter, memmem};

use super::problem::EditProblem;

/// The most lines of the file that are compared: comparing is slow, and the answer is only a hint.
const MAX_LINES_COMPARED: usize = 20_000;
/// The Sørensen–Dice coefficient below which two lines have little in common.
const MIN_SIMILARITY: f64 = 0.6;
/// The most characters of the wanted line that are compared, since the comparison is quadratic.
const MAX_COMPARED_CHARACTERS: usize = 400;
/// The most lines that an error shows.
pub(in crate::filesystem) const MAX_SHOWN_LINES: usize = 5;
/// The most characters of a line that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 200;
/// The most bytes that are compared without their blanks.
const MAX_BYTES_WITHOUT_BLANKS: usize = 8 << 20;

/// Returns [`EditProblem::NotFound`] with the lines of `text` that come nearest to `wanted`.
///
/// Text that differs in blanks only is found anywhere, also within a line. Otherwise the first line of `wanted` that is
/// not blank decides: it is compared with every line, and the lines around
/// the best match are shown.
pub(super) fn nearest_lines(text: &[u8], wanted: &str) -> EditProblem {
    if let Some((start, end)) = lines_without_blanks(text, wanted) {
        return EditProblem::NotFound { nearest: shown_lines(text, start, end), blanks_only: true };
    }
    let nothing_near = EditProblem::NotFound { nearest: Vec::new(), blanks_only: false };
    let blank_lines_before = wanted.lines().take_while(|line| line.trim().is_empty()).count();
    let Some(first) = wanted.lines().nth(blank_lines_before) else { return nothing_near };
    let first: String = first.trim().chars().take(MAX_COMPARED_CHARACTERS).collect();
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().take(MAX_LINES_COMPARED).collect();
    let Some(best) = most_similar_line(&lines, &first) else { return nothing_near };

    let start = best.saturating_sub(blank_lines_before);
    let wanted_lines = wanted.lines().count();
    let found: String = lines[start..].iter().take(wanted_lines).copied().collect();
    let shown = lines[start..].iter().take(wanted_lines.clamp(1, MAX_SHOWN_LINES));
    EditProblem::NotFound {
        nearest: shown.enumerate().map(|(offset, line)| (start + offset + 1, shorten(line))).collect(),
        blanks_only: without_blanks(&found) == without_blanks(wanted),
    }
}

/// Returns the indexes of the first and the last line of `text` in which `wanted` stands but for blanks.
fn lines_without_blanks(text: &[u8], wanted: &str) -> Option<(usize, usize)> {
    let wanted: Vec<u8> = wanted.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if wanted.is_empty() || text.len() > MAX_BYTES_WITHOUT_BLANKS {
        return None;
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut positions = Vec::with_capacity(text.len());
    for (position, byte) in text.iter().enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
        kept.push(*byte);
        positions.push(position);
    }
    let found = memmem::find(&kept, &wanted)?;
    // Line numbers are counted for the two ends of the match alone, and not for each position.
    let line_at = |position: usize| memchr_iter(b'\n', &text[..position]).count();
    Some((line_at(positions[found]), line_at(positions[found + wanted.len() - 1])))
}

/// Returns the lines from index `start` to `end`, the first few, with their numbers.
fn shown_lines(text: &[u8], start: usize, end: usize) -> Vec<(usize, String)> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().enumerate().skip(start).take((end - start + 1).min(MAX_SHOWN_LINES));
    lines.map(|(index, line)| (index + 1, shorten(line))).collect()
}

/// Returns the index of the line most similar to `wanted`, the first of equals, if any is similar at all.
pub(in crate::filesystem) fn most_similar_line(lines: &[&str], wanted: &str) -> Option<usize> {
    let wanted_without_blanks = without_blanks(wanted);
    let scores = lines.iter().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        let (shorter, longer) = (line.len().min(wanted.len()), line.len().max(wanted.len()));
        // Lines of such different lengths cannot reach the threshold; skipping them saves most comparisons.
        if longer > 2 * shorter || line.len() > 4 * MAX_COMPARED_CHARACTERS {
            return None;
        }
        if without_blanks(line) == wanted_without_blanks {
            return Some((index, 1.0));
        }
        let score = strsim::sorensen_dice(line, wanted);
        (score >= MIN_SIMILARITY).then_some((index, score))
    });
    // Only a higher score replaces the best, so that the first of equal lines stays.
    scores.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(index, _)| index)
}

pub(in crate::filesystem) fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

pub(in crate::filesystem) fn shorten(line: &str) -> String {
    let mut shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}
