//! Conversion of values to JSON, and back.

use super::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The longest value of an answer: characters of a text, bytes of a blob.
pub(super) const MAX_VALUE_LENGTH: usize = 2000;
/// The first integer that a double may round (2⁵³): readers of JSON in JavaScript hold numbers as doubles.
const FIRST_INEXACT: u64 = 1 << 53;

/// A value of one row.
#[derive(Debug, PartialEq)]
pub(super) struct ValueCell {
    pub(super) value: Value,
    /// The value is only the start of the one in the database.
    pub(super) is_truncated: bool,
}

impl ValueCell {
    /// A complete value.
    pub(super) fn whole(value: impl Into<Value>) -> Self {
        Self { value: value.into(), is_truncated: false }
    }

    /// The NULL of the database.
    pub(super) fn null() -> Self {
        Self::whole(Value::Null)
    }

    /// An error message in the place of a value that cannot be decoded: the other columns are still of use.
    pub(super) fn unreadable(error: &dyn std::fmt::Display) -> Self {
        Self::whole(format!("[{error}]"))
    }
}

/// Converts an integer: a string where a double would round it.
pub(super) fn integer(value: i64) -> Value {
    if value.unsigned_abs() < FIRST_INEXACT { value.into() } else { value.to_string().into() }
}

/// Converts an integer from its digits.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn integer_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), integer)
}

/// Converts a double. NaN and the infinities, for which JSON has no number, are strings.
pub(super) fn real(value: f64) -> Value {
    if value.is_finite() {
        return value.into();
    }
    let text = match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    text.into()
}

/// Converts a text, cut at [`MAX_VALUE_LENGTH`] characters.
pub(super) fn text(text: &str) -> ValueCell {
    match text.char_indices().nth(MAX_VALUE_LENGTH) {
        None => ValueCell::whole(text),
        Some((end, _)) => ValueCell { value: format!("{}…", &text[..end]).into(), is_truncated: true },
    }
}

/// Converts bytes, cut at [`MAX_VALUE_LENGTH`]. `length` is the length of the whole value.
#[cfg(any(test, feature = "sqlite", feature = "mysql"))]
pub(super) fn bytes(bytes: &[u8], length: usize) -> ValueCell {
    let kept = &bytes[..bytes.len().min(MAX_VALUE_LENGTH)];
    ValueCell {
        value: serde_json::json!({"$base64": STANDARD.encode(kept), "bytes": length}),
        is_truncated: kept.len() < length,
    }
}

/// Converts a JSON document: to its value, or to its text where parsing would round a number in it.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn json_text(document: &str) -> ValueCell {
    // More than 15 digits may be rounded. That takes some texts for numbers too, which costs nothing but the form.
    let rounds = document.split(|c: char| !c.is_ascii_digit() && c != '.').any(|digits| digits.len() > 15);
    if document.len() > MAX_VALUE_LENGTH || rounds {
        return text(document);
    }
    match serde_json::from_str::<Value>(document) {
        // Of members with one name, an object here keeps only the last.
        Ok(value) if count_members(&value) == count_colons(document) => ValueCell::whole(value),
        _ => text(document),
    }
}

/// Returns the number of the members of all objects in a value.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn count_members(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_members).sum(),
        Value::Object(members) => members.len() + members.values().map(count_members).sum::<usize>(),
        _ => 0,
    }
}

/// Returns the number of colons outside of texts in a JSON document: one for each member.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn count_colons(document: &str) -> usize {
    let (mut colons, mut is_text, mut is_escaped) = (0, false, false);
    for byte in document.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b':' if !is_text => colons += 1,
            _ => {}
        }
    }
    colons
}

/// Decodes `{"$base64": …}`; `None` for any other value.
pub(super) fn from_base64(value: &Value) -> Result<Option<Vec<u8>>, Error> {
    let Some(encoded) = value.get("$base64") else { return Ok(None) };
    let decoded = encoded.as_str().and_then(|encoded| STANDARD.decode(encoded).ok());
    decoded.map(Some).ok_or_else(|| Error::argument("params", "`$base64` is not base64"))
}

/// Converts a parameter to the text form that engines read; `None` for NULL.
#[cfg(feature = "postgres")]
pub(super) fn parameter_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_integer_that_a_double_cannot_hold_is_a_string() {
        assert_eq!(integer((1 << 53) - 1), json!(9_007_199_254_740_991_i64));
        assert_eq!(integer(1 << 53), json!("9007199254740992"));
        assert_eq!(integer(i64::MIN), json!("-9223372036854775808"));
    }

    #[test]
    fn what_is_no_number_in_json_is_text() {
        assert_eq!(
            [real(1.5), real(f64::NAN), real(f64::NEG_INFINITY)],
            [json!(1.5), json!("NaN"), json!("-Infinity")]
        );
    }

    #[test]
    fn long_values_are_cut_at_a_character_and_said_to_be() {
        let cell = text(&"ä".repeat(MAX_VALUE_LENGTH + 1));
        assert!(cell.is_truncated && cell.value.as_str().is_some_and(|text| text.ends_with("ä…")));
        assert!(!text(&"ä".repeat(MAX_VALUE_LENGTH)).is_truncated);
        assert_eq!(bytes(&[0, 1], 2), ValueCell::whole(json!({"$base64": "AAE=", "bytes": 2})));
        assert!(bytes(&[0; 3000], 3000).is_truncated);
    }

    #[test]
    fn bytes_come_back_as_they_went() {
        let cell = bytes(b"\x00\xff", 2);
        assert_eq!(from_base64(&cell.value).ok().flatten(), Some(vec![0, 0xff]));
        assert!(from_base64(&json!({"$base64": "?"})).is_err());
    }

    #[cfg(any(feature = "postgres", feature = "mysql"))]
    #[test]
    fn json_is_itself_unless_a_number_would_be_rounded() {
        assert_eq!(json_text(r#"{"a": [1, null]}"#).value, json!({"a": [1, null]}));
        let tricky = r#"{"a:\"b": {"c": ["\\", ":"]}}"#;
        assert_eq!(json_text(tricky).value, json!({"a:\"b": {"c": ["\\", ":"]}}));
        // A key that stands twice.
        assert_eq!(json_text(r#"{"a":2,"a":3}"#).value, json!(r#"{"a":2,"a":3}"#));
        assert_eq!(json_text("[12345678901234567890]").value, json!("[12345678901234567890]"));
    }
}
