//! The `.contextignore` files of a project, for paths that no walk has met.

use super::files::{CONTEXT_IGNORE_FILE, MAX_IGNORE_FILE_BYTES};
use crate::source::path::join;
use crate::source::{SourceReadError, SourceTree};
use std::collections::BTreeMap;
use workspace::ignore_rules::IgnoreFile;

/// Answers for single paths, and reads each `.contextignore` once.
pub(crate) struct ContextIgnore<'a> {
    tree: &'a dyn SourceTree,
    files: BTreeMap<String, IgnoreFile>,
}

impl<'a> ContextIgnore<'a> {
    pub(crate) fn new(tree: &'a dyn SourceTree) -> Self {
        Self { tree, files: BTreeMap::new() }
    }

    /// Returns true if the file at `path` or a folder above it is ignored. A `.contextignore` that cannot be read ignores
    /// everything beneath it.
    pub(crate) fn is_ignored(&mut self, path: &str) -> bool {
        let folders = path.match_indices('/').map(|(end, _)| (end, true));
        let mut prefixes = folders.chain([(path.len(), false)]);
        prefixes.any(|(end, is_folder)| self.is_path_ignored(path.get(..end).unwrap_or(path), is_folder))
    }

    /// Returns true if this path itself is ignored. The nearest file with a matching rule decides.
    fn is_path_ignored(&mut self, path: &str, is_folder: bool) -> bool {
        let mut below = path;
        while !below.is_empty() {
            let folder = below.rsplit_once('/').map_or("", |(folder, _)| folder);
            let relative = path.get(if folder.is_empty() { 0 } else { folder.len() + 1 }..).unwrap_or(path);
            if let Some(is_ignored) = self.file_of(folder).decide(relative.as_bytes(), is_folder) {
                return is_ignored;
            }
            below = folder;
        }
        false
    }

    fn file_of(&mut self, folder: &str) -> &IgnoreFile {
        let tree = self.tree;
        self.files.entry(folder.to_owned()).or_insert_with(|| {
            match tree.read(&join(folder, CONTEXT_IGNORE_FILE), MAX_IGNORE_FILE_BYTES) {
                Ok(content) => IgnoreFile::parse(&content.bytes),
                Err(
                    SourceReadError::NotFound
                    | SourceReadError::IsFolder
                    | SourceReadError::NotRegular(_)
                    | SourceReadError::Outside,
                ) => IgnoreFile::default(),
                // Fail closed: the file may be what keeps these paths private.
                Err(_) => IgnoreFile::parse(b"*"),
            }
        })
    }
}
