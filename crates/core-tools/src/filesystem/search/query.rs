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
    /// True if a match may have several lines.
    pub(super) is_multiline: bool,
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
        let is_multiline = input.multiline || has_line_break(input);
        Ok(Self {
            matcher: compile(input, is_multiline)?,
            include: GlobFilter::with_folders("include", &input.include.0)?,
            exclude: GlobFilter::new("exclude", &input.exclude.0)?,
            mode: input.mode,
            is_multiline,
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

/// Returns true if the pattern has a line break, as such or written as `\n`, which no single line matches.
fn has_line_break(input: &SearchFiles) -> bool {
    input.pattern.contains('\n') || (!input.literal && with_any_line_end(&input.pattern) != input.pattern)
}

/// Returns a regular expression in which each line break outside of a class also matches that of Windows.
pub(in crate::filesystem) fn with_any_line_end(pattern: &str) -> String {
    let mut expression = String::with_capacity(pattern.len() + 8);
    let mut class_depth = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\n' if class_depth == 0 => expression.push_str(r"(?:\r?\n)"),
            '\\' => match characters.next() {
                Some('n') if class_depth == 0 => expression.push_str(r"(?:\r?\n)"),
                // `\r\n` is written for both.
                Some('r') if class_depth == 0 => expression.push_str(r"\r?"),
                Some(escaped) => expression.extend(['\\', escaped]),
                None => expression.push('\\'),
            },
            '[' => {
                class_depth += 1;
                expression.push('[');
            }
            ']' => {
                class_depth = class_depth.saturating_sub(1);
                expression.push(']');
            }
            other => expression.push(other),
        }
    }
    expression
}

/// The most bytes of a compiled pattern. The matcher's own limits suit a program that its user starts: 100 MB for a pattern,
/// and 1 GB of cache for each thread.
const MAX_PATTERN_BYTES: usize = 10 << 20;
/// The most bytes of the states that a search keeps for each thread. A search with more states goes on with a slower engine.
const MAX_CACHE_BYTES: usize = 16 << 20;

/// Compiles the pattern into a matcher, which goes beyond a line only if it `is_multiline`.
fn compile(input: &SearchFiles, is_multiline: bool) -> Result<RegexMatcher, Error> {
    if input.pattern.is_empty() {
        return Err(Error::Parameters(
            "`pattern` is empty, which every line matches; use read_file to see a file",
        ));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        // Keeps a match within a line, and refuses a pattern that can only match across two.
        .line_terminator((!is_multiline).then_some(b'\n'))
        .multi_line(true)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_CACHE_BYTES)
        .case_insensitive(input.case == CaseMode::Insensitive)
        .case_smart(input.case == CaseMode::Smart);
    let pattern = if input.literal { regex::escape(&input.pattern) } else { input.pattern.clone() };
    let pattern = if is_multiline { with_any_line_end(&pattern) } else { pattern };
    builder.build(&pattern).map_err(|error| match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => Error::Parameters(
            "`pattern` matches a line break, and lines are matched one by one; set multiline to true",
        ),
        // The matcher wraps the pattern before it parses it, so its error points at the wrong column. Parsed
        // once more as given, the error points into the caller's own text.
        _ => match regex::Regex::new(&input.pattern) {
            Err(plain) => Error::Regex { reason: plain.to_string() },
            Ok(_) => Error::Regex { reason: error.to_string() },
        },
    })
}
