//! Paths as shells and other systems write them: `~/notes`, `src\main.rs`, `C:\project`.

use std::ffi::{OsStr, OsString};

/// Returns the path below the home folder if `path` is `~` or begins with `~/`.
pub(crate) fn below_home(path: &OsStr) -> Option<&str> {
    let rest = path.to_str()?.strip_prefix('~')?;
    match rest.strip_prefix(['/', '\\']) {
        // Joined to the home folder, an absolute path would take its place.
        Some(below) => Some(below.trim_start_matches('/')),
        None => rest.is_empty().then_some(""),
    }
}

/// Returns true for a path with a drive of Windows: `C:\x`, `c:/x`.
pub(crate) fn has_drive(path: &OsStr) -> bool {
    matches!(path.as_encoded_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic())
}

/// Returns `path` with `/` for each backslash, if it has any. A backslash before a blank only escapes it, as in a shell.
pub(crate) fn with_slashes(path: &OsStr) -> Option<OsString> {
    let text = path.to_str().filter(|text| text.contains('\\'))?;
    Some(text.replace("\\ ", " ").replace('\\', "/").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_folder_is_a_tilde_alone_or_before_a_separator() {
        let below = |path| below_home(OsStr::new(path));
        assert_eq!((below("~"), below("~/a/b"), below("~\\a")), (Some(""), Some("a/b"), Some("a")));
        assert_eq!(below("~//etc/passwd"), Some("etc/passwd"));
        assert_eq!((below("~user/a"), below("./~"), below("a~")), (None, None, None));
    }

    #[test]
    fn backslashes_become_slashes_and_escapes_of_blanks_go() {
        let slashed = |path| with_slashes(OsStr::new(path)).map(|path| path.into_string().unwrap());
        assert_eq!(slashed("src\\a b.rs").as_deref(), Some("src/a b.rs"));
        assert_eq!(slashed("my\\ file").as_deref(), Some("my file"));
        assert_eq!(slashed("src/a.rs"), None);
        assert!(
            has_drive(OsStr::new("C:\\x")) && has_drive(OsStr::new("c:/x")) && !has_drive(OsStr::new("C:"))
        );
    }
}
