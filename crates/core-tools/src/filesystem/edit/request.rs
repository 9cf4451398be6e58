//! The input and the output of `edit_file`.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::error::Error;
use crate::filesystem::glob::GlobList;

/// A text file and the changes to make in it: several replacements, one replacement, or an insertion.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EditFile {
    /// Path of the file, relative to the first root or absolute; with `pattern` also a folder, for all text files below it.
    pub path: String,
    /// Exact text to replace, without line numbers. It must occur once in the file; add lines around it until it does.
    pub old_string: Option<String>,
    /// Text in its place, empty to remove it; with `insert_line` the lines to insert.
    pub new_string: Option<String>,
    /// Replaces every occurrence of `old_string`. Default false.
    #[serde(default)]
    pub replace_all: bool,
    /// Instead of `old_string`: inserts `new_string` as lines of its own after this line; 0 is the start of the file.
    #[schemars(range(min = 0))]
    pub insert_line: Option<i64>,
    /// Several replacements in one call, made in order, all or none: `[{"old_string": "a", "new_string": "b"}]`.
    #[serde(default)]
    pub edits: Vec<TextReplacement>,
    /// Instead of `old_string`: a regular expression as in search_files. `new_string` replaces each match; `$1` or `${name}`
    /// is a group of it, `$$` a dollar sign.
    pub pattern: Option<String>,
    /// With `pattern` and a folder: changes only these files, as in search_files.
    #[serde(default)]
    pub include: GlobList,
    /// Returns the diff and writes nothing. Default false.
    #[serde(default)]
    pub dry_run: bool,
}

impl EditFile {
    /// An input that makes `edits` in the file at `path` and writes the result.
    pub fn new(path: impl Into<String>, edits: Vec<TextReplacement>) -> Self {
        Self { path: path.into(), edits, ..Self::default() }
    }

    /// An input that inserts the lines of `text` after line `line` of the file at `path`; 0 is its start.
    pub fn insertion(path: impl Into<String>, line: i64, text: impl Into<String>) -> Self {
        Self { path: path.into(), insert_line: Some(line), new_string: Some(text.into()), ..Self::default() }
    }

    /// An input that replaces each match of `pattern` in the file at `path`, or in the text files below that folder.
    pub fn by_pattern(
        path: impl Into<String>,
        pattern: impl Into<String>,
        replacement: impl Into<String>,
    ) -> Self {
        let (pattern, new_string) = (Some(pattern.into()), Some(replacement.into()));
        Self { path: path.into(), pattern, new_string, ..Self::default() }
    }

    /// Returns the pattern and the text in the place of a match, if the input has a pattern.
    ///
    /// # Errors
    /// The text is missing, or another form of input is given too.
    pub(super) fn pattern(&self) -> Result<Option<(&str, &str)>, Error> {
        let Some(pattern) = self.pattern.as_deref().filter(|pattern| !pattern.is_empty()) else {
            return match self.include.0.is_empty() {
                true => Ok(None),
                false => Err(Error::Parameters("`include` goes with `pattern` and a folder in `path`")),
            };
        };
        let has_other = self.old_string.as_deref().is_some_and(|old| !old.is_empty())
            || self.insert_line.is_some()
            || !self.edits.is_empty();
        if has_other {
            return Err(Error::Parameters(
                "give either `pattern` and `new_string`, or `old_string`, `insert_line` or `edits`",
            ));
        }
        let replacement = self.new_string.as_deref().ok_or(Error::Parameters(
            "`new_string` is missing: the text in the place of each match of `pattern`, empty to remove it",
        ))?;
        Ok(Some((pattern, replacement)))
    }

    /// Returns the changes that the input asks for.
    ///
    /// # Errors
    /// There is none, one is incomplete, or two forms of input contradict each other.
    pub(super) fn changes(&self) -> Result<Vec<EditChange<'_>>, Error> {
        // Clients that fill in every parameter send an empty string for one that they leave out.
        let old = self.old_string.as_deref().filter(|old| !old.is_empty());
        if !self.edits.is_empty() {
            if old.is_some()
                || self.insert_line.is_some()
                || self.new_string.as_deref().is_some_and(|new| !new.is_empty())
            {
                return Err(Error::Parameters(
                    "give either `edits`, or `old_string` and `new_string`, or `insert_line` and `new_string`",
                ));
            }
            let changes = self.edits.iter().map(|edit| EditChange::Replace {
                old: &edit.old_string,
                new: &edit.new_string,
                // A flag outside the list is meant for all edits of the list.
                all: edit.replace_all || self.replace_all,
            });
            return Ok(changes.collect());
        }
        match (old, self.new_string.as_deref(), self.insert_line) {
            (Some(_), _, Some(_)) => Err(Error::Parameters(
                "give either `old_string` (text to replace) or `insert_line` (a line to insert after), not both",
            )),
            (None, Some(new), Some(line)) => Ok(vec![EditChange::Insert { after: line, text: new }]),
            (None, None, Some(_)) => {
                Err(Error::Parameters("`insert_line` needs `new_string`, the lines to insert"))
            }
            (Some(old), Some(new), None) => Ok(vec![EditChange::Replace { old, new, all: self.replace_all }]),
            (Some(_), None, None) => Err(Error::Parameters(
                "`new_string` is missing: the text in the place of `old_string`, empty to remove it",
            )),
            // The empty text has a message of its own, which says what to do.
            (None, Some(new), None) if self.old_string.is_some() => {
                Ok(vec![EditChange::Replace { old: "", new, all: false }])
            }
            (None, _, None) => Err(Error::Parameters(
                "no change is given: give `old_string` and `new_string`, `insert_line` and `new_string`, `pattern` and \
                 `new_string`, or `edits`",
            )),
        }
    }
}

/// One change that an [`EditFile`] asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum EditChange<'a> {
    /// Text to find and the text in its place; `all` occurrences, or exactly one.
    Replace { old: &'a str, new: &'a str, all: bool },
    /// Lines that follow the line with this number, from 1; 0 is the start of the file.
    Insert { after: i64, text: &'a str },
}

impl EditChange<'_> {
    /// Returns the text that the change writes.
    pub(super) fn new_text(&self) -> &str {
        match self {
            Self::Replace { new, .. } => new,
            Self::Insert { text, .. } => text,
        }
    }
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct TextReplacement {
    /// Exact text to replace, which must occur once.
    pub old_string: String,
    /// Text in its place.
    pub new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    pub replace_all: bool,
}

impl TextReplacement {
    /// A replacement of `old`, which must occur exactly once, by `new`.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self { old_string: old.into(), new_string: new.into(), replace_all: false }
    }
}

/// The changes that an edit made, or would make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct EditResult {
    /// The file, relative to its root.
    pub path: String,
    /// The difference, in unified format.
    pub diff: String,
    /// The number of pieces replaced or inserted.
    pub replacements: u64,
    /// True if nothing was written because the caller asked for the difference only.
    pub dry_run: bool,
    /// Remarks: parts that were left out, and peculiarities of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl EditResult {
    /// Returns the difference under a line that summarizes the edit, with the notes in brackets at the end.
    pub fn to_text(&self) -> String {
        let verb = if self.dry_run { "would change" } else { "changed" };
        let plural = if self.replacements == 1 { "" } else { "s" };
        let mut text =
            format!("{verb} {} ({} replacement{plural})\n{}", self.path, self.replacements, self.diff);
        for note in &self.notes {
            text.push_str(&format!("[{note}]\n"));
        }
        text
    }
}
