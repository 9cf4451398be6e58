//! The encodings in which a secret value can appear.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The fewest bytes of a form without its ends, such as the inner part of a base64 text. A shorter one occurs by
/// chance.
const MIN_INNER_BYTES: usize = 8;

/// Adds every encoding of `value` to `forms`.
pub(super) fn add_encodings(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    forms.push(value.to_vec());
    add_percent_encodings(value, forms);
    add_json_escapes(value, forms);
    for alphabet in [&STANDARD, &URL_SAFE] {
        // As a text of its own, with and without padding.
        let alone = alphabet.encode(value).into_bytes();
        let padding = alone.iter().rev().take_while(|byte| **byte == b'=').count();
        forms.push(alone[..alone.len() - padding].to_vec());
        forms.push(alone);
        // In a longer text it begins at one of three offsets within a group. The characters at its ends also hold bits
        // of its neighbours, and those between are always the same.
        for before in 0..3_usize {
            let mut padded = vec![0; before];
            padded.extend_from_slice(value);
            let encoded = alphabet.encode(&padded).into_bytes();
            let inner = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
            if inner.len() >= MIN_INNER_BYTES {
                forms.push(encoded[inner].to_vec());
            }
        }
    }
}

/// Adds the percent-encoding with the unreserved characters of RFC 3986 kept, as most encoders do: in upper and lower
/// case, and with `+` for a blank as in form data.
fn add_percent_encodings(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    use std::io::Write as _;
    let (mut upper, mut lower, mut form_data) = (Vec::new(), Vec::new(), Vec::new());
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            for text in [&mut upper, &mut lower, &mut form_data] {
                text.push(*byte);
            }
            continue;
        }
        // Writing to a Vec cannot fail.
        let _ = write!(upper, "%{byte:02X}");
        let _ = write!(lower, "%{byte:02x}");
        if *byte == b' ' {
            form_data.push(b'+');
        } else {
            let _ = write!(form_data, "%{byte:02X}");
        }
    }
    forms.extend([upper, lower, form_data]);
}

/// Adds the escapes of a JSON string: with `/` plain and escaped, and with everything outside ASCII plain and as `\u`
/// escapes.
fn add_json_escapes(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    let Ok(text) = std::str::from_utf8(value) else { return };
    for (escape_slash, ascii) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '"' => escaped.push_str("\\\""),
                '\\' => escaped.push_str("\\\\"),
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                '\u{8}' => escaped.push_str("\\b"),
                '\u{c}' => escaped.push_str("\\f"),
                '/' if escape_slash => escaped.push_str("\\/"),
                c if c < ' ' || ascii && !c.is_ascii() => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        escaped.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => escaped.push(c),
            }
        }
        forms.push(escaped.into_bytes());
    }
}
