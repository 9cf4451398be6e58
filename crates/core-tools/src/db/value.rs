//! Values as JSON, and back.

use super::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The most characters, or bytes, of one value.
pub(super) const MOST_OF_A_VALUE: usize = 2000;
/// The first integer that a reader with doubles could take for another.
const EXACT: u64 = 1 << 53;

/// A value, and whether it is only the start of one.
pub(super) type Cell = (Value, bool);

pub(super) fn integer(value: i64) -> Value {
    if value.unsigned_abs() < EXACT { value.into() } else { value.to_string().into() }
}

/// An integer from its digits.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn integer_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), integer)
}

/// A number, or what is none in JSON as text.
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

/// Text, up to the most of a value.
pub(super) fn text(text: &str) -> Cell {
    match text.char_indices().nth(MOST_OF_A_VALUE) {
        None => (text.into(), false),
        Some((end, _)) => (format!("{}…", &text[..end]).into(), true),
    }
}

/// Bytes, of `length` in all, up to the most of a value.
#[cfg(any(test, feature = "sqlite", feature = "mysql"))]
pub(super) fn bytes(bytes: &[u8], length: usize) -> Cell {
    let kept = &bytes[..bytes.len().min(MOST_OF_A_VALUE)];
    (serde_json::json!({"$base64": STANDARD.encode(kept), "bytes": length}), kept.len() < length)
}

/// JSON as itself, unless a number in it would be rounded: then as the text it is.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn json_text(said: &str) -> Cell {
    let rounded = said.split(|c: char| !c.is_ascii_digit() && c != '.').any(|digits| digits.len() > 15);
    if said.len() > MOST_OF_A_VALUE || rounded {
        return text(said);
    }
    serde_json::from_str(said).map_or_else(|_| text(said), |value| (value, false))
}

/// The bytes of `{"$base64": …}`.
pub(super) fn from_base64(value: &Value) -> Result<Option<Vec<u8>>, Error> {
    let Some(encoded) = value.get("$base64") else { return Ok(None) };
    let decoded = encoded.as_str().and_then(|encoded| STANDARD.decode(encoded).ok());
    decoded.map(Some).ok_or_else(|| Error::argument("params", "`$base64` is not base64"))
}

/// A parameter as text in the way that engines read it; nothing for NULL.
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
        let (value, cut) = text(&"ä".repeat(MOST_OF_A_VALUE + 1));
        assert!(cut && value.as_str().is_some_and(|text| text.ends_with("ä…")));
        assert!(!text(&"ä".repeat(MOST_OF_A_VALUE)).1);
        assert_eq!(bytes(&[0, 1], 2), (json!({"$base64": "AAE=", "bytes": 2}), false));
        assert!(bytes(&[0; 3000], 3000).1);
    }

    #[test]
    fn bytes_come_back_as_they_went() {
        let (value, _) = bytes(b"\x00\xff", 2);
        assert_eq!(from_base64(&value).ok().flatten(), Some(vec![0, 0xff]));
        assert!(from_base64(&json!({"$base64": "?"})).is_err());
    }

    #[cfg(any(feature = "postgres", feature = "mysql"))]
    #[test]
    fn json_is_itself_unless_a_number_would_be_rounded() {
        assert_eq!(json_text(r#"{"a": [1, null]}"#).0, json!({"a": [1, null]}));
        assert_eq!(json_text("[12345678901234567890]").0, json!("[12345678901234567890]"));
    }
}
