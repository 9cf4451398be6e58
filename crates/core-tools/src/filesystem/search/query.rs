//! The input of a search, checked and compiled, as all of its threads share it.

use std::ffi::OsStr;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use tokio_util::sync::CancellationToken;

use super::request::{CaseMode, SearchFiles, SearchMode};
use crate::filesystem::error::Error;
use crate::filesystem::glob::GlobFilter;
use crate::filesystem::parameters::check_range;

/// A checked and compiled [`SearchFiles`].
pub(super) struct SearchQuery<'a> {
    pub(super) matcher: RegexMatcher,
    include: GlobFilter,
    exclude: GlobFilter,
    pub(super) mode: SearchMode,
    /// Lines shown before and after a match.
    pub(super) context_lines: usize,
    /// The most lines or files shown, depending on the mode.
    pub(super) max_results: usize,
    pub(super) cancel: &'a CancellationToken,
}

impl<'a> SearchQuery<'a> {
    pub(super) fn new(input: &SearchFiles, cancel: &'a CancellationToken) -> Result<Self, Error> {
        let max_results = check_range("max_results", input.max_results, 10_000, 200, "from 1 to 10000")?;
        let context_lines = match input.context.unwrap_or(0) {
            0 => 0,
            lines => check_range("context", Some(lines), 20, 0, "from 0 to 20")?,
        };
        Ok(Self {
            matcher: compile(input)?,
            include: GlobFilter::new("include", &input.include.0)?,
            exclude: GlobFilter::new("exclude", &input.exclude.0)?,
            mode: input.mode,
            context_lines,
            max_results,
            cancel,
        })
    }

    /// Returns true if the path of an entry must be known, and not only its name.
    pub(super) fn needs_path(&self) -> bool {
        self.include.need_path() || self.exclude.need_path()
    }

    pub(super) fn is_excluded(&self, name: &OsStr, path: &Path) -> bool {
        !self.exclude.is_empty() && self.exclude.match_entry(name, path)
    }

    pub(super) fn is_included(&self, name: &OsStr, path: &Path) -> bool {
        self.include.is_empty() || self.include.match_entry(name, path)
    }
}

/// Compiles the pattern into a matcher that never goes beyond a line.
fn compile(input: &SearchFiles) -> Result<RegexMatcher, Error> {
    if input.pattern.is_empty() {
        return Err(Error::Parameters(
            "`pattern` is empty, which every line matches; use read_file to see a file",
        ));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        // Keeps a match within a line, and refuses a pattern that can only match across two.
        .line_terminator(Some(b'\n'))
        .fixed_strings(input.literal)
        .multi_line(true)
        .case_insensitive(input.case == CaseMode::Insensitive)
        .case_smart(input.case == CaseMode::Smart);
    builder.build(&input.pattern).map_err(|error| match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => Error::Parameters(
            "`pattern` has a line break, and lines are matched one by one; look for one of the lines, with context",
        ),
        // The matcher wraps the pattern before it parses it, so its error points at the wrong column. Parsed
        // once more as given, the error points into the caller's own text.
        _ => match regex::Regex::new(&input.pattern) {
            Err(plain) => Error::Regex { reason: plain.to_string() },
            Ok(_) => Error::Regex { reason: error.to_string() },
        },
    })
}
