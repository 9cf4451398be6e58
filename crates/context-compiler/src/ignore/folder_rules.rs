//! Reading the ignore files of a folder of the tree.

use super::files::{IGNORE_FILES, MAX_IGNORE_FILE_BYTES};
use crate::source::path::join;
use crate::source::{SourceEntryKind, SourceReadError, SourceTree, SourceTreeEntry};
use workspace::ignore_rules::{FolderRules, GIT_INFO_EXCLUDE, IgnoreFile};

/// An ignore file exists and cannot be read, so it is unknown what it ignores.
#[derive(Debug)]
pub(crate) struct UnreadableIgnoreFile;

/// Returns the rules that count in `folder`, which lies in a folder with the rules `above`. `entries` are the entries of the
/// folder, if they are known.
pub(crate) fn rules_within(
    above: &FolderRules,
    tree: &dyn SourceTree,
    folder: &str,
    entries: Option<&[SourceTreeEntry]>,
) -> Result<FolderRules, UnreadableIgnoreFile> {
    above.with_folder(folder.as_bytes(), &IGNORE_FILES, |name| {
        if name == GIT_INFO_EXCLUDE {
            let has_git = || entries.is_none_or(|entries| entries.iter().any(|entry| entry.name == ".git"));
            return Ok(if folder.is_empty() && has_git() {
                info_exclude(tree)
            } else {
                IgnoreFile::default()
            });
        }
        // A link is not followed: git does not follow one either, so that a repository cannot name a file outside.
        let is_file = |entry: &SourceTreeEntry| entry.name == name && entry.kind == SourceEntryKind::File;
        if entries.is_some_and(|entries| !entries.iter().any(is_file)) {
            return Ok(IgnoreFile::default());
        }
        match tree.read(&join(folder, name), MAX_IGNORE_FILE_BYTES) {
            Ok(content) => Ok(IgnoreFile::parse(&content.bytes)),
            Err(
                SourceReadError::NotFound
                | SourceReadError::IsFolder
                | SourceReadError::NotRegular(_)
                | SourceReadError::Outside,
            ) => Ok(IgnoreFile::default()),
            Err(_) => Err(UnreadableIgnoreFile),
        }
    })
}

/// Reads `.git/info/exclude`. In a linked worktree it lies outside the root, and does not count.
fn info_exclude(tree: &dyn SourceTree) -> IgnoreFile {
    match tree.read(GIT_INFO_EXCLUDE, MAX_IGNORE_FILE_BYTES) {
        Ok(content) => IgnoreFile::parse(&content.bytes),
        Err(_) => IgnoreFile::default(),
    }
}
