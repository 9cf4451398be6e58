//! The kind of secret that a value is by its name alone, where no expression can stand: in a log line, and in the setting of
//! a variable.

use crate::randomness::MAX_JUDGED_BYTES;
use crate::secret_name::MAX_NAME_BYTES;
use crate::template::is_template;
use crate::token_runs::{ALNUM, is};

/// The names that are looked for in log lines beyond those of any text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogName {
    Password,
    Secret,
    Session,
    /// A header with cookies.
    Cookie,
    Key,
}

/// Words of a sentence about a password, which stands in its place: `must be at least 8 characters`.
const SENTENCE_WORDS: [&str; 36] = [
    "a",
    "an",
    "and",
    "are",
    "at",
    "be",
    "been",
    "can",
    "cannot",
    "can't",
    "characters",
    "contain",
    "does",
    "doesn't",
    "for",
    "has",
    "have",
    "in",
    "is",
    "least",
    "long",
    "match",
    "must",
    "not",
    "of",
    "or",
    "please",
    "short",
    "should",
    "the",
    "to",
    "too",
    "was",
    "with",
    "your",
    "forgot",
];

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

/// Returns what `name` is, if a log line would have a secret behind it.
pub(crate) fn log_name(name: &[u8]) -> Option<LogName> {
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
        () if matches!(flat.as_slice(), b"cookie" | b"setcookie") => Some(LogName::Cookie),
        () if ends(&["apikey"]) => Some(LogName::Key),
        () => None,
    }
}

/// Returns the kind of secret that `value` is behind `name`. `in_text` is true for `name: value` without quotes, where a
/// word is one of a sentence.
pub(crate) fn kind_of(name: LogName, value: &[u8], in_text: bool) -> Option<&'static str> {
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
        LogName::Cookie => {
            let content = value.split(|byte| *byte == b'=').nth(1).unwrap_or_default();
            let is_written = content.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
            ("cookie", content.len() >= 6 && is_written && !is_template(content))
        }
        LogName::Key => {
            let is_key = value.iter().all(|byte| is(*byte, ALNUM));
            ("api-key", is_key && letters && digits && value.len() >= 8)
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

/// Returns the kind of secret that `value` is behind `name`, whose beginning and end are known: a passphrase has blanks.
pub(crate) fn kind_of_whole(name: LogName, value: &[u8]) -> Option<&'static str> {
    if matches!(name, LogName::Password | LogName::Secret) && value.contains(&b' ') {
        return is_passphrase(name, value).then_some(match name {
            LogName::Password => "password",
            _ => "secret",
        });
    }
    kind_of(name, value, false)
}

/// Returns whether `value`, which has blanks, is a passphrase and no sentence about one.
fn is_passphrase(name: LogName, value: &[u8]) -> bool {
    if !(6..=MAX_JUDGED_BYTES).contains(&value.len()) || is_template(value) {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    let words: Vec<&[u8]> = lower
        .split(|byte| *byte == b' ')
        .map(|word| word.strip_suffix(b".").or_else(|| word.strip_suffix(b"?")).unwrap_or(word))
        .filter(|word| !word.is_empty())
        .collect();
    let is_one_of = |list: &[&str], word: &[u8]| list.iter().any(|known| word == known.as_bytes());
    let is_sentence = words.iter().any(|word| is_one_of(&SENTENCE_WORDS, word));
    let told = words.iter().filter(|word| is_one_of(&WORDS, word)).count();
    let digits = value.iter().any(u8::is_ascii_digit);
    let is_text = value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || !byte.is_ascii());
    is_text
        && words.len() > 1
        && (digits || name == LogName::Password)
        && !is_sentence
        && told * 2 < words.len()
}

/// Returns the kind of secret that `value` is where no expression can stand: a password of letters alone is one there.
pub(crate) fn word_kind(name: &[u8], value: &[u8]) -> Option<&'static str> {
    match log_name(name)? {
        LogName::Password => kind_of(LogName::Password, value, false),
        LogName::Secret | LogName::Session | LogName::Cookie | LogName::Key => None,
    }
}
