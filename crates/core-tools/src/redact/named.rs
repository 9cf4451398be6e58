//! Values beside a secret-like name: `api_key = "…"`, `"password": "…"`, `--token …`, `<secret>…`.
//!
//! The name alone says little (`token = next_token()`), and so does the value alone (a checksum looks like
//! a key). Only both together are a secret: a name of the list, and a value that nobody would write by hand.

use super::Span;
use super::runs::{ALNUM, HEX, VALUE, WORD, end_of, is, is_at, start_of};

/// The longest name that is read.
const MAX_NAME: usize = 64;
/// The shortest value that counts.
const MIN_VALUE: usize = 16;
/// How much of a value is judged.
const JUDGED: usize = 256;

/// The secret value around the run from `start` to `end`, if a name before it says that it is one.
pub(super) fn at_run(bytes: &[u8], start: usize, end: usize) -> Option<Span> {
    // Identifiers and words are most of the long runs, and have no digit.
    if !bytes[start..end].iter().any(u8::is_ascii_digit) && end - start < 20 {
        return None;
    }
    let from = start_of(bytes, start, VALUE, MAX_NAME);
    let place = place(bytes, from)?;
    if place.bearer {
        let to = value_end(bytes, end);
        return is_random(&bytes[from..to], 0.15).then_some(Span {
            start: from,
            end: to,
            kind: "bearer-token",
        });
    }
    let kind = kind_at(bytes, &place)?;
    let to = value_end(bytes, end);
    let type_or_call = bytes.get(to) == Some(&b'(')
        || (unquote_back(bytes, from) == from
            && matches!(bytes.get(skip_blanks(bytes, to)), Some(b'=' | b'{')));
    (!type_or_call && is_secret(&bytes[from..to], kind)).then_some(Span { start: from, end: to, kind })
}

/// The secret value behind the name that has a part (`assw`, `ecret`, …) at `at`. Finds what [`at_run`] does
/// not: passwords with signs in them, which have no long run.
pub(super) fn at_name(bytes: &[u8], at: usize) -> Option<Span> {
    let name_start = start_of(bytes, at, WORD, MAX_NAME);
    let name_end = end_of(bytes, at, WORD, MAX_NAME);
    let kind = secret_name(&bytes[name_start..name_end])?;
    let mut at = skip_quote(bytes, name_end);
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
    at = skip_blanks(bytes, at);
    let start = skip_quote(bytes, at);
    let end = if start > at {
        let quote = bytes[start - 1];
        let length =
            bytes[start..].iter().take(JUDGED).position(|&byte| byte == quote || byte.is_ascii_control())?;
        // A quote within a quoted text is escaped at both ends.
        start + length - usize::from(start > at + 1 && bytes[start + length - 1] == b'\\')
    } else {
        let length = bytes[start..]
            .iter()
            .take(JUDGED)
            .take_while(|&&byte| {
                byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'&')
            })
            .count();
        start + length
    };
    let value = bytes.get(start..end)?;
    let code = value.iter().any(|byte| matches!(byte, b'(' | b'{' | b'[' | b' ' | b'<'));
    (!code && is_secret(value, kind)).then_some(Span { start, end, kind })
}

/// What kind of secret `name` names and `value` is, if both say so. For a member of an object.
pub(super) fn member(name: &str, value: &str) -> Option<&'static str> {
    let kind = secret_name(name.as_bytes())?;
    (!value.contains([' ', '\n', '(', '{', '[', '<']) && is_secret(value.as_bytes(), kind)).then_some(kind)
}

fn value_end(bytes: &[u8], run_end: usize) -> usize {
    let end = end_of(bytes, run_end, VALUE, usize::MAX);
    end + bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count()
}

/// What stands before a value.
struct Place {
    start: usize,
    end: usize,
    bearer: bool,
}

/// The name that belongs to a value that begins at `value`.
fn place(bytes: &[u8], value: usize) -> Option<Place> {
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
            let mut signs = 0;
            while end > 0
                && signs < 3
                && matches!(bytes[end - 1], b'=' | b':' | b'>' | b'!' | b'?' | b'+' | b'-')
            {
                end -= 1;
                signs += 1;
            }
            if bytes[end..].starts_with(b"::") {
                return None;
            }
        }
        b'(' | b',' if quoted => end -= 1,
        _ if blank && !quoted => {}
        _ => return None,
    }
    end = blanks_back(bytes, end);
    if end > 0 && bytes[end - 1] == b']' {
        end -= 1;
    }
    end = unquote_back(bytes, end);
    let start = start_of(bytes, end, WORD, MAX_NAME);
    // A header's name or a flag has hyphens: `x-api-key`, `--token`.
    let start = (0..8).try_fold(start, |start, _| {
        if start > 1 && bytes[start - 1] == b'-' && is_at(bytes, start - 2, ALNUM) {
            Ok(start_of(bytes, start - 1, WORD, MAX_NAME))
        } else {
            Err(start)
        }
    });
    let start = start.unwrap_or_else(|start| start);
    let bearer = blank && bytes[start..end].eq_ignore_ascii_case(b"bearer");
    (start < end).then_some(Place { start, end, bearer })
}

/// The kind of secret that the name at `place` names, or the name that it stands for.
fn kind_at(bytes: &[u8], place: &Place) -> Option<&'static str> {
    let name = bytes.get(place.start..place.end)?;
    secret_name(name).or_else(|| {
        if name.eq_ignore_ascii_case(b"value") {
            return entry_name(bytes, place.start).and_then(secret_name);
        }
        if name.eq_ignore_ascii_case(b"basic") {
            return None; // `url::basic` looks into it.
        }
        // `let api_key: &str = "…"`, `apiKey: string = "…"`: the name is before the type.
        let before = &bytes[place.start.saturating_sub(24)..place.start];
        let colon = place.start
            - before.iter().rev().take_while(|&&byte| byte != b'\n').position(|&byte| byte == b':')?
            - 1;
        let end = blanks_back(bytes, colon);
        secret_name(&bytes[start_of(bytes, end, WORD, MAX_NAME)..end])
    })
}

/// The name of an entry `name: …, value: …`, as lists of environment variables have it.
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
    Some(&bytes[start..end_of(bytes, start, WORD, MAX_NAME)])
}

fn blanks_back(bytes: &[u8], end: usize) -> usize {
    end - bytes[..end].iter().rev().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn skip_blanks(bytes: &[u8], start: usize) -> usize {
    start + bytes.iter().skip(start).take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Before the quote that ends at `end`, and before the backslash of an escaped one.
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

/// What a secret-like name names: the kind that stands in the mark. `None` for any other name.
///
/// Case and the signs between words do not matter: `apiKey`, `API_KEY` and `x-api-key` are one.
pub(super) fn secret_name(name: &[u8]) -> Option<&'static str> {
    /// Names of things about a secret, which are none themselves.
    const ENDINGS: &[&str] = &[
        "id",
        "ids",
        "name",
        "names",
        "path",
        "file",
        "filename",
        "dir",
        "url",
        "uri",
        "endpoint",
        "type",
        "kind",
        "count",
        "limit",
        "len",
        "length",
        "size",
        "ttl",
        "digest",
        "checksum",
        "fingerprint",
        "arn",
        "version",
        "algorithm",
        "alg",
        "format",
        "prefix",
        "suffix",
        "field",
        "header",
        "param",
        "regex",
        "pattern",
        "policy",
        "provider",
        "store",
        "manager",
        "expiry",
        "expires",
        "expiration",
        "index",
        "label",
        "class",
        "hint",
        "prompt",
        "placeholder",
        "hash",
        "alphabet",
        "chars",
    ];
    const NOT_SECRET: &[&str] = &[
        "public",
        "publishable",
        "tokeniz",
        "pagetoken",
        "nexttoken",
        "continuationtoken",
        "cancel",
        "keyboard",
        "primarykey",
        "foreignkey",
    ];
    const KINDS: &[(&str, &str)] = &[
        ("password", "password"),
        ("passwd", "password"),
        ("passphrase", "password"),
        ("passcode", "password"),
        ("awssecret", "aws-secret-key"),
        ("accountkey", "azure-key"),
        ("sharedaccesskey", "azure-key"),
        ("connectionstring", "connection-string"),
        ("connstr", "connection-string"),
        ("privatekey", "private-key"),
        ("apikey", "api-key"),
        ("accesskey", "access-key"),
        ("secret", "secret"),
        ("credential", "credential"),
        ("authkey", "api-key"),
        ("signingkey", "signing-key"),
        ("encryptionkey", "encryption-key"),
        ("masterkey", "encryption-key"),
        ("sharedkey", "api-key"),
        ("sessionkey", "session-key"),
        ("licensekey", "license-key"),
        ("servicekey", "api-key"),
        ("storagekey", "api-key"),
        ("deploykey", "api-key"),
        ("adminkey", "api-key"),
        ("hmackey", "signing-key"),
        ("jwtkey", "signing-key"),
        ("authtoken", "token"),
        ("accesstoken", "token"),
        ("amzsignature", "signature"),
        ("googsignature", "signature"),
        ("authorization", "authorization"),
        ("instrumentationkey", "api-key"),
        ("subscriptionkey", "api-key"),
    ];
    if name.len() < 3 || name.len() > MAX_NAME {
        return None;
    }
    let mut letters = [0u8; MAX_NAME];
    let mut length = 0;
    for byte in name.iter().filter(|byte| is(**byte, ALNUM)) {
        letters[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    // Every word of the list has one of these; most names have none.
    let may = letters[..length].windows(3).any(|three| {
        matches!(three, b"pas" | b"sec" | b"cre" | b"key" | b"tok" | b"aut" | b"con" | b"pwd" | b"sig")
    });
    if !may {
        return None;
    }
    let flat = std::str::from_utf8(&letters[..length]).ok()?;
    let kind = KINDS.iter().find(|(word, _)| flat.contains(word)).map(|(_, kind)| *kind).or_else(|| {
        let last = name.rsplit(|byte| !is(*byte, ALNUM)).next()?;
        if flat.ends_with("token") {
            Some("token")
        } else if flat.ends_with("pwd") || last.eq_ignore_ascii_case(b"pass") {
            Some("password")
        } else if last.eq_ignore_ascii_case(b"auth") {
            Some("authorization")
        } else if last == b"KEY" && last.len() < name.len() && !name.iter().any(u8::is_ascii_lowercase) {
            // An environment variable such as `DATADOG_KEY`.
            Some("api-key")
        } else {
            None
        }
    })?;
    let other = ENDINGS.iter().any(|ending| flat.ends_with(ending))
        || NOT_SECRET.iter().any(|part| flat.contains(part));
    (!other).then_some(kind)
}

/// Whether `value` beside a name of `kind` looks made by a machine.
fn is_secret(value: &[u8], kind: &str) -> bool {
    let constant = value.contains(&b'_')
        && value.iter().all(|&byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if value.len() < MIN_VALUE || constant || is_template(value) {
        return false;
    }
    // A UUID is an identifier beside most names, and a key only beside those that can hold nothing else.
    if is_uuid(value) {
        return matches!(kind, "api-key" | "secret" | "password" | "access-key");
    }
    is_random(value, 0.2)
}

/// Whether this stands for a value that is put in later: `$NAME`, `${{ … }}`, `%s`, `***`.
pub(super) fn is_template(value: &[u8]) -> bool {
    match value {
        [] | [b'$' | b'{' | b'<' | b'[', ..] | [b'%', b's' | b'(' | b'{', ..] => true,
        [first, rest @ ..] => {
            matches!(first, b'*' | b'.' | b'x' | b'X') && rest.iter().all(|byte| byte == first)
        }
    }
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, &byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is(byte.to_ascii_lowercase(), HEX),
        })
}

/// Whether `value` has the look of chance: many changes between lower case, upper case and digits (words,
/// camelCase and paths have few), and a high entropy (repetition has none).
pub(super) fn is_random(value: &[u8], changes_wanted: f64) -> bool {
    let value = &value[..value.len().min(JUDGED)];
    let mut counts = [0u32; 256];
    let (mut changes, mut capitals, mut digits, mut letters, mut signs, mut hex) =
        (0u32, 0u32, 0u32, 0u32, 0u32, true);
    let mut last = 0;
    for &byte in value {
        counts[byte as usize] += 1;
        hex &= is(byte.to_ascii_lowercase(), HEX);
        let class = match byte {
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            b'0'..=b'9' => 3,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'&' | b'~' | b'?' => 4,
            _ => 0,
        };
        match class {
            1 | 2 => letters += 1,
            3 => digits += 1,
            4 => signs += 1,
            _ => continue,
        }
        if last == 2 && class == 1 {
            capitals += 1; // `Ab` is how a word begins.
        } else if class != last && last != 0 {
            changes += 1;
        }
        last = class;
    }
    let length = f64::from(digits + letters + signs);
    if letters == 0 || f64::from(changes) < length * changes_wanted {
        return false;
    }
    // Names of types and constants change as well, but they are made of words, and words have vowels: chance
    // makes a fifth of letters vowels, English two fifths.
    let few_changes = f64::from(changes) < length * 0.3;
    let (letters, vowels) = words(value, 4);
    if few_changes && letters > length * 0.6 && vowels > letters * 0.28 {
        return false;
    }
    if digits == 0 && (f64::from(changes + capitals) < length * 0.42 || words(value, 3).0 > length * 0.7) {
        return false;
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|&count| {
            let share = f64::from(count) / total;
            -share * share.log2()
        })
        .sum();
    // 16 characters cannot have more than 4 bits each, and chance gives them about 3.7.
    entropy >= if hex || value.len() < 20 { 3.0 } else { 3.5 }
}

/// How many letters of `value` are in words of at least `least` letters (lower case, or with a capital first),
/// and how many of those are vowels.
fn words(value: &[u8], least: usize) -> (f64, f64) {
    let (mut letters, mut vowels) = (0u32, 0u32);
    let (mut start, mut vowels_here) = (0, 0);
    for (at, &byte) in value.iter().chain(b" ").enumerate() {
        if !byte.is_ascii_lowercase() {
            if at - start >= least {
                letters += u32::try_from(at - start).unwrap_or(u32::MAX);
                vowels += vowels_here;
            }
            // A capital begins a word; anything else stands before one.
            start = if byte.is_ascii_uppercase() { at } else { at + 1 };
            vowels_here = 0;
        }
        vowels_here += u32::from(matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u'));
    }
    (f64::from(letters), f64::from(vowels))
}
