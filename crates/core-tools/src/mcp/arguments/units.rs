//! Times in other units than a parameter takes.

use super::synonyms::snake_case;
use serde_json::{Map, Value};

/// Returns a time in milliseconds, if it is one.
pub(super) fn milliseconds(seconds: f64) -> Option<i64> {
    const MAX_SECONDS: f64 = 1e9;
    #[allow(clippy::cast_possible_truncation, reason = "in range")]
    (seconds.is_finite() && (0.0..=MAX_SECONDS).contains(&seconds)).then(|| (seconds * 1000.0).round() as i64)
}

/// Returns the number that a value is, also in a string.
pub(super) fn as_seconds(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Returns the property in milliseconds that a time without a unit is for, and the time, taken as seconds.
pub(super) fn bare_time<'a>(
    properties: &'a Map<String, Value>,
    key: &str,
    value: &Value,
) -> Option<(&'a str, i64)> {
    let word = snake_case(key);
    let stem = if word == "time_limit" { "timeout" } else { word.as_str() };
    let (name, _) = properties.get_key_value(&format!("{stem}_ms"))?;
    Some((name, milliseconds(as_seconds(value)?)?))
}
