//! The errors of the filesystem tools.

use std::{fmt, io};

use crate::workspace;

/// The reason that a filesystem tool gave no result.
///
/// Messages are written for the caller of the tool, which may be a model: they name the path relative to its
/// root, what was expected and what to do next.
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
        /// The allowed range, in words.
        expected: &'static str,
        /// The number that was given.
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
        /// The number of lines in the file.
        lines: u64,
    },
    /// The file is not text.
    #[error("`{path}` is not text but {kind} of {size} bytes{}", .advice)]
    Binary {
        /// The file.
        path: String,
        /// The kind of file that its first bytes suggest, with an article.
        kind: &'static str,
        /// Its length in bytes.
        size: u64,
        /// Advice on what to do instead, ready to follow the message.
        advice: &'static str,
    },
    /// The file is no image, audio or PDF.
    #[error("`{path}` is no image, audio or PDF file{}; use read_file for text", .kind.map(|kind| format!(" but {kind}")).unwrap_or_default())]
    NotMedia {
        /// The file.
        path: String,
        /// The kind of file that its first bytes suggest, with an article, if they suggest any.
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
        /// The edit's number, from 1.
        number: usize,
        /// The number of edits that were given.
        count: usize,
        /// The problem with it.
        problem: EditProblem,
    },
    /// A glob cannot be read.
    #[error("`{parameter}`: `{pattern}` is no glob: {reason}")]
    Glob {
        /// The parameter's name.
        parameter: &'static str,
        /// The glob.
        pattern: String,
        /// The problem with it.
        reason: String,
    },
    /// A regular expression cannot be read.
    #[error(
        "`pattern` is no regular expression: {reason}\nTo look for this text as it stands, set literal to true"
    )]
    Regex {
        /// The problem with it, and its position.
        reason: String,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// An error of the operating system while reading `path`.
    pub(super) fn read(path: impl Into<String>, source: io::Error) -> Self {
        Self::Path(workspace::Error::Io { action: "read", path: path.into(), source })
    }

    /// An error of the operating system while listing the folder at `path`.
    pub(super) fn list(path: impl Into<String>, source: io::Error) -> Self {
        Self::Path(workspace::Error::Io { action: "list", path: path.into(), source })
    }
}

/// A reason why one edit does not fit the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// `old_string` is empty.
    Empty,
    /// Both strings are the same.
    Same,
    /// `old_string` contains a mask, which stands for text the caller has not seen.
    Masked,
    /// `old_string` does not occur. Holds the lines that come nearest, with their numbers.
    NotFound {
        /// Number and text of the nearest lines; empty if none is near.
        nearest: Vec<(usize, String)>,
        /// True if they differ in blanks only.
        blanks_only: bool,
    },
    /// `old_string` occurs more than once.
    NotUnique {
        /// The number of occurrences.
        matches: usize,
        /// The lines where it begins, the first ten.
        lines: Vec<usize>,
    },
}

impl fmt::Display for EditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("old_string is empty; give the text to replace (write_file creates or appends)")
            }
            Self::Same => f.write_str("old_string and new_string are the same"),
            Self::Masked => f.write_str(
                "old_string contains [redacted:…], a mask shown in place of a secret; choose text beside it",
            ),
            Self::NotFound { nearest, .. } if nearest.is_empty() => {
                f.write_str("old_string was not found, nor anything like it; read the file again")
            }
            Self::NotFound { nearest, blanks_only } => {
                let difference = if *blanks_only { "with other blanks or indentation " } else { "" };
                write!(f, "old_string was not found; the nearest text stands {difference}at")?;
                for (number, line) in nearest {
                    write!(f, "\n{number}: {line}")?;
                }
                Ok(())
            }
            Self::NotUnique { matches, lines } => {
                let more = if *matches > lines.len() { " and more" } else { "" };
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "old_string occurs {matches} times, on lines {}{more}; add text around it until it is unique, or set replace_all",
                    lines.join(", ")
                )
            }
        }
    }
}
