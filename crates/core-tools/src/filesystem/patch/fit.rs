//! Fits hunks into a file, and makes the new text.

use super::file_patch::{Hunk, HunkLine};
use super::lines::{IgnoredDifferences, PatchedFileLine, PatchedFileLines};
use super::misfit::{HunkProblem, not_found};

/// The most lines that a note or an error names.
const MAX_LINES_NAMED: usize = 5;

/// The lines of a file that a hunk stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HunkPlace {
    start: usize,
    length: usize,
    /// A remark on how the place was found, if it is not the obvious one.
    note: Option<String>,
}

/// A text after all hunks.
pub(super) struct PatchedText {
    pub(super) content: Vec<u8>,
    /// The number of a hunk, from 1, and a remark on its place.
    pub(super) notes: Vec<(usize, String)>,
}

/// Applies `hunks` to `content`.
///
/// # Errors
/// Each hunk, by its number from 1, that does not fit.
pub(super) fn apply_hunks(content: &[u8], hunks: &[Hunk]) -> Result<PatchedText, Vec<(usize, HunkProblem)>> {
    let file = PatchedFileLines::new(content);
    let places = place_all(&file, hunks)?;
    let mut ordered: Vec<(usize, &HunkPlace)> = places.iter().enumerate().collect();
    // Stable: of two insertions at one line the first stays first.
    ordered.sort_by_key(|(_, place)| place.start);
    let overlaps = ordered.windows(2).find_map(|pair| match pair {
        [(one, first), (other, second)] if first.start + first.length > second.start => Some((*one, *other)),
        _ => None,
    });
    if let Some((one, other)) = overlaps {
        return Err(vec![(one.max(other) + 1, HunkProblem::Overlaps { other: one.min(other) + 1 })]);
    }
    let mut writer = PatchedTextWriter::new(&file);
    let mut copied = 0;
    for (index, place) in ordered {
        writer.keep(&file.lines[copied..place.start]);
        writer.hunk(&hunks[index], &file.lines[place.start..place.start + place.length]);
        copied = place.start + place.length;
    }
    writer.keep(&file.lines[copied..]);
    let notes = places.into_iter().enumerate();
    let notes = notes.filter_map(|(index, place)| Some((index + 1, place.note?)));
    Ok(PatchedText { content: writer.finish(), notes: notes.collect() })
}

/// Finds the place of each hunk.
fn place_all(
    file: &PatchedFileLines<'_>,
    hunks: &[Hunk],
) -> Result<Vec<HunkPlace>, Vec<(usize, HunkProblem)>> {
    let (mut places, mut problems) = (Vec::new(), Vec::new());
    // The line after the last hunk, and the lines by which headers have been wrong so far.
    let (mut cursor, mut shift) = (0, 0);
    for (index, hunk) in hunks.iter().enumerate() {
        match place(file, hunk, cursor, shift) {
            Ok(place) => {
                cursor = cursor.max(place.start + place.length);
                // A hunk without old lines stands where its header says, so it shows nothing of a shift.
                if let Some(first_line) = hunk.first_line.filter(|_| place.length > 0) {
                    shift = signed(place.start) - (signed(first_line) - 1);
                }
                places.push(place);
            }
            Err(problem) => problems.push((index + 1, problem)),
        }
    }
    if problems.is_empty() { Ok(places) } else { Err(problems) }
}

fn signed(number: usize) -> i64 {
    // A quarter of the range, so that a sum with a shift cannot overflow.
    i64::try_from(number).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

/// Finds the place of `hunk`, at or after line `cursor` if it can.
fn place(
    file: &PatchedFileLines<'_>,
    hunk: &Hunk,
    cursor: usize,
    shift: i64,
) -> Result<HunkPlace, HunkProblem> {
    let anchored = line_after_anchors(file, &hunk.anchors, cursor);
    let old = hunk.old_lines();
    if old.is_empty() {
        let end = file.lines.len();
        let start = match (hunk.first_line, anchored) {
            // A range without lines names the line before it.
            (Some(line), _) => usize::try_from(signed(line) + shift).unwrap_or(0).min(end),
            (None, Ok(Some(line))) => line,
            (None, Ok(None)) => end,
            (None, Err(problem)) => return Err(problem),
        };
        return Ok(HunkPlace { start, length: 0, note: None });
    }
    let from = anchored.as_ref().ok().copied().flatten().unwrap_or(cursor);
    // The strictest comparison that finds anything decides. A looser one could find more places and make the hunk
    // ambiguous.
    for leniency in IgnoredDifferences::ALL {
        let found = file.find_all(&old, leniency);
        if found.is_empty() {
            continue;
        }
        let expected = hunk.first_line.map(|line| signed(line) - 1 + shift);
        let (start, mut notes) = match expected {
            Some(expected) => choose_by_number(&found, from, expected)?,
            None => choose_by_order(file, hunk, &found, from, anchored)?,
        };
        notes.extend(match leniency {
            IgnoredDifferences::Indentation => Some("matches with other indentation".to_owned()),
            IgnoredDifferences::Punctuation => Some("matches with other punctuation".to_owned()),
            IgnoredDifferences::Exact | IgnoredDifferences::TrailingBlanks => None,
        });
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        return Ok(HunkPlace { start, length: old.len(), note });
    }
    Err(not_found(file, hunk, from))
}

/// Chooses the place that a header with line numbers means. A number that is wrong does no harm where the lines stand
/// only once.
fn choose_by_number(
    found: &[usize],
    from: usize,
    expected: i64,
) -> Result<(usize, Vec<String>), HunkProblem> {
    if let Some(start) = found.iter().find(|start| signed(**start) == expected) {
        return Ok((*start, Vec::new()));
    }
    let after: Vec<usize> = found.iter().copied().filter(|start| *start >= from).collect();
    match (found, after.as_slice()) {
        ([start], _) | (_, [start]) => Ok((*start, vec![format!("stands at line {}", start + 1)])),
        _ => Err(HunkProblem::Ambiguous { lines: line_numbers(found), total: found.len() }),
    }
}

/// Chooses the first place after the hunk before, as Codex does.
fn choose_by_order(
    file: &PatchedFileLines<'_>,
    hunk: &Hunk,
    found: &[usize],
    from: usize,
    anchored: Result<Option<usize>, HunkProblem>,
) -> Result<(usize, Vec<String>), HunkProblem> {
    let length = hunk.old_lines().len();
    let after: Vec<usize> = found.iter().copied().filter(|start| *start >= from).collect();
    if hunk.is_at_end
        && let Some(start) = after.iter().find(|start| *start + length == file.lines.len())
    {
        return Ok((*start, Vec::new()));
    }
    match (after.as_slice(), found, anchored) {
        // A line behind `@@` that does not exist does no harm either where the lines stand only once.
        (_, [start], Err(HunkProblem::AnchorNotFound { anchor, .. })) => Ok((
            *start,
            vec![format!("no line is `{anchor}`, and its lines stand only at line {}", start + 1)],
        )),
        (_, _, Err(problem)) => Err(problem),
        ([start], ..) => Ok((*start, Vec::new())),
        ([start, ..], ..) if !hunk.anchors.is_empty() => Ok((*start, Vec::new())),
        ([start, ..], ..) => {
            let lines: Vec<String> = line_numbers(&after).iter().map(usize::to_string).collect();
            let more = if after.len() > lines.len() { " and more" } else { "" };
            let note = format!(
                "fits at lines {}{more}, and was made at line {}; `@@ LINE` before it chooses another",
                lines.join(", "),
                start + 1
            );
            Ok((*start, vec![note]))
        }
        ([], [start], _) => {
            Ok((*start, vec![format!("stands before the hunk or line before it, at line {}", start + 1)]))
        }
        ([], ..) => Err(HunkProblem::Ambiguous { lines: line_numbers(found), total: found.len() }),
    }
}

fn line_numbers(found: &[usize]) -> Vec<usize> {
    found.iter().take(MAX_LINES_NAMED).map(|start| start + 1).collect()
}

/// Returns the line after the last of `anchors`, each of which is looked for after the one before it.
fn line_after_anchors(
    file: &PatchedFileLines<'_>,
    anchors: &[String],
    cursor: usize,
) -> Result<Option<usize>, HunkProblem> {
    let mut next = cursor;
    for anchor in anchors {
        match find_anchor(file, anchor, next) {
            Some(line) => next = line + 1,
            None => return Err(HunkProblem::anchor_not_found(file, anchor)),
        }
    }
    Ok((!anchors.is_empty()).then_some(next))
}

/// Finds the line that is, begins with or contains `anchor`: after line `from`, else anywhere.
fn find_anchor(file: &PatchedFileLines<'_>, anchor: &str, from: usize) -> Option<usize> {
    let rotated = |is_match: &dyn Fn(&[u8]) -> bool, keys: &[std::borrow::Cow<'_, [u8]>]| {
        let matching =
            |range: std::ops::Range<usize>| range.into_iter().find(|index| is_match(&keys[*index]));
        let from = from.min(keys.len());
        matching(from..keys.len()).or_else(|| matching(0..from))
    };
    for leniency in IgnoredDifferences::ALL {
        let wanted = leniency.key(anchor.as_bytes());
        if let Some(line) = rotated(&|line| line == &*wanted, file.keys(leniency)) {
            return Some(line);
        }
    }
    let wanted = anchor.trim().as_bytes();
    if wanted.is_empty() {
        return None;
    }
    let keys = file.keys(IgnoredDifferences::Indentation);
    rotated(&|line| line.starts_with(wanted), keys)
        .or_else(|| rotated(&|line| memchr::memmem::find(line, wanted).is_some(), keys))
}

/// Writes the lines of the new text.
struct PatchedTextWriter<'a> {
    content: Vec<u8>,
    line_end: &'a [u8],
    /// True after a line without a line end, which needs one before another line follows.
    needs_end: bool,
}

impl<'a> PatchedTextWriter<'a> {
    fn new(file: &PatchedFileLines<'a>) -> Self {
        Self { content: file.byte_order_mark.to_vec(), line_end: file.line_end, needs_end: false }
    }

    fn line(&mut self, text: &[u8], end: &[u8]) {
        if self.needs_end {
            self.content.extend_from_slice(self.line_end);
        }
        self.content.extend_from_slice(text);
        self.content.extend_from_slice(end);
        self.needs_end = end.is_empty();
    }

    fn keep(&mut self, lines: &[PatchedFileLine<'_>]) {
        for line in lines {
            self.line(line.text, line.end);
        }
    }

    /// Writes the lines of `hunk` in the place of `old`. What stays is written as the file has it.
    fn hunk(&mut self, hunk: &Hunk, old: &[PatchedFileLine<'_>]) {
        let last_added = hunk.lines.iter().rposition(|line| matches!(line, HunkLine::Add(_)));
        let mut old = old.iter();
        for (index, line) in hunk.lines.iter().enumerate() {
            match line {
                HunkLine::Context(_) => self.keep(old.next().map(std::slice::from_ref).unwrap_or_default()),
                HunkLine::Remove(_) => {
                    old.next();
                }
                HunkLine::Add(text) => {
                    let is_last = hunk.ends_without_newline
                        && Some(index) == last_added
                        && index + 1 == hunk.lines.len();
                    let line_end = self.line_end;
                    self.line(text.as_bytes(), if is_last { b"" } else { line_end });
                }
            }
        }
    }

    fn finish(self) -> Vec<u8> {
        self.content
    }
}
