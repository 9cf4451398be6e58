//! Passwords that a person made up, beside a name that can hold nothing else: `"password":"hunter2secret"`.
//!
//! They have no look of chance, so the place has to tell them from code: the value is a literal, not an expression, a
//! type or a text that stands for a value.

use crate::randomness::MAX_JUDGED_BYTES;
use crate::secret_name::{MAX_NAME_BYTES, secret_name};
use crate::template::is_template;
use crate::token_runs::{ALNUM, is};

/// The shortest value that is taken for a secret, in bytes.
const MIN_BYTES: usize = 6;

/// How a value stands beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// A member of an object: the name and the value are quoted.
    Member,
    /// A quoted value behind a name without quotes, as in code.
    Quoted,
    /// `name=value`, without blanks: logfmt, the query of an address, a connection string.
    Pair,
    /// `name: value`: YAML, text.
    Header,
    /// The secret part of a header of HTTP.
    HeaderValue,
}

/// The names that hold a secret whatever its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrongName {
    Password,
    Secret,
    /// An API key or a token: in code, these are names of many other things.
    Key,
    /// The value of an `Authorization` or `Cookie` header.
    Header,
    /// The cookie of a session by a framework's own name.
    Session,
}

fn strong_name(name: &[u8]) -> Option<(StrongName, &'static str)> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let flat: Vec<u8> = name.iter().filter(|byte| is(**byte, ALNUM)).map(u8::to_ascii_lowercase).collect();
    let ends = |endings: &[&str]| endings.iter().any(|ending| flat.ends_with(ending.as_bytes()));
    match flat.as_slice() {
        b"cookie" | b"setcookie" => return Some((StrongName::Header, "cookie")),
        b"jsessionid" | b"phpsessid" | b"netsessionid" => {
            return Some((StrongName::Session, "session"));
        }
        _ => {}
    }
    let kind = secret_name(name)?;
    let strong = match () {
        () if ends(&["password", "passwd", "pwd", "passphrase", "passcode"]) => StrongName::Password,
        () if ends(&["secret"]) => StrongName::Secret,
        // `ADMIN_PASS`, `"pass"`: only as a word of its own.
        () if kind == "password" && ends(&["pass"]) => StrongName::Password,
        () if ends(&["apikey", "token"]) => StrongName::Key,
        () if ends(&["authorization"]) => StrongName::Header,
        () => return None,
    };
    Some((strong, kind))
}

/// Returns true if `name` can hold nothing but a password or a secret.
pub(crate) fn is_strong(name: &[u8]) -> bool {
    matches!(strong_name(name), Some((StrongName::Password | StrongName::Secret, _)))
}

/// Returns true if `name` can hold nothing but a password.
pub(crate) fn is_strong_password(name: &[u8]) -> bool {
    matches!(strong_name(name), Some((StrongName::Password, _)))
}

/// Returns the kind of secret that a name of [`is_strong`] names.
pub(crate) fn strong_kind(name: &[u8]) -> &'static str {
    strong_name(name).map_or("password", |(_, kind)| kind)
}

/// Returns true if `value`, which is no expression by its place, is written out as a person writes passwords.
pub(crate) fn is_written_out(value: &[u8]) -> bool {
    is_literal(value, true)
}

/// Returns the kind of secret that `value` is beside `name`, with the byte after the value, if it is one.
pub(crate) fn kind_of(name: &[u8], value: &[u8], form: ValueForm, after: Option<u8>) -> Option<&'static str> {
    let (strong, kind) = strong_name(name)?;
    let is_allowed = match (strong, form) {
        (StrongName::Header, ValueForm::Member | ValueForm::HeaderValue) => {
            return is_header(value).then_some(kind);
        }
        (StrongName::Password, _)
        | (_, ValueForm::Member)
        | (StrongName::Secret, ValueForm::Quoted | ValueForm::Pair)
        | (StrongName::Session, ValueForm::Pair) => true,
        _ => false,
    };
    let is_value = match form {
        ValueForm::Member | ValueForm::Quoted => is_literal(value, true),
        ValueForm::Pair | ValueForm::Header | ValueForm::HeaderValue => {
            is_literal(value, false) && !is_code(value, form, after)
        }
    };
    // Names of things are words with hyphens and a number: `my-tls-secret-2`.
    let is_reference = strong != StrongName::Password && (is_words(value) || is_uuid_like(value));
    (is_allowed && is_value && !is_reference).then_some(kind)
}

/// Returns true if the value of a header or a cookie is there, and not a text that stands for one.
fn is_header(value: &[u8]) -> bool {
    let credentials = value.split(|byte| *byte == b' ').next_back().unwrap_or_default();
    let content = value.split(|byte| *byte == b'=').nth(1).unwrap_or(credentials);
    value.len() >= MIN_BYTES
        && !is_template(credentials)
        && !is_template(content)
        && !value.iter().any(|byte| matches!(byte, b'{' | b'<' | b'$' | b'[' | b'('))
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
}

/// Returns true if `value` is written out: it is neither a word, nor does it stand for a value.
fn is_literal(value: &[u8], quoted: bool) -> bool {
    const PLACEHOLDERS: [&[u8]; 12] = [
        b"changeme",
        b"change_me",
        b"change-me",
        b"example",
        b"placeholder",
        b"your",
        b"my-",
        b"my_",
        b"todo",
        b"dummy",
        b"insert",
        b"redacted",
    ];
    if !(MIN_BYTES..=MAX_JUDGED_BYTES).contains(&value.len()) || is_template(value) {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    let stands_for = PLACEHOLDERS.iter().any(|start| lower.starts_with(start))
        || value.contains(&b'/') && !value.iter().any(u8::is_ascii_digit)
        || value.starts_with(b"/")
        || value.starts_with(b"./")
        || memchr::memmem::find(value, b"://").is_some()
        // The rules of a form: `required|min:8`.
        || value.contains(&b'|') && value.contains(&b':')
        || memchr::memmem::find(value, b"::").is_some();
    let is_expression = value.iter().any(|byte| {
        matches!(byte, b' ' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b'\\') || *byte < b' '
    });
    let is_constant = value.contains(&b'_')
        && value.iter().all(|byte| *byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let (letters, digits) = (value.iter().any(u8::is_ascii_alphabetic), value.iter().any(u8::is_ascii_digit));
    let signs = value
        .iter()
        .any(|byte| matches!(byte, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~'));
    let mixed = letters && (digits || signs)
        || digits && !letters && (quoted || value.len() >= 8) && !is_number(value);
    !stands_for && !is_expression && !is_constant && mixed
}

/// Returns true for digits alone of a length that a number in a log or a setting has.
fn is_number(value: &[u8]) -> bool {
    value.len() < 12 && value.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
}

/// Returns true if a value without quotes is an expression or a type: `password=password2)`, `password: Uint8Array`.
fn is_code(value: &[u8], form: ValueForm, after: Option<u8>) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_identifier = value.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && value.iter().all(|byte| is_word(byte) || *byte == b'.');
    let ended_as_code = matches!(after, Some(b'(' | b'[' | b')' | b',' | b'=' | b'{' | b'|' | b']' | b'}'))
        || after == Some(b';') && form == ValueForm::Header;
    let is_type = form == ValueForm::Header
        && (value.first().is_some_and(u8::is_ascii_uppercase)
            // A type may end in a width, and a password in a year.
            && value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count() < 4
            || value.ends_with(b"?")
            || value.ends_with(b"!"));
    is_identifier && (ended_as_code || value.contains(&b'.') || is_type)
}

/// Returns true if `value` is made of words and numbers with a sign between them: `my-tls-certificate-2`.
fn is_words(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b':'));
    let count = parts.clone().count();
    let is_part = |part: &[u8]| {
        part.iter().all(u8::is_ascii_digit)
            || part.iter().all(u8::is_ascii_lowercase)
            || part.iter().all(u8::is_ascii_uppercase)
            || part.len() < 4
    };
    count > 1 && parts.all(is_part)
}

fn is_uuid_like(value: &[u8]) -> bool {
    value.len() == 36 && value.iter().filter(|byte| **byte == b'-').count() == 4
}
