//! The names under which values are masked.

use redaction::is_secret_variable;

/// The text in the place of a masked value.
pub(super) const MASK: &str = "[masked]";

/// Returns true if a value of this name is likely a secret: by the rules for environment variables, and also cookies,
/// data source names and `pass`. `key` alone is none: most objects have one.
pub(super) fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_common = matches!(
        upper.as_str(),
        "KEY" | "KEYS" | "PRIMARYKEY" | "PRIMARY_KEY" | "FOREIGNKEY" | "FOREIGN_KEY"
    );
    !is_common
        && (is_secret_variable(name)
            || upper.contains("COOKIE")
            || upper.ends_with("DSN")
            || upper == "PASS"
            // `dbPass`, and not `compass`.
            || upper.ends_with("PASS") && name.ends_with("Pass"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "API_KEY",
            "apiKey",
            "dbPassword",
            "db_pass",
            "dbPass",
            "authorization",
            "set-cookie",
            "SENTRY_DSN",
            "clientSecret",
            "accessToken",
            "pass",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "key",
            "keys",
            "primaryKey",
            "monkey",
            "author",
            "keyboard",
            "compass",
            "bypass",
            "passed",
            "name",
            "SSH_AUTH_SOCK",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
