//! Numbers of JSON that no number of 64 bits holds: they stay as they are written.

use std::borrow::Cow;

/// The digits that any decimal number of 64 bits keeps.
const EXACT_DIGITS: usize = 17;

/// Returns the text of JSON with quotes around each number that would lose digits: an integer of more than 64 bits, a decimal
/// number with more digits than a double has, and one beyond the range of a double.
pub(super) fn exact_numbers(json: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Vec::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = after_string(json, at),
            b'-' | b'0'..=b'9' => {
                let rest = json.get(at..).unwrap_or_default();
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = at + rest.iter().take_while(|byte| is_part(byte)).count();
                let number = json.get(at..end).unwrap_or_default();
                if loses_digits(number) {
                    text.extend_from_slice(json.get(copied..at).unwrap_or_default());
                    text.push(b'"');
                    text.extend_from_slice(number);
                    text.push(b'"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    text.extend_from_slice(json.get(copied..).unwrap_or_default());
    Cow::Owned(text)
}

/// Returns the offset after the string that begins at `at`.
fn after_string(json: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        match json.get(at + found) {
            Some(b'"') => return at + found + 1,
            _ => at += found + 2,
        }
    }
    json.len()
}

fn loses_digits(number: &[u8]) -> bool {
    let is_short = number.len() <= EXACT_DIGITS && !number.iter().any(|byte| matches!(byte, b'e' | b'E'));
    let Some(text) = std::str::from_utf8(number).ok().filter(|_| !is_short) else { return false };
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.parse::<i64>().is_err() && text.parse::<u64>().is_err() && text.len() > EXACT_DIGITS;
    }
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_start_matches('0').trim_end_matches('0').len();
    significant > EXACT_DIGITS || text.parse::<f64>().is_ok_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn a_number_that_would_change_is_text() {
        for (json, exact) in [
            (r#"{"id":12345678901234567890123}"#, r#"{"id":"12345678901234567890123"}"#),
            (r#"{"id":-12345678901234567890,"a":1}"#, r#"{"id":"-12345678901234567890","a":1}"#),
            (
                r#"[18446744073709551615,-9223372036854775808]"#,
                r#"[18446744073709551615,-9223372036854775808]"#,
            ),
            (r#"[18446744073709551616]"#, r#"["18446744073709551616"]"#),
            (r#"[123456789.12345679,-1.5e-300,1.0,1e5]"#, r#"[123456789.12345679,-1.5e-300,1.0,1e5]"#),
            (r#"[0.1234567890123456789,1e400]"#, r#"["0.1234567890123456789","1e400"]"#),
            (r#"{"a":"x\"12345678901234567890123"}"#, r#"{"a":"x\"12345678901234567890123"}"#),
            (r#"{"a":"open 12345678901234567890123"#, r#"{"a":"open 12345678901234567890123"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&exact_numbers(json.as_bytes())), exact);
        }
    }

    proptest! {
        #[test]
        fn doubles_and_integers_stay_what_they_are(number in any::<f64>(), whole in any::<i64>()) {
            let number = if number.is_finite() { number } else { 0.5 };
            let json = serde_json::json!([number, whole]).to_string();
            let read: Value = serde_json::from_slice(&exact_numbers(json.as_bytes())).unwrap();
            prop_assert_eq!(read, serde_json::json!([number, whole]));
        }

        #[test]
        fn any_bytes_are_kept(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let exact = exact_numbers(&bytes);
            prop_assert!(exact.iter().filter(|byte| **byte != b'"').eq(bytes.iter().filter(|byte| **byte != b'"')));
        }
    }
}
