//! Further forms in which a password stands beside its name: elements, entries of lists, typed definitions, calls,
//! settings with blanks around their sign, values in braces.
//!
//! In each the value is a literal. Expressions look like one only in settings without quotes, where the value must
//! have what no identifier has.

use crate::password_values::{is_strong, is_strong_password, is_written_out, strong_kind};
use crate::secret_name::MAX_NAME_BYTES;
use crate::span::SecretSpan;
use crate::token_runs::{ALNUM, WORD, end_of, is, start_of};

/// The number of bytes between a name and its value, beyond which they do not belong together.
const MAX_GAP_BYTES: usize = 48;
/// The longest value, in bytes.
const MAX_VALUE_BYTES: usize = 128;

/// Returns the literal beside the name from `start` to `end`.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    let name = bytes.get(start..end)?;
    if !is_strong(name) {
        return None;
    }
    let (from, to) = element(bytes, end)
        .or_else(|| entry(bytes, end))
        .or_else(|| typed(bytes, end))
        .or_else(|| call(bytes, name, end))
        .or_else(|| argument(bytes, start, end))
        .or_else(|| braces(bytes, name, end))
        .filter(|&(from, to)| is_written_out(&bytes[from..to]))
        .or_else(|| setting(bytes, start, end))?;
    Some(SecretSpan { start: from, end: to, kind: strong_kind(name) })
}

/// `<password>VALUE</password>`
fn element(bytes: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let start = expect(bytes, name_end, b">")?;
    let end =
        start + bytes[start..].iter().take(MAX_VALUE_BYTES).position(|&byte| matches!(byte, b'<' | b'\n'))?;
    bytes[end..].starts_with(b"</").then_some((start, end))
}

/// `name: DB_PASSWORD`, `value: VALUE`; `key="Password" value="VALUE"`
fn entry(bytes: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let gap = &bytes[name_end..bytes.len().min(name_end + MAX_GAP_BYTES)];
    let at = memchr::memmem::find(gap, b"alue")?;
    let before = &gap[..at.checked_sub(1)?];
    let is_gap = before.iter().all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b','));
    if !is_gap || before.is_empty() || !matches!(gap[at - 1], b'v' | b'V') {
        return None;
    }
    let sign = skip_blanks(bytes, skip_quote(bytes, name_end + at + 4));
    if !matches!(bytes.get(sign), Some(b':' | b'=')) {
        return None;
    }
    value(bytes, skip_blanks(bytes, sign + 1))
}

/// `password: str = "VALUE"`, `password: &'static str = "VALUE"`
fn typed(bytes: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let start = skip_blanks(bytes, expect(bytes, name_end, b":")?);
    let kind = &bytes[start..bytes.len().min(start + MAX_GAP_BYTES)];
    let length = kind
        .iter()
        .position(|&byte| !is(byte, WORD) && !matches!(byte, b'&' | b'\'' | b' ' | b'<' | b'>' | b'.'))?;
    if length == 0 || kind[length] != b'=' {
        return None;
    }
    quoted(bytes, skip_blanks(bytes, start + length + 1))
}

/// `setPassword("VALUE")`
fn call(bytes: &[u8], name: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let sets = ["set", "with"]
        .iter()
        .any(|word| name.len() > word.len() && name[..word.len()].eq_ignore_ascii_case(word.as_bytes()));
    quoted(bytes, expect(bytes, name_end, b"(").filter(|_| sets)?)
}

/// `define("DB_PASSWORD", "VALUE")`, `keyPassword "VALUE"`
fn argument(bytes: &[u8], name_start: usize, name_end: usize) -> Option<(usize, usize)> {
    let behind = skip_quote(bytes, name_end);
    if behind == name_end {
        // The last word of the line's first two: a directive, and no word of a sentence.
        let start = skip_blanks(bytes, name_end);
        return quoted(bytes, start).filter(|_| start > name_end && begins_line(bytes, name_start));
    }
    quoted(bytes, skip_blanks(bytes, expect(bytes, behind, b",")?))
}

/// `PWD={VALUE}`, as ODBC writes what has signs
fn braces(bytes: &[u8], name: &[u8], name_end: usize) -> Option<(usize, usize)> {
    let start = expect(bytes, name_end, b"={").filter(|_| is_strong_password(name))?;
    let end =
        start + bytes[start..].iter().take(MAX_VALUE_BYTES).position(|&byte| matches!(byte, b'}' | b'\n'))?;
    // The name of a variable stands in braces too.
    (bytes[end] == b'}' && bytes[start..end].iter().any(|&byte| !is(byte, WORD))).then_some((start, end))
}

/// `password = VALUE`, alone in its line
fn setting(bytes: &[u8], name_start: usize, name_end: usize) -> Option<(usize, usize)> {
    let sign = skip_blanks(bytes, name_end);
    if sign == name_end || bytes.get(sign) != Some(&b'=') || !begins_line(bytes, name_start) {
        return None;
    }
    let start = skip_blanks(bytes, sign + 1);
    let line = &bytes[start..bytes.len().min(start + MAX_VALUE_BYTES)];
    let end = start + line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len());
    let value = bytes[start..end].trim_ascii_end();
    let is_value = start > sign + 1
        && is_written_out(value)
        && !value.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`' | b';' | b',' | b'=' | b'|'))
        && !is_identifier(value);
    is_value.then_some((start, start + value.len()))
}

/// Returns true if `value` could be an expression: words and numbers as programs name things. A digit within a word is
/// none of these unless the word is that of a technique.
fn is_identifier(value: &[u8]) -> bool {
    const TECHNIQUES: [&str; 22] = [
        "base64", "base32", "base58", "sha1", "sha2", "sha3", "sha5", "md5", "utf8", "utf16", "argon2",
        "pbkdf2", "oauth2", "http2", "int32", "int64", "int8", "pkcs1", "x509", "aes1", "aes2", "ed25519",
    ];
    if !value.iter().all(|&byte| is(byte, WORD) || byte == b'.') {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    let trimmed = lower.len() - lower.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    value.iter().any(|byte| matches!(byte, b'_' | b'.'))
        || !lower[..trimmed].iter().any(u8::is_ascii_digit)
        || TECHNIQUES.iter().any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some())
}

fn begins_line(bytes: &[u8], name_start: usize) -> bool {
    // The words of a name, with full stops and hyphens: `spring.datasource.password`.
    let start = name_start
        - bytes[..name_start]
            .iter()
            .rev()
            .take(MAX_NAME_BYTES)
            .take_while(|&&byte| is(byte, ALNUM) || matches!(byte, b'.' | b'-' | b'_'))
            .count();
    let before =
        bytes[..start].iter().rev().take(32).position(|&byte| !matches!(byte, b' ' | b'\t' | b'+' | b'-'));
    before.is_none_or(|at| bytes[start - 1 - at] == b'\n')
}

/// Returns the value at `at`, in quotes or up to the end of its line.
fn value(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    quoted(bytes, at).or_else(|| {
        let end = end_of(bytes, at, crate::token_runs::VALUE, MAX_VALUE_BYTES);
        matches!(bytes.get(end), None | Some(b'\n' | b'\r')).then_some((at, end))
    })
}

/// Returns the text in quotes at `at`.
fn quoted(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = skip_quote(bytes, at);
    let quote = *bytes.get(start.checked_sub(1)?).filter(|_| start > at)?;
    let length =
        bytes[start..].iter().take(MAX_VALUE_BYTES).position(|&byte| byte == quote || byte == b'\n')?;
    (bytes[start + length] == quote).then_some((start, start + length))
}

fn expect(bytes: &[u8], at: usize, text: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(text).then_some(at + text.len())
}

fn skip_quote(bytes: &[u8], at: usize) -> usize {
    at + usize::from(matches!(bytes.get(at), Some(b'"' | b'\'')))
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes.iter().skip(at).take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Returns the base64 of `user:password` beside the name `auth`, as registries of images and packages keep it: the value
/// begins at or behind `at`.
pub(crate) fn registry_auth(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let name_start = start_of(bytes, at, WORD, MAX_NAME_BYTES);
    let name = bytes.get(name_start..at + "auth".len())?;
    if !matches!(name, b"auth" | b"_auth") {
        return None;
    }
    let sign = skip_blanks(bytes, skip_quote(bytes, at + "auth".len()));
    if !matches!(bytes.get(sign), Some(b':' | b'=')) {
        return None;
    }
    let start = skip_quote(bytes, skip_blanks(bytes, sign + 1));
    crate::url::credentials_at(bytes, start)
}

/// Returns the signature of a shared access signature of Azure, whose `sig=` is at `at`.
pub(crate) fn shared_access_signature(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    /// A SHA-256 in base64, of which some characters are percent-encoded.
    const MIN_SIGNATURE_BYTES: usize = 40;
    let is_member = at > 0 && matches!(bytes[at - 1], b'?' | b'&' | b';' | b'=');
    let start = at + "sig=".len();
    let length = bytes[start..]
        .iter()
        .take(MAX_VALUE_BYTES)
        .take_while(|&&byte| is(byte, ALNUM) || matches!(byte, b'%' | b'+' | b'/' | b'-' | b'_' | b'='))
        .count();
    let value = &bytes[start..start + length];
    let is_signature = length >= MIN_SIGNATURE_BYTES && value.iter().any(u8::is_ascii_digit);
    (is_member && is_signature).then_some(SecretSpan { start, end: start + length, kind: "azure-signature" })
}
