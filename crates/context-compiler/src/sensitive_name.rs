//! The names of files that usually contain secrets: one list for code, changes and documents.

/// Returns true if files of this name usually contain secrets.
pub(crate) fn is_sensitive_name(path: &str) -> bool {
    const SUFFIXES: [&str; 8] = [".pem", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".key", ".ppk"];
    const NAMES: [&str; 11] = [
        ".env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".dockercfg",
        ".my.cnf",
    ];
    const KEY_PREFIXES: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const DATA_EXTENSIONS: [&str; 8] = ["json", "toml", "yaml", "yml", "ini", "csv", "xml", "properties"];
    const PUBLIC_SUFFIXES: [&str; 4] = [".pub", ".example", ".sample", ".template"];
    // On Windows and macOS `.ENV` and `.env` are one file.
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    // First, since `.env.example` and `id_rsa.pub` would match the lists below.
    if PUBLIC_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
        return false;
    }
    let credentials = name.trim_start_matches('.').strip_prefix("credentials");
    name.starts_with(".env.")
        || NAMES.contains(&name)
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
        || KEY_PREFIXES.iter().any(|key| name.starts_with(key))
        || path == ".docker/config.json"
        || path.ends_with("/.docker/config.json")
        // `credentials.rs` is code, `credentials.json` is data.
        || credentials.is_some_and(|rest| rest.is_empty() || rest.rsplit_once('.').is_some_and(|(_, extension)| DATA_EXTENSIONS.contains(&extension)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised_and_those_of_examples_are_not() {
        for path in [
            "a/.env",
            ".env.local",
            "k/id_rsa",
            "x.PEM",
            "credentials.json",
            ".npmrc",
            "tls/server.key",
            ".htpasswd",
            ".netrc",
            "_netrc",
            ".my.cnf",
            ".pgpass",
            ".dockercfg",
            "home/.docker/config.json",
        ] {
            assert!(is_sensitive_name(path), "{path}");
        }
        for path in
            ["src/env.rs", ".env.example", ".env.sample", ".env.template", "id_rsa.pub", "docker/config.json"]
        {
            assert!(!is_sensitive_name(path), "{path}");
        }
    }
}
