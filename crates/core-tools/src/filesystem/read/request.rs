//! The input and the output of `read_file`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::error::Error;
use crate::filesystem::parameters::check_range;

/// The number of lines given where none is asked for.
const DEFAULT_LINES: u64 = 2000;

/// A text file and the lines of it to read.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadFile {
    /// Path of the file, relative to the first root or absolute.
    pub path: String,
    /// First line to read, counted from 1. Default 1.
    #[schemars(range(min = 1))]
    pub offset: Option<i64>,
    /// Number of lines to read. Default 2000.
    #[schemars(range(min = 1))]
    pub limit: Option<i64>,
    /// Reads the first lines, as many as this says, instead of `offset` and `limit`.
    #[schemars(range(min = 1), extend("unlisted" = true))]
    pub head: Option<i64>,
    /// Reads the last lines, as many as this says.
    #[schemars(range(min = 1))]
    pub tail: Option<i64>,
    /// Begins each line with its number and a tab, as `cat -n` does. Default false.
    #[serde(default)]
    pub line_numbers: bool,
}

impl ReadFile {
    /// An input that reads the first 2,000 lines of the file at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), ..Self::default() }
    }
}

/// Lines of a text file. Line endings are kept as they are; a byte order mark is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TextFile {
    /// The file, relative to its root.
    pub path: String,
    /// The lines, as they stand in the file.
    pub text: String,
    /// Number of the first line given, from 1; absent if unknown or if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// The number of lines given.
    pub lines: u64,
    /// Lines in the whole file; absent if it is too large to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// The file's length in bytes.
    pub size: u64,
    /// Remarks: parts that were left out and how to get them, and peculiarities of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True if [`to_text`](Self::to_text) numbers the lines.
    #[serde(skip)]
    pub line_numbers: bool,
}

impl TextFile {
    /// Returns the range of the lines given, for a line above or below the text: `lines 1-20 of 340`.
    pub fn summary(&self) -> String {
        let total = match self.total_lines {
            Some(total) => total.to_string(),
            None => format!("many ({} bytes)", self.size),
        };
        match (self.lines, self.first_line) {
            (0, _) => format!("no lines, {} bytes", self.size),
            (1, Some(first)) => format!("line {first} of {total}"),
            (lines, Some(first)) => format!("lines {first}-{} of {total}", first + lines - 1),
            (lines, None) => format!("the last {lines} lines of {total}"),
        }
    }

    /// Returns the text with the number of each line and a tab before it, or as it is where the numbers are not known.
    fn numbered_text(&self) -> String {
        match self.first_line {
            Some(first) if self.line_numbers => {
                let lines = self.text.split_inclusive('\n');
                (first..).zip(lines).map(|(number, line)| format!("{number}\t{line}")).collect()
            }
            _ => self.text.clone(),
        }
    }

    /// Returns the text, followed in brackets by the notes and, unless the file is given whole, by the
    /// [summary](Self::summary).
    pub fn to_text(&self) -> String {
        let mut remarks = self.notes.clone();
        if self.lines == 0 || self.total_lines != Some(self.lines) {
            remarks.insert(0, self.summary());
        }
        if self.line_numbers && self.lines > 0 && self.first_line.is_none() {
            remarks.push("the file is too large to number its last lines".to_owned());
        }
        let text = self.numbered_text();
        if remarks.is_empty() {
            return text;
        }
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        format!("{text}{separator}[{}]\n", remarks.join("; "))
    }
}

/// The lines to read.
#[derive(Clone, Copy, Debug)]
pub(in crate::filesystem) enum ReadLineSelection {
    /// `lines` lines from line `first` on.
    From { first: u64, lines: u64 },
    /// The last lines.
    Last(u64),
}

impl ReadLineSelection {
    /// Returns `limit` lines from line `offset` on, each with its default.
    pub(in crate::filesystem) fn range(offset: Option<i64>, limit: Option<i64>) -> Result<Self, Error> {
        let (offset, limit) = (positive("offset", offset)?, positive("limit", limit)?);
        Ok(Self::From { first: offset.unwrap_or(1), lines: limit.unwrap_or(DEFAULT_LINES) })
    }

    /// Returns this selection with at most as many lines as are numbered in one answer.
    pub(in crate::filesystem) fn for_numbering(self) -> Self {
        match self {
            // The numbers of very short lines would take more than the share of the bytes that is set aside for them.
            Self::From { first, lines } => Self::From { first, lines: lines.min(DEFAULT_LINES) },
            Self::Last(lines) => Self::Last(lines.min(DEFAULT_LINES)),
        }
    }

    pub(super) fn from_input(input: &ReadFile) -> Result<Self, Error> {
        let (offset, limit) = (positive("offset", input.offset)?, positive("limit", input.limit)?);
        match (positive("head", input.head)?, positive("tail", input.tail)?) {
            (None, None) => {
                Ok(Self::From { first: offset.unwrap_or(1), lines: limit.unwrap_or(DEFAULT_LINES) })
            }
            (Some(_), Some(_)) => Err(Error::Parameters("`head` and `tail` cannot both be given")),
            _ if offset.is_some() || limit.is_some() => {
                Err(Error::Parameters("`head` and `tail` cannot be combined with `offset` or `limit`"))
            }
            (Some(head), None) => Ok(Self::From { first: 1, lines: head }),
            (None, Some(tail)) => Ok(Self::Last(tail)),
        }
    }
}

/// Returns a number that must be 1 or more, if one is given.
fn positive(parameter: &'static str, value: Option<i64>) -> Result<Option<u64>, Error> {
    let number = value.map(|_| check_range(parameter, value, i64::MAX, 1, "1 or more")).transpose()?;
    Ok(number.map(|number| number as u64))
}
