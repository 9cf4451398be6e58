//! Recognizes what belongs to git: the writing operations of this crate leave it alone.
//!
//! A hook, or a setting such as `core.fsmonitor`, is a program that the next git command runs. So it is not enough to
//! guard `.git`: any folder with `HEAD`, `objects` and `refs` in it is a git directory to whoever runs git there.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::error::Error;
use crate::folder::Folder;
use crate::metadata::PathKind;
use crate::root::AllowedRoot;

/// The file without which a folder is no git directory.
const HEAD: &str = "HEAD";
/// The folders that a git directory has.
const FOLDERS: [&str; 2] = ["objects", "refs"];

/// Refuses a change of `name` in `folder`, which lies at `path` beneath `root`, free of links, if that is a part of a git
/// directory or would make one.
pub(crate) fn check_change(
    root: &AllowedRoot,
    path: &Path,
    folder: &Folder,
    name: &OsStr,
    shown: &str,
) -> Result<(), Error> {
    let is_in_dot_git = root.canonical.join(path).join(name).components().any(|part| match part {
        Component::Normal(part) => is_dot_git(part),
        _ => false,
    });
    if is_in_dot_git
        || is_same_entry(folder, name, ".git")
        || lies_in_git_directory(root, path)
        || completes(folder, name)
    {
        return Err(Error::GitFolder { path: shown.to_owned() });
    }
    Ok(())
}

/// Refuses the names that no new file or folder may have, before folders are created for them.
pub(crate) fn check_new_names<'name>(
    names: impl IntoIterator<Item = &'name OsStr>,
    shown: &str,
) -> Result<(), Error> {
    if names.into_iter().any(|name| is_dot_git(name) || is_name(name, HEAD)) {
        return Err(Error::GitFolder { path: shown.to_owned() });
    }
    Ok(())
}

/// Returns true if a file system could take `name` for `.git`: in any case, with the dots, blanks and streams that NTFS
/// drops, by its short name there, and with the characters that HFS+ ignores.
fn is_dot_git(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // The usual name costs nothing more.
    if !name.starts_with(['.', 'g', 'G', '\u{200c}', '\u{200d}', '\u{feff}']) && name.is_ascii() {
        return false;
    }
    let seen: String = name.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    let seen = seen.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_lowercase();
    matches!(seen.as_str(), ".git" | "git~1")
}

/// Returns true for the characters that HFS+ leaves out when it compares names.
fn is_ignored_by_hfs(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Returns true if both names are one entry of `folder`, for a file system that equates more names than [`is_dot_git`].
fn is_same_entry(folder: &Folder, name: &OsStr, other: &str) -> bool {
    match (folder.unjudged_metadata(name), folder.unjudged_metadata(other.as_ref())) {
        (Ok(one), Ok(other)) => one.stamp.same_file(other.stamp) && one.kind == PathKind::Directory,
        _ => false,
    }
}

/// Returns true if one of the folders from `root` to `path` has the layout of a git directory.
fn lies_in_git_directory(root: &AllowedRoot, path: &Path) -> bool {
    if is_git_directory(&root.folder) {
        return true;
    }
    let mut current: Option<Folder> = None;
    for name in path {
        let parent = current.as_ref().unwrap_or(&root.folder);
        match parent.child(name) {
            Ok(folder) if is_git_directory(&folder) => return true,
            Ok(folder) => current = Some(folder),
            // Gone meanwhile: what is opened by handle is not there either.
            Err(_) => return false,
        }
    }
    false
}

/// Returns true for the layout that git looks for (`is_git_directory` in its `setup.c`), also that of a linked work tree,
/// whose objects are elsewhere.
fn is_git_directory(folder: &Folder) -> bool {
    let has = |name: &str| folder.unjudged_metadata(name.as_ref()).is_ok();
    has(HEAD) && (FOLDERS.iter().all(|name| has(name)) || has("commondir"))
}

/// Returns true if `name` is new and a part that makes `folder` a git directory. `HEAD` is refused whatever else there
/// is: of several parts created at once none would see the others.
fn completes(folder: &Folder, name: &OsStr) -> bool {
    let is_new = folder.unjudged_metadata(name).is_err();
    let has_head = || folder.unjudged_metadata(HEAD.as_ref()).is_ok();
    is_new && (is_name(name, HEAD) || (FOLDERS.iter().any(|part| is_name(name, part)) && has_head()))
}

/// Compares as the file systems of this system usually do.
fn is_name(name: &OsStr, expected: &str) -> bool {
    let ignores_case = cfg!(any(target_os = "macos", target_os = "ios", windows));
    if ignores_case { name.eq_ignore_ascii_case(expected) } else { name == expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_that_a_file_system_folds_is_recognized() {
        for name in
            [".git", ".GIT", ".Git", ".git.", ".git ", ".git. .", "git~1", "GIT~1", ".git::$INDEX_ALLOCATION"]
        {
            assert!(is_dot_git(OsStr::new(name)), "{name:?}");
        }
        for name in [".g\u{200c}it", "\u{feff}.git", ".gi\u{202e}T"] {
            assert!(is_dot_git(OsStr::new(name)), "{name:?}");
        }
        for name in [".gitignore", ".github", "git", ".gi", "x.git", "git~10", ".git~1", "g\u{200c}it"] {
            assert!(!is_dot_git(OsStr::new(name)), "{name:?}");
        }
    }
}
