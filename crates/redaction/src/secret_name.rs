//! The names that say of a value that it is a secret.

use crate::token_runs::{ALNUM, is};

/// The longest name that is read, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 64;
/// Returns the kind of secret that `name` names, which stands in the mark, or `None` for any other name.
///
/// Case and the signs between words do not matter: `apiKey`, `API_KEY` and `x-api-key` are one.
pub(crate) fn secret_name(name: &[u8]) -> Option<&'static str> {
    /// Names of things about a secret, which are none themselves.
    const HARMLESS_ENDINGS: &[&str] = &[
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
    const HARMLESS_PARTS: &[&str] = &[
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
    if name.len() < 3 || name.len() > MAX_NAME_BYTES {
        return None;
    }
    let mut letters = [0u8; MAX_NAME_BYTES];
    let mut length = 0;
    for byte in name.iter().filter(|byte| is(**byte, ALNUM)) {
        letters[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    // Every word of the list has one of these; most names have none.
    let may_name_secret = letters[..length].windows(3).any(|three| {
        matches!(three, b"pas" | b"sec" | b"cre" | b"key" | b"tok" | b"aut" | b"con" | b"pwd" | b"sig")
    });
    if !may_name_secret {
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
    let is_excluded = HARMLESS_ENDINGS.iter().any(|ending| flat.ends_with(ending))
        || HARMLESS_PARTS.iter().any(|part| flat.contains(part));
    (!is_excluded).then_some(kind)
}
