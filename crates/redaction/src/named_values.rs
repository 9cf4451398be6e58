//! Values beside a secret-like name: `api_key = "…"`, `"password": "…"`, `--token …`, `<secret>…`.
//!
//! The name alone says little (`token = next_token()`), and so does the value alone (a checksum looks like
//! a key). Only both together are a secret: a name of the list, and a value that nobody would write by hand.

use crate::command_line;
use crate::log_secret;
use crate::name_forms;
use crate::password_values::{self, ValueForm};
use crate::randomness::{MAX_JUDGED_BYTES, is_random};
use crate::secret_name::{MAX_NAME_BYTES, secret_name};
use crate::span::SecretSpan;
use crate::template::is_template;
use crate::token_runs::{ALNUM, HEX, VALUE, WORD, end_of, is, is_at, start_of};
use crate::url;

/// The shortest value that is taken for a secret, in bytes.
const MIN_VALUE_BYTES: usize = 16;

/// Returns the secret value around the run from `start` to `end`, if a name before it says that it is one.
pub(crate) fn at_run(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    // Identifiers and words are most of the long runs, and have no digit.
    if !bytes[start..end].iter().any(u8::is_ascii_digit) && end - start < 20 {
        return None;
    }
    let from = start_of(bytes, start, VALUE, MAX_NAME_BYTES);
    let name = preceding_name(bytes, from)?;
    if name.is_bearer {
        let to = value_end(bytes, end);
        return is_random(&bytes[from..to], 0.15).then_some(SecretSpan {
            start: from,
            end: to,
            kind: "bearer-token",
        });
    }
    let kind = kind_of(bytes, &name)?;
    let to = value_end(bytes, end);
    let type_or_call = bytes.get(to) == Some(&b'(')
        || (unquote_back(bytes, from) == from
            && matches!(bytes.get(skip_blanks(bytes, to)), Some(b'=' | b'{')));
    (!type_or_call && is_secret(&bytes[from..to], kind)).then_some(SecretSpan { start: from, end: to, kind })
}

/// Returns the secret value behind the name that has a part (`assw`, `ecret`, …) at `at`. Finds what [`at_run`] does
/// not: passwords with signs in them, which have no long run.
pub(crate) fn at_name(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let name_start = start_of(bytes, at, WORD, MAX_NAME_BYTES);
    let name_end = end_of(bytes, at, WORD, MAX_NAME_BYTES);
    let name = &bytes[name_start..name_end];
    let further = name_forms::find(bytes, name_start, name_end)
        .or_else(|| command_line::at_flag(bytes, name_start, name_end));
    if further.is_some() {
        return further;
    }
    let mut at = skip_quote(bytes, name_end);
    let quoted_name = at > name_end;
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    at = skip_blanks(bytes, at);
    let separator = at;
    while at < separator + 2 && matches!(bytes.get(at), Some(b'=' | b':' | b'>')) {
        at += 1;
    }
    if at == separator {
        return None;
    }
    let signs = &bytes[separator..at];
    let blank = at;
    at = skip_blanks(bytes, at);
    let start = skip_quote(bytes, at);
    let end = if start > at {
        let quote = bytes[start - 1];
        let length = bytes[start..]
            .iter()
            .take(MAX_JUDGED_BYTES)
            .position(|&byte| byte == quote || byte.is_ascii_control())?;
        // A quote within a quoted text is escaped at both ends.
        start + length - usize::from(start > at + 1 && bytes[start + length - 1] == b'\\')
    } else {
        let length = bytes[start..]
            .iter()
            .take(MAX_JUDGED_BYTES)
            .take_while(|&&byte| {
                byte.is_ascii_graphic()
                    && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<')
                    // It separates what stands in the query of an address, and nothing behind a colon.
                    && (byte != b'&' || signs == b":")
            })
            .count();
        start + length
    };
    let value = bytes.get(start..end)?;
    // An anchor of YAML, a reference of Rust or C++.
    if start == at && value.first() == Some(&b'&') {
        return None;
    }
    let form = match (start > at, quoted_name, signs) {
        (true, true, b":") => Some(ValueForm::Member),
        (true, ..) => Some(ValueForm::Quoted),
        // Blanks before the sign are code, or a setting's.
        (false, _, b"=") if at == blank && separator == name_end => Some(ValueForm::Pair),
        (false, false, b":") if separator == name_end => Some(ValueForm::Header),
        _ => None,
    };
    if let Some(form) = form {
        let header =
            if form == ValueForm::Header { header_value(bytes, name_start, name, start) } else { None };
        let form = if header.is_some() { ValueForm::HeaderValue } else { form };
        let (start, end) = header.unwrap_or((start, end));
        if let Some(kind) = password_values::kind_of(name, &bytes[start..end], form, bytes.get(end).copied())
        {
            return Some(SecretSpan { start, end, kind });
        }
    }
    if form == Some(ValueForm::Pair)
        && is_variable_line(bytes, name_start, name, end)
        && let Some(kind) = log_secret::word_kind(name, value)
    {
        return Some(SecretSpan { start, end, kind });
    }
    let kind = secret_name(name)?;
    let is_code = value.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b' ' | b'<'));
    (!is_code && is_secret(value, kind)).then_some(SecretSpan { start, end, kind })
}

/// The most bytes before the name of a variable in its line: blanks, and `export`.
const MAX_BYTES_BEFORE_VARIABLE: usize = 64;

/// Returns true if the line is the setting of a variable and nothing else, as in an `.env` file: `DB_PASSWORD=…`. There a
/// value is never an expression.
fn is_variable_line(bytes: &[u8], name_start: usize, name: &[u8], value_end: usize) -> bool {
    let is_constant =
        name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
    let is_end = matches!(bytes.get(value_end), None | Some(b'\n' | b'\r'));
    if !is_constant || !is_end {
        return false;
    }
    // Not back to the start of any line: a line of megabytes would be read again for each of its names.
    let look_back = name_start.saturating_sub(MAX_BYTES_BEFORE_VARIABLE);
    let line_start = match memchr::memrchr(b'\n', &bytes[look_back..name_start]) {
        Some(newline) => look_back + newline + 1,
        None if look_back == 0 => 0,
        None => return false,
    };
    let before = bytes[line_start..name_start].trim_ascii();
    before.is_empty() || before == b"export"
}

/// Appends the passwords in the list that stands behind the name with a part (`assw`, …) at `at`: `passwords: [a1, b2]`, or a
/// line with a hyphen for each.
pub(crate) fn list(bytes: &[u8], at: usize, spans: &mut Vec<SecretSpan>) {
    /// The most values of one list that are looked at.
    const MAX_VALUES: usize = 200;
    let name_start = start_of(bytes, at, WORD, MAX_NAME_BYTES);
    let name_end = end_of(bytes, at, WORD, MAX_NAME_BYTES);
    let after_quote = skip_quote(bytes, name_end);
    let separator = skip_blanks(bytes, after_quote);
    if !matches!(bytes.get(separator), Some(b':' | b'=')) {
        return;
    }
    let from = skip_blanks(bytes, separator + 1);
    // Before the name is judged, which costs more: hardly any is that of a list.
    if !matches!(bytes.get(from), Some(b'[' | b'\r' | b'\n')) {
        return;
    }
    let name = &bytes[name_start..name_end];
    let singular = name.strip_suffix(b"s").or_else(|| name.strip_suffix(b"S")).unwrap_or(name);
    if !password_values::is_strong_password(singular) && !password_values::is_strong_password(name) {
        return;
    }
    let mut push = |start: usize, end: usize| {
        let value = &bytes[start..end];
        if password_values::is_written_out(value) {
            spans.push(SecretSpan { start, end, kind: password_values::strong_kind(singular) });
        }
    };
    if bytes.get(from) == Some(&b'[') {
        let mut at = from + 1;
        for _ in 0..MAX_VALUES {
            at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = skip_quote(bytes, at);
            let quote = (start > at).then(|| bytes[start - 1]);
            let length = bytes[start..].iter().take(MAX_JUDGED_BYTES).position(|byte| match quote {
                Some(quote) => *byte == quote || byte.is_ascii_control(),
                None => matches!(byte, b',' | b']' | b'(' | b'{' | b'[') || byte.is_ascii_whitespace(),
            });
            let Some(length) = length else { return };
            let end = start + length;
            let behind = end + usize::from(quote.is_some());
            let next = behind
                + bytes[behind.min(bytes.len())..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace())
                    .count();
            // Anything else behind a value makes it an expression.
            let Some(b',' | b']') = bytes.get(next) else { return };
            push(start, end);
            if bytes[next] == b']' {
                return;
            }
            at = next + 1;
        }
        return;
    }
    // A list in lines.
    let mut at = from;
    for _ in 0..MAX_VALUES {
        let Some(b'\n') = bytes.get(at + usize::from(bytes.get(at) == Some(&b'\r'))) else { return };
        at += 1 + usize::from(bytes[at] == b'\r');
        let indent = bytes[at..].iter().take_while(|byte| **byte == b' ').count();
        if !bytes[at + indent..].starts_with(b"- ") {
            return;
        }
        let value = skip_blanks(bytes, at + indent + 2);
        let start = skip_quote(bytes, value);
        let is_end =
            |byte: &u8| *byte == b'\n' || *byte == b'\r' || (start > value && *byte == bytes[start - 1]);
        let rest = &bytes[start..];
        let length = match rest.iter().take(MAX_JUDGED_BYTES + 1).position(is_end) {
            Some(length) => length,
            None if rest.len() <= MAX_JUDGED_BYTES => rest.len(),
            None => return,
        };
        let end = start + length;
        push(start, end);
        at = end + usize::from(start > value && end < bytes.len());
    }
}

/// Returns the place of the secret in the header `name`, whose value begins at `start`: behind the scheme of
/// `Authorization`, and the values of `Cookie` and `Set-Cookie`.
fn header_value(bytes: &[u8], name_start: usize, name: &[u8], start: usize) -> Option<(usize, usize)> {
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\') || byte.is_ascii_control();
    let rest = &bytes[start..];
    let line = match rest.iter().take(8 * MAX_JUDGED_BYTES).position(is_end) {
        Some(length) => &rest[..length],
        None if rest.len() <= 8 * MAX_JUDGED_BYTES => rest,
        None => return None,
    };
    if name.eq_ignore_ascii_case(b"authorization") {
        let blank = line.iter().position(|byte| *byte == b' ')?;
        // `url::basic` looks into the other one.
        let is_scheme = line[..blank].iter().all(|&byte| is(byte, ALNUM))
            && !line[..blank].eq_ignore_ascii_case(b"basic");
        let value = &line[blank + 1..];
        let length = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        return is_scheme.then_some((start + blank + 1, start + blank + 1 + length));
    }
    if !name.eq_ignore_ascii_case(b"cookie") {
        return None;
    }
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let value = &line[equals + 1..];
    // The attributes of a cookie that is set are no secret.
    let is_set = name_start >= 4 && bytes[name_start - 4..name_start].eq_ignore_ascii_case(b"set-");
    let length = if is_set { value.iter().position(|byte| *byte == b';') } else { None };
    Some((start + equals + 1, start + equals + 1 + length.unwrap_or(value.len())))
}

/// Returns the kind of secret that a member of an object holds, if both its name and its value say that it is one.
pub(crate) fn member(name: &str, value: &str) -> Option<&'static str> {
    if let Some(kind) = password_values::kind_of(name.as_bytes(), value.as_bytes(), ValueForm::Member, None) {
        return Some(kind);
    }
    if matches!(name, "auth" | "_auth") && url::credentials_at(value.as_bytes(), 0).is_some() {
        return Some("basic-credentials");
    }
    let kind = secret_name(name.as_bytes())?;
    (!value.contains([' ', '\n', '(', '{', '[', '<']) && is_secret(value.as_bytes(), kind)).then_some(kind)
}

/// Returns the end of the value that a run is part of, with the padding of base64.
fn value_end(bytes: &[u8], run_end: usize) -> usize {
    let end = end_of(bytes, run_end, VALUE, usize::MAX);
    end + bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count()
}

/// The name that stands before a value, as byte offsets.
struct PrecedingName {
    start: usize,
    end: usize,
    /// True for the word `Bearer` and a blank, as in an `Authorization` header.
    is_bearer: bool,
}

/// Returns the name that belongs to a value that begins at `value`.
fn preceding_name(bytes: &[u8], value: usize) -> Option<PrecedingName> {
    let mut at = unquote_back(bytes, value);
    let quoted = at < value;
    if quoted
        && at > 0
        && matches!(bytes[at - 1], b'b' | b'r' | b'f' | b'u' | b'@')
        && !is_at(bytes, at.wrapping_sub(2), WORD)
    {
        at -= 1; // the prefix of a literal: b"…", r"…"
    }
    let mut end = blanks_back(bytes, at);
    let blank = end < at;
    match bytes.get(end.checked_sub(1)?)? {
        b'=' | b':' | b'>' => {
            // `=>`, `:=`, `===`, `+=` and their like: a comparison names its value as an assignment does.
            let mut signs = 0;
            while end > 0
                && signs < 3
                && matches!(bytes[end - 1], b'=' | b':' | b'>' | b'!' | b'?' | b'+' | b'-')
            {
                end -= 1;
                signs += 1;
            }
            // A path in code, such as `token::parse`, and not a name with a value.
            if bytes[end..].starts_with(b"::") {
                return None;
            }
        }
        // An argument: `set("token", "…")`.
        b'(' | b',' if quoted => end -= 1,
        _ if blank && !quoted => {}
        _ => return None,
    }
    end = blanks_back(bytes, end);
    if end > 0 && bytes[end - 1] == b']' {
        end -= 1;
    }
    end = unquote_back(bytes, end);
    let start = start_of(bytes, end, WORD, MAX_NAME_BYTES);
    // A header's name or a flag has hyphens: `x-api-key`, `--token`.
    let start = (0..8).try_fold(start, |start, _| {
        if start > 1 && bytes[start - 1] == b'-' && is_at(bytes, start - 2, ALNUM) {
            Ok(start_of(bytes, start - 1, WORD, MAX_NAME_BYTES))
        } else {
            Err(start)
        }
    });
    let start = start.unwrap_or_else(|start| start);
    let is_bearer = blank && bytes[start..end].eq_ignore_ascii_case(b"bearer");
    (start < end).then_some(PrecedingName { start, end, is_bearer })
}

/// Returns the kind of secret that `name` names, or the name that it stands for.
fn kind_of(bytes: &[u8], name: &PrecedingName) -> Option<&'static str> {
    let text = bytes.get(name.start..name.end)?;
    secret_name(text).or_else(|| {
        if text.eq_ignore_ascii_case(b"value") {
            return entry_name(bytes, name.start).and_then(secret_name);
        }
        if text.eq_ignore_ascii_case(b"basic") {
            return None; // `url::basic` looks into it.
        }
        // `let api_key: &str = "…"`, `apiKey: string = "…"`: the name is before the type.
        let before = &bytes[name.start.saturating_sub(24)..name.start];
        let colon = name.start
            - before.iter().rev().take_while(|&&byte| byte != b'\n').position(|&byte| byte == b':')?
            - 1;
        let end = blanks_back(bytes, colon);
        secret_name(&bytes[start_of(bytes, end, WORD, MAX_NAME_BYTES)..end])
    })
}

/// Returns the name of an entry `name: …, value: …`, as lists of environment variables have it.
fn entry_name(bytes: &[u8], value: usize) -> Option<&[u8]> {
    let from = value.saturating_sub(160);
    let window = &bytes[from..value];
    let at = ["name", "Name", "key", "Key"]
        .iter()
        .filter_map(|word| memchr::memmem::rfind(window, word.as_bytes()).map(|at| at + word.len()))
        .max()?;
    let at = skip_blanks(bytes, skip_quote(bytes, from + at));
    if !matches!(bytes.get(at), Some(b':' | b'=')) {
        return None;
    }
    let start = skip_quote(bytes, skip_blanks(bytes, at + 1));
    Some(&bytes[start..end_of(bytes, start, WORD, MAX_NAME_BYTES)])
}

// The number of blanks is limited, here and below, so that the search takes linear time whatever the text is.
fn blanks_back(bytes: &[u8], end: usize) -> usize {
    end - bytes[..end].iter().rev().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn skip_blanks(bytes: &[u8], start: usize) -> usize {
    start + bytes.iter().skip(start).take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Returns the offset before the quote that ends at `end`, and before the backslash of an escaped one.
fn unquote_back(bytes: &[u8], end: usize) -> usize {
    match bytes[..end] {
        [.., b'\\', b'"' | b'\''] => end - 2,
        [.., b'"' | b'\'' | b'`'] => end - 1,
        _ => end,
    }
}

fn skip_quote(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start..) {
        Some([b'\\', b'"' | b'\'', ..]) => start + 2,
        Some([b'"' | b'\'' | b'`', ..]) => start + 1,
        _ => start,
    }
}

/// Returns true if `value` beside a name of `kind` looks made by a machine.
fn is_secret(value: &[u8], kind: &str) -> bool {
    // `SOME_CONSTANT_2` is a name in code, and not a value.
    let is_constant = value.contains(&b'_')
        && value.iter().all(|&byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if value.len() < MIN_VALUE_BYTES || is_constant || is_template(value) {
        return false;
    }
    // A UUID is an identifier beside most names, and a key only beside those that can hold nothing else.
    if is_uuid(value) {
        return matches!(kind, "api-key" | "secret" | "password" | "access-key");
    }
    is_random(value, 0.2)
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, &byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is(byte.to_ascii_lowercase(), HEX),
        })
}
