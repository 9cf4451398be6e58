//! The reasons why a part of a patch does not fit, with the nearest place.

use std::collections::HashMap;
use std::fmt;

use super::file_patch::Hunk;
use super::lines::{IgnoredDifferences, PatchedFileLines};
use crate::filesystem::edit::{MAX_SHOWN_LINES, shorten, without_blanks};
use crate::filesystem::mask;

/// The most lines of a file that a line of a hunk is compared with, of those that are equal to it.
const MAX_EQUAL_LINES: usize = 50;

/// A part of a patch that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchProblem {
    /// The file, as the patch names it.
    pub path: String,
    /// The number of the hunk, from 1, and how many the file has; none for a problem with the file itself.
    pub hunk: Option<(usize, usize)>,
    /// The problem.
    pub problem: HunkProblem,
}

/// A reason why a hunk, or a whole file, does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HunkProblem {
    /// The file cannot be read, written or made. Holds the message.
    File(String),
    /// The lines of the hunk do not stand in the file.
    NotFound {
        /// The place where most of them stand.
        nearest: Option<NearestHunkPlace>,
        /// The line at which the lines that the hunk would make stand already.
        applied_at: Option<usize>,
        /// True if the lines contain a mask of a secret, which is not in the file.
        masked: bool,
    },
    /// The lines of the hunk stand in several places, and its line number is that of none.
    Ambiguous {
        /// The first of the lines at which they begin.
        lines: Vec<usize>,
        /// The number of places.
        total: usize,
    },
    /// No line is the one behind `@@`.
    AnchorNotFound {
        /// The text behind `@@`.
        anchor: String,
        /// Number and text of the nearest line.
        nearest: Option<(usize, String)>,
    },
    /// The hunk changes lines that another one changes too.
    Overlaps {
        /// The number of the other hunk.
        other: usize,
    },
    /// The file would be deleted, and the hunks do not remove all its lines.
    LeavesText,
}

/// The place in a file where most lines of a hunk stand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearestHunkPlace {
    /// The line at which it begins.
    pub line: usize,
    /// The number of lines of the hunk that must stand there.
    pub total: usize,
    /// The number of lines that differ.
    pub different: usize,
    /// The first of them: the number of the line in the file, its text if there is one, and what the patch expects.
    pub lines: Vec<(usize, Option<String>, String)>,
}

impl HunkProblem {
    pub(super) fn anchor_not_found(file: &PatchedFileLines<'_>, anchor: &str) -> Self {
        let nearest = most_similar_line(file, anchor)
            .map(|index| (index + 1, shorten(&String::from_utf8_lossy(file.lines[index].text))));
        Self::AnchorNotFound { anchor: shorten(anchor), nearest }
    }
}

/// Returns the problem of a hunk whose lines do not stand in the file.
pub(super) fn not_found(file: &PatchedFileLines<'_>, hunk: &Hunk, from: usize) -> HunkProblem {
    let (old, new) = (hunk.old_lines(), hunk.new_lines());
    let applied_at = if hunk.added() > 0 {
        file.find_all(&new, IgnoredDifferences::TrailingBlanks).first().map(|start| start + 1)
    } else {
        None
    };
    HunkProblem::NotFound {
        nearest: nearest_place(file, &old, from),
        applied_at,
        masked: old.iter().any(|line| mask::contains(line.as_bytes())),
    }
}

/// Returns the place where most of `old` stands line by line; if there is none, where the line stands that is most like
/// the longest of them.
fn nearest_place(file: &PatchedFileLines<'_>, old: &[&str], from: usize) -> Option<NearestHunkPlace> {
    let keys = file.keys(IgnoredDifferences::Indentation);
    let mut positions: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| !key.is_empty()) {
        let equal = positions.entry(key).or_default();
        if equal.len() < MAX_EQUAL_LINES {
            equal.push(index);
        }
    }
    // Each line of the hunk votes for the places at which it would be right.
    let mut votes: HashMap<i64, usize> = HashMap::new();
    for (offset, line) in old.iter().enumerate() {
        for index in positions.get(line.trim().as_bytes()).into_iter().flatten() {
            *votes.entry(*index as i64 - offset as i64).or_default() += 1;
        }
    }
    let distance = |start: i64| (start - from as i64).unsigned_abs();
    // Of equally good places, the nearest to the start of the search wins. The line decides last, because the order of
    // a map is random.
    let best = votes
        .into_iter()
        .max_by_key(|(start, votes)| (*votes, std::cmp::Reverse((distance(*start), *start))));
    let start = match best {
        Some((start, _)) => start,
        None => {
            let (offset, longest) = old.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
            most_similar_line(file, longest)? as i64 - offset as i64
        }
    };
    let line_at =
        |offset: usize| usize::try_from(start + offset as i64).ok().filter(|index| *index < keys.len());
    let differing: Vec<usize> = (0..old.len())
        .filter(|offset| line_at(*offset).is_none_or(|index| *keys[index] != *old[*offset].trim().as_bytes()))
        .collect();
    let lines = differing.iter().take(MAX_SHOWN_LINES).map(|offset| {
        let text = line_at(*offset).map(|index| shorten(&String::from_utf8_lossy(file.lines[index].text)));
        let number = usize::try_from(start + *offset as i64 + 1).unwrap_or_default();
        (number, text, shorten(old[*offset]))
    });
    let line = usize::try_from(start.max(0)).unwrap_or_default() + 1;
    Some(NearestHunkPlace { line, total: old.len(), different: differing.len(), lines: lines.collect() })
}

/// Returns the index of the line that is most like `wanted`, if one is.
fn most_similar_line(file: &PatchedFileLines<'_>, wanted: &str) -> Option<usize> {
    let text: Vec<_> =
        file.lines.iter().take(20_000).map(|line| String::from_utf8_lossy(line.text)).collect();
    let lines: Vec<&str> = text.iter().map(|line| &**line).collect();
    let wanted: String = wanted.trim().chars().take(400).collect();
    if wanted.is_empty() { None } else { crate::filesystem::edit::most_similar_line(&lines, &wanted) }
}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.problem, self.hunk) {
            (HunkProblem::File(message), _) => f.write_str(message),
            (problem, Some((number, total))) => {
                write!(f, "`{}`, hunk {number} of {total}: {problem}", self.path)
            }
            (problem, None) => write!(f, "`{}`: {problem}", self.path),
        }
    }
}

impl fmt::Display for HunkProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(message) => f.write_str(message),
            Self::NotFound { masked: true, .. } => f.write_str(
                "its lines contain [redacted:…], a mask shown in place of a secret; leave that line out of the hunk",
            ),
            Self::NotFound { applied_at: Some(line), .. } => write!(
                f,
                "its lines do not stand in the file, and those that it would make stand at line {line} already"
            ),
            Self::NotFound { nearest: None, .. } => {
                f.write_str("its lines do not stand in the file, nor anything like them; read the file again")
            }
            Self::NotFound { nearest: Some(nearest), .. } => nearest.fmt(f),
            Self::Ambiguous { lines, total } => {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                let more = if *total > lines.len() { " and more" } else { "" };
                write!(
                    f,
                    "its lines stand {total} times, at lines {}{more}; add lines around it, or its line number",
                    lines.join(", ")
                )
            }
            Self::AnchorNotFound { anchor, nearest } => {
                write!(f, "no line is `{anchor}`, which stands behind its `@@`")?;
                match nearest {
                    Some((number, line)) => write!(f, "; the nearest is\n{number}: {line}"),
                    None => Ok(()),
                }
            }
            Self::Overlaps { other } => write!(f, "it changes lines that hunk {other} changes too; make them one"),
            Self::LeavesText => f.write_str("it deletes the file and does not remove all its lines; read it again"),
        }
    }
}

impl fmt::Display for NearestHunkPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, total, different, lines } = self;
        write!(
            f,
            "its lines do not stand in the file; the nearest place is line {line}, where {different} of {total} differ:"
        )?;
        for (number, found, expected) in lines {
            match found {
                Some(found) => {
                    let is_blank = without_blanks(found) == without_blanks(expected);
                    let blanks = if is_blank { " (only blanks differ)" } else { "" };
                    write!(f, "\n{number} in the file: {found}\n  in the patch: {expected}{blanks}")?;
                }
                None => write!(f, "\n  in the patch, beyond the file: {expected}")?,
            }
        }
        if *different > lines.len() {
            write!(f, "\nand {} more", different - lines.len())?;
        }
        Ok(())
    }
}
