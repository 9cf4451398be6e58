//! The question whether a shell would find files for a glob.

use crate::workspace::ConfinedPath;
use globset::GlobBuilder;

/// The number of folder entries that are looked at for one glob.
const MAX_ENTRIES: usize = 5_000;

/// Returns true if a shell in `folder` would replace `pattern` by names of files. True as well where that cannot be
/// told: outside the folder, and where there are too many files.
pub(super) fn matches_a_file(folder: &ConfinedPath, pattern: &str) -> bool {
    let parts: Vec<_> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if pattern.starts_with('/') || parts.contains(&"..") {
        return true;
    }
    let mut entries_left = MAX_ENTRIES;
    any_match(folder, &parts, &mut entries_left)
}

fn any_match(folder: &ConfinedPath, parts: &[&str], entries_left: &mut usize) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let goes_on = |name: &std::ffi::OsStr, entries_left: &mut usize| {
        rest.is_empty() || folder.join(name).is_ok_and(|child| any_match(&child, rest, entries_left))
    };
    if !part.contains(['*', '?', '[']) {
        let exists = folder.join(part).is_ok_and(|child| matches!(child.kind(), Ok(Some(_))));
        return exists && goes_on(part.as_ref(), entries_left);
    }
    let Ok(glob) = GlobBuilder::new(part).literal_separator(true).build() else { return false };
    let glob = glob.compile_matcher();
    let Ok(open) = folder.open_folder() else { return false };
    let Ok(entries) = open.entries() else { return false };
    for entry in entries.flatten() {
        if *entries_left == 0 {
            return true;
        }
        *entries_left -= 1;
        // A leading dot is matched by a dot alone.
        let is_hidden = entry.name.as_encoded_bytes().starts_with(b".") && !part.starts_with('.');
        if !is_hidden && glob.is_match(&entry.name) && goes_on(&entry.name, entries_left) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "files for the test")]
    fn a_glob_matches_what_a_shell_would_find() {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(project.path().join("src/deep")).unwrap();
        for file in ["src/lib.rs", "src/deep/a.txt", ".env"] {
            std::fs::write(project.path().join(file), "").unwrap();
        }
        let workspace = Workspace::new([project.path()]).unwrap();
        let folder = workspace.locate(".").unwrap();
        for pattern in
            ["src/*.rs", "*", "s?c", "./*/deep", "src/[dx]eep/*.txt", ".e*", "src/*/", "/x*", "../*"]
        {
            assert!(matches_a_file(&folder, pattern), "{pattern}");
        }
        for pattern in
            ["*.rs", "*env", "requests[security]", "foo::*", "http://x/?a=b", "src/*.py", "[", "src/lib.rs/*"]
        {
            assert!(!matches_a_file(&folder, pattern), "{pattern}");
        }
    }
}
