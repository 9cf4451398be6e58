//! Untracked files, shown as additions of all their lines.

use crate::load::{FileLoader, SourceLoadError};
use crate::source::{SourceEntryKind, SourceTreeEntry};
use std::collections::BTreeMap;

/// The largest untracked file whose lines are shown, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Reads untracked files, and lists each folder only once.
pub(super) struct UntrackedFiles<'a> {
    loader: &'a FileLoader<'a>,
    folders: BTreeMap<&'a str, Vec<SourceTreeEntry>>,
}

/// An untracked file as one hunk.
pub(super) struct UntrackedAddition {
    pub(super) hunk: String,
    pub(super) lines: u64,
}

/// The reason why an untracked file is not shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum UntrackedError {
    #[error("a symbolic link")]
    Link,
    #[error(transparent)]
    Load(#[from] SourceLoadError),
}

impl<'a> UntrackedFiles<'a> {
    pub(super) fn new(loader: &'a FileLoader<'a>) -> Self {
        Self { loader, folders: BTreeMap::new() }
    }

    /// Returns the file at `path` as the addition of its lines.
    pub(super) fn addition(&mut self, path: &'a str) -> Result<UntrackedAddition, UntrackedError> {
        let tree = self.loader.tree;
        // The target of a link is no addition, and has a name of its own.
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = self.folders.entry(folder).or_insert_with(|| tree.list(folder).unwrap_or_default());
        let kind = entries.iter().find(|entry| entry.name == name).map(|entry| entry.kind);
        if kind == Some(SourceEntryKind::Link) || tree.resolve(path).is_ok_and(|resolved| resolved != path) {
            return Err(UntrackedError::Link);
        }
        let content = tree.read(path, MAX_FILE_BYTES).map_err(SourceLoadError::from)?;
        let bytes = content.bytes.len() as u64;
        let decoded = crate::decoded_text::decode(&content.bytes).ok_or(SourceLoadError::Binary { bytes })?;
        let lines = decoded.text.matches('\n').count() as u64;
        if lines == 0 {
            return Err(SourceLoadError::Empty.into());
        }
        // Masked before each line gets its sign: a redactor knows a key in PEM armour by its whole lines.
        let (text, _) = self.loader.mask(decoded.text);
        let mut hunk = format!("@@ -0,0 +1,{lines} @@\n");
        for line in text.split_inclusive('\n') {
            hunk.push('+');
            hunk.push_str(line);
        }
        Ok(UntrackedAddition { hunk, lines })
    }
}
