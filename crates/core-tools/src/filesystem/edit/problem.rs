//! [`EditProblem`]: a reason why one edit does not fit the file.

use std::fmt;

/// A reason why one edit does not fit the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditProblem {
    /// `old_string` is empty.
    Empty,
    /// Both strings are the same.
    Same,
    /// There is no text to insert.
    NothingToInsert,
    /// The line to insert after lies past the end.
    NoSuchLine {
        /// The line asked for.
        line: i64,
        /// The number of lines in the file.
        total: usize,
    },
    /// `old_string` was copied together with line numbers.
    LineNumbers {
        /// The first number.
        first: usize,
        /// The last number.
        last: usize,
    },
    /// `old_string` contains a mask, which stands for text the caller has not seen.
    Masked,
    /// `old_string` does not occur. Holds the lines that come nearest, with their numbers.
    NotFound {
        /// Number and text of the nearest lines; empty if none is near.
        nearest: Vec<(usize, String)>,
        /// True if they differ in blanks only.
        blanks_only: bool,
    },
    /// The file would become larger than a file that can be edited.
    TooLarge {
        /// The number of occurrences.
        matches: usize,
        /// The most bytes of a file.
        limit: u64,
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
            Self::TooLarge { matches, limit } => write!(
                f,
                "the file would have more than {limit} bytes after {matches} replacements; give a longer old_string or a shorter new_string"
            ),
            Self::Same => f.write_str("old_string and new_string are the same"),
            Self::NothingToInsert => f.write_str("new_string is empty; give the lines to insert"),
            Self::NoSuchLine { line, total } => write!(
                f,
                "there is no line {line} to insert after; the file has {total} lines (0 inserts at its start)"
            ),
            Self::LineNumbers { first, last } => write!(
                f,
                "old_string has line numbers in it ({first} to {last}), which are not in the file; give the text after \
                 the number and its separator alone, in new_string too"
            ),
            Self::Masked => f.write_str(
                "old_string contains [redacted:…], a mask shown in place of a secret; choose text beside it",
            ),
            Self::NotFound { nearest, .. } if nearest.is_empty() => {
                f.write_str("old_string was not found, nor anything like it; read the file again")
            }
            Self::NotFound { nearest, blanks_only } => {
                match nearest.as_slice() {
                    [(line, _)] if *blanks_only => {
                        write!(f, "old_string was not found; it differs from line {line} only in blanks:")?;
                    }
                    [(first, _), ..] if *blanks_only => {
                        write!(
                            f,
                            "old_string was not found; it differs only in blanks from the text at line {first}:"
                        )?;
                    }
                    _ => f.write_str("old_string was not found; the nearest text stands at")?,
                }
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
