//! Why a filesystem tool could not do its work: what was wrong, where, and what to do.

use super::edit::EditProblem;
use crate::workspace;

/// Why a filesystem tool gave no result. Messages are written for whoever called the tool, which may be a
/// model: they name the path relative to its root, what was expected and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path was refused, or the operating system failed at it.
    #[error(transparent)]
    Path(#[from] workspace::Error),
    /// A number lies outside its range.
    #[error("`{parameter}` must be {expected}; {got} was given")]
    Range {
        /// The parameter's name.
        parameter: &'static str,
        /// What is allowed, in words.
        expected: &'static str,
        /// What was given.
        got: i64,
    },
    /// Two parameters contradict each other, or one is missing.
    #[error("{0}")]
    Parameters(&'static str),
    /// The first line asked for lies past the end.
    #[error("`{path}` has only {lines} lines, so there is no line {offset}")]
    PastEnd {
        /// The file.
        path: String,
        /// The line asked for.
        offset: u64,
        /// The lines there are.
        lines: u64,
    },
    /// The file is not text.
    #[error("`{path}` is not text but {kind} of {size} bytes{}", .advice)]
    Binary {
        /// The file.
        path: String,
        /// What it seems to be.
        kind: &'static str,
        /// Its length in bytes.
        size: u64,
        /// What to do instead, ready to follow the message.
        advice: &'static str,
    },
    /// The file is no image, audio or PDF.
    #[error("`{path}` is no image, audio or PDF file{}; use read_file for text", .kind.map(|kind| format!(" but {kind}")).unwrap_or_default())]
    NotMedia {
        /// The file.
        path: String,
        /// What it seems to be.
        kind: Option<&'static str>,
    },
    /// The file is larger than the tool takes.
    #[error("`{path}` has {size} bytes, more than the {limit} this tool takes")]
    TooLarge {
        /// The file.
        path: String,
        /// Its length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The new text holds masks of secrets that the file does not: writing it would destroy the secrets.
    #[error(
        "nothing was written to `{path}`: the text contains {mask}, the mask shown in place of a secret, which the file does not contain; writing it would overwrite the real secret. Change other parts with edit_file, leaving the masked part out"
    )]
    Masked {
        /// The file.
        path: String,
        /// The first such mask.
        mask: String,
    },
    /// An edit does not fit the file; none was made.
    #[error("nothing was changed in `{path}`: edit {number} of {count}: {problem}")]
    Edit {
        /// The file.
        path: String,
        /// Which edit, from 1.
        number: usize,
        /// How many were given.
        count: usize,
        /// What is wrong with it.
        problem: EditProblem,
    },
    /// A glob cannot be read.
    #[error("`{parameter}`: `{pattern}` is no glob: {reason}")]
    Glob {
        /// The parameter's name.
        parameter: &'static str,
        /// The glob.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A regular expression cannot be read.
    #[error(
        "`pattern` is no regular expression: {reason}\nTo look for this text as it stands, set literal to true"
    )]
    Regex {
        /// What is wrong with it, and where.
        reason: String,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// A number within `1..=max`, or `default` where none is given.
pub(super) fn ranged(
    parameter: &'static str,
    value: Option<i64>,
    max: i64,
    default: i64,
    expected: &'static str,
) -> Result<usize, Error> {
    let value = value.unwrap_or(default);
    match usize::try_from(value) {
        Ok(number) if number >= 1 && value <= max => Ok(number),
        _ => Err(Error::Range { parameter, expected, got: value }),
    }
}
