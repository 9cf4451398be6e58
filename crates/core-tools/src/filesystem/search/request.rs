//! The input and the output of `search_files`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::glob::GlobList;
use crate::filesystem::parameters::primary_root;

/// A pattern, and the files in which to search for it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SearchFiles {
    /// Regular expression in the syntax of Rust: no look-around, no back-references. With `\n` it matches across lines.
    pub pattern: String,
    /// File or folder to search. Default: the first root.
    #[serde(default = "primary_root")]
    pub path: String,
    /// Takes `pattern` as plain text: `f(x)[0]`. Default false.
    #[serde(default)]
    pub literal: bool,
    /// How letters compare; `smart` ignores case unless the pattern has a capital letter. Default sensitive.
    #[serde(default)]
    pub case: CaseMode,
    /// Searches only these files: globs on names (`*.rs`) or paths below `path` (`src/**/*.ts`), or folders (`src`).
    #[serde(default)]
    pub include: GlobList,
    /// Leaves out these files and folders, by globs as in `include`.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub exclude: GlobList,
    /// Number of lines to show before and after each match. Default 0.
    #[schemars(range(min = 0, max = 20))]
    pub context: Option<i64>,
    /// Returns matching `lines`, only the paths of `files`, or the `count` for each file. Default: lines.
    #[schemars(extend("alias" = "output_mode"))]
    #[serde(default)]
    pub mode: SearchMode,
    /// Matches across lines: `^` and `$` still match at lines, `.` no line end; `(?s)` changes that. Default false.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub multiline: bool,
    /// Shows the function or type around each match in a line `path=LINE=signature` before it. Default false.
    #[serde(default)]
    pub symbol: bool,
    /// The most lines, or files, in the answer. Default 200.
    #[schemars(range(min = 1, max = 10_000), extend("unlisted" = true))]
    pub max_results: Option<i64>,
    /// Also searches what .gitignore names.
    #[schemars(extend("unlisted" = true))]
    #[serde(default)]
    pub include_ignored: bool,
}

impl SearchFiles {
    /// An input that searches all files below the primary root for the regular expression `pattern`.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: primary_root(),
            literal: false,
            case: CaseMode::default(),
            include: GlobList::default(),
            exclude: GlobList::default(),
            context: None,
            mode: SearchMode::default(),
            multiline: false,
            symbol: false,
            max_results: None,
            include_ignored: false,
        }
    }
}

/// The way in which upper and lower case are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CaseMode {
    /// `A` does not match `a`.
    #[default]
    Sensitive,
    /// `A` matches `a`.
    Insensitive,
    /// As `Insensitive`, unless the pattern has a capital letter.
    Smart,
}

/// The part of a match that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SearchMode {
    /// The line.
    #[default]
    Lines,
    /// The file's path.
    Files,
    /// The file's path and the number of its lines that match.
    Count,
}

/// The matches of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SearchResult {
    /// `path:line:text`, around it `path-line-text`, `--` between groups, `path=line=signature` of what a match stands in;
    /// or the paths, or `path:count`.
    pub text: String,
    /// Lines that match, also those not shown. Absent in the mode `files`, which stops at the first of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// Files with matches, also those not shown.
    pub files: u64,
    /// True if there are more than shown.
    pub truncated: bool,
    /// Remarks: what was left out and how to get it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl SearchResult {
    /// Returns the matches, their counts and the notes.
    pub fn to_text(&self) -> String {
        let mut text = self.text.clone();
        let files = plural(self.files, "file");
        let _ = match self.matches {
            _ if self.files == 0 => Ok(()),
            Some(matches) => writeln!(text, "[{} in {files}]", plural(matches, "matching line")),
            None => writeln!(text, "[{files}]"),
        };
        for note in &self.notes {
            let _ = writeln!(text, "[{note}]");
        }
        text
    }
}

/// Returns `number` and `noun`, in the plural unless there is one.
pub(super) fn plural(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
