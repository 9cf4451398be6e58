//! Defaults and checks of parameters that several tools share.

use super::error::Error;
use crate::workspace::ConfinedPath;

/// Returns the path of the primary root: the default of inputs whose path may be left out.
pub(super) fn primary_root() -> String {
    ".".to_owned()
}

/// Returns `value`, or `default` where none is given, if it lies within `1..=max`.
///
/// # Errors
/// [`Error::Range`] names `parameter` and tells what is `expected`.
// Inputs carry `i64` so that a negative number reaches this message, which names the range; a `u64` field would be
// answered by serde, which names no range.
pub(super) fn check_range(
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

/// Returns a note where `given` was read with `/` for its backslashes.
pub(super) fn note_on_spelling(given: &str, path: &ConfinedPath) -> Option<String> {
    let shown = path.display_path();
    let is_respelled = given.contains('\\') && !shown.contains('\\');
    is_respelled.then(|| format!("`{given}` was read as `{shown}`: paths are written with `/` here"))
}
