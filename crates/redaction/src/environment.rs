//! The environment variables that hold secrets, judged by their names.

/// Parts of a name that make its value a secret.
const SECRET_PARTS: &[&str] = &[
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PRIVATE",
    "AUTH",
    "CONNECTION_STRING",
    "CONNECTIONSTRING",
];
/// Words that have such a part and mean something else. The rest of the name still counts: `KEYRING_PASSWORD` is a
/// secret.
const HARMLESS_WORDS: &[&str] = &[
    "AUTHORIZED_KEYS",
    "AUTHOR",
    "AUTHENTICATION_METHOD",
    "KEYBOARD",
    "KEYMAP",
    "KEYRING",
    "KEYCHAIN",
    "MONKEY",
    "TOKENIZ",
];
/// Words that begin with a harmless one and name a secret all the same: `AUTHORIZATION=Bearer …`.
const SECRET_WORDS: &[&str] = &["AUTHORIZATION", "AUTHORISATION"];
/// Endings of names whose value is the place of a secret, or a number of things, and not the secret.
const HARMLESS_ENDINGS: &[&str] = &[
    "_FILE", "_PATH", "_DIR", "_SOCK", "_SOCKET", "_URL", "_URI", "_HOST", "_PORT", "_NAME", "_TYPE",
    "_METHOD", "_TTL", "_TOKENS", "_LIMIT",
];

/// Values with fewer bytes, spaces around them aside, are not masked: they would be found in ordinary text.
pub const MIN_VALUE_BYTES: usize = 8;

/// Returns true if the environment variable `name` holds a secret, judged by its name alone: a name that holds
/// `TOKEN`, `KEY`, `SECRET`, `PASSWORD`, `CREDENTIAL`, `PRIVATE`, `AUTH` or `CONNECTION_STRING` in any case.
/// `GIT_AUTHOR_NAME`, `SSH_AUTH_SOCK`, `KEYMAP`, `MAX_TOKENS` and their like hold none; `AUTHORIZATION` does.
#[must_use]
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let rest = HARMLESS_WORDS.iter().fold(name.clone(), |rest, word| rest.replace(word, "-"));
    let secret = SECRET_PARTS.iter().any(|part| rest.contains(part))
        || SECRET_WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("_PASS")
        // `Authorization=Bearer …` for a collector.
        || name.contains("OTLP") && name.ends_with("_HEADERS")
        || name.ends_with("PWD") && name != "PWD" && name != "OLDPWD";
    // What is public is so by its owner's word: `NEXT_PUBLIC_API_KEY`.
    secret && !name.contains("PUBLIC") && !HARMLESS_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// Returns the values of those variables whose name says that they are secret, for
/// [`RedactionOptions::values`](crate::RedactionOptions::values).
///
/// Left out, because they would be found all over ordinary text: values shorter than 8 bytes, words (up to 12
/// lower-case letters, as in `DB_PASSWORD=postgres`), numbers, and paths under a name that is not a password's.
///
/// ```
/// use redaction::secret_environment;
///
/// let vars = [("API_KEY", "nine-lives"), ("HOME", "/home/somebody"), ("GIT_AUTHOR_NAME", "Some Body")];
/// assert_eq!(secret_environment(vars), ["nine-lives"]);
/// ```
pub fn secret_environment<N: AsRef<str>, V: AsRef<str>>(
    vars: impl IntoIterator<Item = (N, V)>,
) -> Vec<String> {
    let mut values: Vec<String> = vars
        .into_iter()
        .filter(|(name, value)| {
            is_secret_variable(name.as_ref()) && is_distinct(name.as_ref(), value.as_ref())
        })
        .map(|(_, value)| value.as_ref().to_owned())
        .collect();
    // The same secret is often in several variables.
    values.sort();
    values.dedup();
    values
}

/// Returns true if `value` is so unlike ordinary text that masking it everywhere does no harm.
fn is_distinct(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_word = value.len() <= 12 && value.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_path = value.starts_with(['/', '~'])
        && !["SECRET", "PASSWORD", "TOKEN"].iter().any(|part| name.contains(part));
    value.trim().len() >= MIN_VALUE_BYTES && !is_word && !is_number && !is_path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harmless_word_hides_no_secret_beside_it() {
        for name in [
            "AUTHORIZATION",
            "Authorization",
            "PROXY_AUTHORIZATION",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "authorisation",
            "AUTHOR_API_KEY",
            "KEYRING_PASSWORD",
            "MONKEY_TOKEN",
            "TOKENIZER_SECRET",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in [
            "GIT_AUTHOR_EMAIL",
            "COAUTHORS",
            "XAUTHORITY",
            "AUTHORIZED",
            "AUTHORIZED_KEYS",
            "AUTHORIZATION_URL",
            "TOKENIZERS_PARALLELISM",
            "XKB_KEYMAP",
            "NEXT_PUBLIC_API_KEY",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
