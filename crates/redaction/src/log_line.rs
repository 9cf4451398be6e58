//! Secrets of log lines that the look of a value does not tell from code: a password of letters alone, the id of a
//! session.
//!
//! A log holds values and hardly any code, so a literal behind a telling name is taken for what the name says. Words that
//! stand for a value (`password=None`, `password=[FILTERED]`), types and names of fields are not.

use crate::named;
use crate::randomness::MAX_JUDGED_BYTES;
use crate::runs::{ALNUM, is};
use crate::secret_name::MAX_NAME_BYTES;
use crate::span::SecretSpan;
use crate::template::is_template;

/// The names that are looked for in log lines beyond those of any text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogName {
    Password,
    Secret,
    Session,
}

/// Words that a log has in the place of a password.
const WORDS: [&str; 49] = [
    "accepted",
    "auth",
    "authentication",
    "changed",
    "changeme",
    "configured",
    "correct",
    "credential",
    "credentials",
    "default",
    "denied",
    "disabled",
    "empty",
    "enabled",
    "encrypted",
    "example",
    "expired",
    "failed",
    "failure",
    "false",
    "field",
    "filtered",
    "hashed",
    "hidden",
    "incorrect",
    "invalid",
    "masked",
    "mismatch",
    "missing",
    "none",
    "null",
    "optional",
    "placeholder",
    "prompt",
    "protected",
    "provided",
    "redacted",
    "required",
    "reset",
    "string",
    "success",
    "supplied",
    "unchanged",
    "undefined",
    "unknown",
    "updated",
    "value",
    "verified",
    "wrong",
];

fn log_name(name: &[u8]) -> Option<LogName> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let flat: Vec<u8> = name.iter().filter(|byte| is(**byte, ALNUM)).map(u8::to_ascii_lowercase).collect();
    let ends = |endings: &[&str]| endings.iter().any(|ending| flat.ends_with(ending.as_bytes()));
    match () {
        () if ends(&["password", "passwd", "pwd", "passphrase", "passcode"]) => Some(LogName::Password),
        () if ends(&["secret"]) => Some(LogName::Secret),
        () if ends(&["sessionid", "sessid"]) || matches!(flat.as_slice(), b"sid" | b"connectsid") => {
            Some(LogName::Session)
        }
        () => None,
    }
}

/// Returns the kind of secret that `value` is behind `name`. `in_text` is true for `name: value` without quotes, where a
/// word is one of a sentence.
fn kind_of(name: LogName, value: &[u8], in_text: bool) -> Option<&'static str> {
    if value.len() > MAX_JUDGED_BYTES || is_template(value) {
        return None;
    }
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits = value.iter().any(u8::is_ascii_digit);
    let lower = value.to_ascii_lowercase();
    let has = |part: &str| memchr::memmem::find(&lower, part.as_bytes()).is_some();
    let (kind, is_secret) = match name {
        LogName::Session => {
            let is_id = value.iter().all(|byte| {
                is(*byte, ALNUM)
                    || matches!(byte, b'-' | b'_' | b'.' | b':' | b'%' | b'+' | b'/' | b'=' | b'~')
            });
            // `S-1-5-21-…` is the identity of a user of Windows.
            let is_user = value.starts_with(b"S-1-");
            let is_long = value.len() >= if letters { 8 } else { 16 };
            ("session", is_id && digits && is_long && !is_user)
        }
        LogName::Password | LogName::Secret => {
            let is_mixed = letters && digits && value.len() >= 8;
            let is_word = !digits && value.len() >= 6 && value.iter().all(u8::is_ascii_alphabetic);
            let is_named = ["password", "passwd", "passphrase"].iter().any(|part| has(part));
            let is_type = has("array")
                || ["string", "uint", "int", "bytes"].iter().any(|part| lower.starts_with(part.as_bytes()));
            let is_placeholder = ["changeme", "example", "placeholder", "your", "dummy"]
                .iter()
                .any(|part| lower.starts_with(part.as_bytes()));
            // Names of things are words with hyphens and a number: `my-tls-secret-2`.
            let is_reference = name == LogName::Secret && value.contains(&b'-');
            let stands_for = is_placeholder
                || is_reference
                || WORDS.iter().any(|word| lower == word.as_bytes())
                || is_named
                || is_type;
            let is_text = value.iter().all(|byte| {
                byte.is_ascii_graphic()
                    && !matches!(
                        byte,
                        b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b'/' | b'_' | b'.' | b':'
                    )
            });
            let kind = if name == LogName::Password { "password" } else { "secret" };
            let is_word = is_word && name == LogName::Password && !in_text;
            (kind, is_text && !stands_for && (is_mixed || is_word))
        }
    };
    is_secret.then_some(kind)
}

/// Returns the kind of secret that `value` is where no expression can stand: a password of letters alone is one there.
pub(crate) fn word_kind(name: &[u8], value: &[u8]) -> Option<&'static str> {
    match log_name(name)? {
        LogName::Password => kind_of(LogName::Password, value, false),
        LogName::Secret | LogName::Session => None,
    }
}

/// Returns the kind of secret that a member of a log entry holds.
pub(crate) fn member(name: &str, value: &str) -> Option<&'static str> {
    named::member(name, value).or_else(|| kind_of(log_name(name.as_bytes())?, value.as_bytes(), false))
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
    let kind = kind_of(name, value, in_text)?;
    Some(SecretSpan { start, end: start + value.len(), kind })
}
