//! Which names are of secrets.

use crate::redact::is_secret_variable;

/// What stands in the place of a masked value.
pub(super) const MASK: &str = "[masked]";

/// Whether what has this name is likely a secret: as environment variables are judged, and cookies, data source names
/// and what is called `pass` as well. `key` alone is no secret: most things have one.
pub(super) fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let plain = matches!(
        upper.as_str(),
        "KEY" | "KEYS" | "PRIMARYKEY" | "PRIMARY_KEY" | "FOREIGNKEY" | "FOREIGN_KEY"
    );
    !plain
        && (is_secret_variable(name)
            || upper.contains("COOKIE")
            || upper.ends_with("DSN")
            || upper == "PASS"
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
