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
    /// File to read
    pub path: String,
    /// First line, from 1
    #[schemars(range(min = 1))]
    pub offset: Option<i64>,
    /// Lines; default 2000, at most 40 KB
    #[schemars(range(min = 1))]
    pub limit: Option<i64>,
    /// First N lines
    #[schemars(range(min = 1))]
    pub head: Option<i64>,
    /// Last N lines
    #[schemars(range(min = 1))]
    pub tail: Option<i64>,
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

    /// Returns the text, followed in brackets by the notes and, unless the file is given whole, by the
    /// [summary](Self::summary).
    pub fn to_text(&self) -> String {
        let mut remarks = self.notes.clone();
        if self.lines == 0 || self.total_lines != Some(self.lines) {
            remarks.insert(0, self.summary());
        }
        if remarks.is_empty() {
            return self.text.clone();
        }
        let separator = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { "\n" };
        format!("{}{separator}[{}]\n", self.text, remarks.join("; "))
    }
}

/// The lines to read.
#[derive(Clone, Copy, Debug)]
pub(in crate::filesystem) enum LineSelection {
    /// `lines` lines from line `first` on.
    From { first: u64, lines: u64 },
    /// The last lines.
    Last(u64),
}

impl LineSelection {
    /// The default: the first 2,000 lines.
    pub(in crate::filesystem) const START: Self = Self::From { first: 1, lines: DEFAULT_LINES };

    pub(super) fn from_input(input: &ReadFile) -> Result<Self, Error> {
        let positive = |parameter, value: Option<i64>| {
            let number =
                value.map(|_| check_range(parameter, value, i64::MAX, 1, "1 or more")).transpose()?;
            Ok::<_, Error>(number.map(|number| number as u64))
        };
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
