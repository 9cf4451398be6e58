//! Finds the lines that come nearest to a text which does not occur, for the error message.

use crate::filesystem::error::EditProblem;

/// The most lines of the file that are compared: comparing is slow, and the answer is only a hint.
const MAX_LINES_COMPARED: usize = 20_000;
/// The Sørensen–Dice coefficient below which two lines have little in common.
const MIN_SIMILARITY: f64 = 0.6;
/// The most characters of the wanted line that are compared, since the comparison is quadratic.
const MAX_COMPARED_CHARACTERS: usize = 400;
/// The most lines that an error shows.
const MAX_SHOWN_LINES: usize = 5;
/// The most characters of a line that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Returns [`EditProblem::NotFound`] with the lines of `text` that come nearest to `wanted`.
///
/// The first line of `wanted` that is not blank decides: it is compared with every line, and the lines around
/// the best match are shown.
pub(super) fn nearest_lines(text: &[u8], wanted: &str) -> EditProblem {
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

/// Returns the index of the line most similar to `wanted`, the first of equals, if any is similar at all.
fn most_similar_line(lines: &[&str], wanted: &str) -> Option<usize> {
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
    scores.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(index, _)| index)
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

fn shorten(line: &str) -> String {
    let mut shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}
