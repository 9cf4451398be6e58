//! Defaults and checks of parameters that several tools share.

use super::error::Error;

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
