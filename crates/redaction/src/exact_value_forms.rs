//! The forms in which an exact value is written: as it stands, and as JSON, URLs and base64 encode it.

use base64::Engine as _;

/// Returns the forms in which `value` may stand in a text. Some may be equal.
pub(crate) fn written_forms(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut percent = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            percent.push(char::from(byte));
        } else {
            percent.push_str(&format!("%{byte:02X}"));
        }
    }
    // base64 without padding is found with and without it. A program that reads a value from a file often drops the
    // white space around it.
    vec![
        value.to_owned(),
        value.trim().to_owned(),
        json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned(),
        percent,
        base64::engine::general_purpose::STANDARD_NO_PAD.encode(value),
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value),
    ]
}
