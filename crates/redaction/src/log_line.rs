//! Secrets of log lines that the look of a value does not tell from code: a password of letters alone, the id of a
//! session.
//!
//! A log holds values and hardly any code, so a literal behind a telling name is taken for what the name says. Words that
//! stand for a value (`password=None`, `password=[FILTERED]`), types and names of fields are not.

use crate::log_secret::{LogName, kind_of, kind_of_whole, log_name};
use crate::named_values;
use crate::randomness::MAX_JUDGED_BYTES;
use crate::secret_name::MAX_NAME_BYTES;
use crate::span::SecretSpan;
use crate::token_runs::{ALNUM, is};

/// Returns the kind of secret that a member of a log entry holds.
pub(crate) fn member(name: &str, value: &str) -> Option<&'static str> {
    named_values::member(name, value).or_else(|| kind_of_whole(log_name(name.as_bytes())?, value.as_bytes()))
}

/// Adds the secrets of `bytes`, which are lines of a log.
pub(crate) fn find(bytes: &[u8], spans: &mut Vec<SecretSpan>) {
    spans.extend(memchr::memchr2_iter(b'=', b':', bytes).filter_map(|at| at_sign(bytes, at)));
}

/// Returns the secret value behind the sign at `at`, `=` or `:`, if the name before it says that it is one.
fn at_sign(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\''));
    let before = bytes.get(..at)?;
    let is_named_in_quotes = is_quote(before.last());
    let mut name_end = if is_named_in_quotes { at - 1 } else { at };
    if is_named_in_quotes && before.get(..name_end)?.last() == Some(&b'\\') {
        name_end -= 1;
    }
    let is_name = |byte: &&u8| is(**byte, ALNUM) || matches!(byte, b'_' | b'-' | b'.');
    let length = before.get(..name_end)?.iter().rev().take(MAX_NAME_BYTES + 1).take_while(is_name).count();
    let name = log_name(before.get(name_end - length..name_end)?)?;
    let rest = bytes.get(at + 1..)?;
    let blanks = rest.iter().take(2).take_while(|byte| **byte == b' ').count();
    let is_colon = bytes.get(at) == Some(&b':');
    // Blanks around an equals sign are those of code or of a setting.
    if blanks > usize::from(is_colon) {
        return None;
    }
    let mut start = at + 1 + blanks;
    if bytes.get(start) == Some(&b'\\') {
        start += 1;
    }
    let quote = bytes.get(start).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    start += usize::from(quote.is_some());
    let is_end = |byte: &u8| match quote {
        Some(quote) => *byte == quote || *byte == b'\\' || byte.is_ascii_control(),
        // The value of a header reaches to the end of its line.
        None if name == LogName::Cookie => byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'\\'),
        None => {
            byte.is_ascii_whitespace()
                || byte.is_ascii_control()
                || matches!(byte, b'"' | b'\'' | b'\\' | b',' | b';' | b'&' | b'|')
        }
    };
    let value = bytes.get(start..)?;
    let length = value.iter().take(MAX_JUDGED_BYTES + 1).position(is_end).unwrap_or(value.len());
    let value = value.get(..length)?;
    let in_text = is_colon && quote.is_none();
    // A sentence ends with its sign.
    let value = if in_text { value.strip_suffix(b".").unwrap_or(value) } else { value };
    let kind = if quote.is_some() { kind_of_whole(name, value) } else { kind_of(name, value, in_text) }?;
    Some(SecretSpan { start, end: start + value.len(), kind })
}
