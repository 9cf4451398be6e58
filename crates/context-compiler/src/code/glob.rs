//! The globs of a selection.

use super::selection::SourceSelectError;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Returns `pattern` without `./` and trailing slashes.
///
/// # Errors
/// The pattern is empty, absolute or leaves the root, or has components that no path of a project has.
pub(super) fn normalise_pattern(pattern: &str) -> Result<&str, SourceSelectError> {
    let problem = if pattern.is_empty() {
        "is empty"
    } else if pattern.starts_with('/') || pattern.get(1..2) == Some(":") {
        // `C:` begins a Windows path with a drive.
        "is not relative to the root"
    } else if pattern.split('/').any(|component| component == "..") {
        "leaves the root"
    } else if pattern.contains('\0') || pattern.contains("//") || pattern.contains("/./") {
        "is no path as the project's are written"
    } else {
        return Ok(pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/'));
    };
    Err(SourceSelectError::InvalidGlob { glob: pattern.to_owned(), problem: problem.to_owned() })
}

/// Returns the byte offset of the first wildcard in `pattern`.
pub(super) fn first_wildcard(pattern: &str) -> Option<usize> {
    pattern.find(['*', '?', '[', '{', '\\'])
}

pub(super) fn parse_glob(pattern: &str) -> Result<Glob, SourceSelectError> {
    let mut builder = GlobBuilder::new(pattern);
    // `*` stops at a slash, as in gitignore and in shells. The escape is set, since globset has none by default on
    // Windows.
    let glob = builder.literal_separator(true).backslash_escape(true).build();
    glob.map_err(|error| invalid_glob(pattern, &error))
}

pub(super) fn build_set(globs: &GlobSetBuilder) -> Result<GlobSet, SourceSelectError> {
    globs.build().map_err(|error| invalid_glob("", &error))
}

fn invalid_glob(pattern: &str, error: &globset::Error) -> SourceSelectError {
    SourceSelectError::InvalidGlob {
        glob: pattern.to_owned(),
        problem: format!("cannot be read: {}", error.kind()),
    }
}
