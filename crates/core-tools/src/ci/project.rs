//! The files of a project's folder, as far as builds and tests look at them.

#[cfg(feature = "testing")]
use crate::workspace::PathKind;
use crate::workspace::{ConfinedPath, FolderEntries};
use std::io::Read;

/// The number of bytes of a manifest that are read.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// The number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A folder that may be a project's.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    folder: ConfinedPath,
}

impl Project {
    pub(crate) fn new(folder: ConfinedPath) -> Self {
        Self { folder }
    }

    /// Returns the folder of the project.
    pub(crate) fn folder(&self) -> &ConfinedPath {
        &self.folder
    }

    /// Returns true if there is an entry at `path`.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.folder.join(path).is_ok_and(|path| match path.kind() {
            Ok(kind) => kind.is_some(),
            // A link whose target is outside the roots is there all the same: `.venv/bin/python` is one.
            Err(error) => error.is_outside(),
        })
    }

    /// Returns true if there is an entry at one of `paths`.
    #[cfg(feature = "testing")]
    pub(crate) fn contains_any(&self, paths: &[&str]) -> bool {
        paths.iter().any(|path| self.contains(path))
    }

    /// Returns the beginning of a file, up to [`MAX_MANIFEST_BYTES`], or `None` if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let (file, _) = self.folder.join(path).ok()?.open_read().ok()?;
        let mut text = Vec::new();
        file.take(MAX_MANIFEST_BYTES).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns true if the file at `path` can be read and contains `text`.
    #[cfg(feature = "testing")]
    pub(crate) fn file_contains(&self, path: &str, text: &str) -> bool {
        self.read(path).is_some_and(|content| content.contains(text))
    }

    /// Returns the names of the entries of a folder of the project, sorted; `.` is the project's own.
    pub(crate) fn entry_names(&self, folder: &str) -> Vec<String> {
        let path = if folder == "." { Ok(self.folder.clone()) } else { self.folder.join(folder) };
        let Ok(folder) = path.and_then(|path| path.open_folder()) else { return Vec::new() };
        let Ok(entries) = folder.entries() else { return Vec::new() };
        let mut names: Vec<_> = utf8_names(entries).take(MAX_ENTRIES).collect();
        names.sort_unstable();
        names
    }

    /// Returns the files and folders in a folder of the project, sorted by name; links are neither.
    #[cfg(feature = "testing")]
    pub(crate) fn entries(&self, folder: &str) -> Vec<(String, PathKind)> {
        let path = if folder == "." { Ok(self.folder.clone()) } else { self.folder.join(folder) };
        let Ok(folder) = path.and_then(|path| path.open_folder()) else { return Vec::new() };
        let Ok(entries) = folder.entries() else { return Vec::new() };
        let named = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.name.into_string().ok()?, entry.kind))
        });
        let mut named: Vec<_> = named.take(MAX_ENTRIES).collect();
        named.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        named
    }

    /// Returns true if the name of an entry of a folder of the project matches.
    #[cfg(feature = "testing")]
    pub(crate) fn has_entry(&self, folder: &str, matches: impl Fn(&str) -> bool) -> bool {
        self.entry_names(folder).iter().any(|name| matches(name))
    }

    /// Returns this folder and those above it, up to the root.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), |project| project.folder.parent().map(Self::new))
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.folder.kind(), Ok(Some(PathKind::Directory)))
    }
}

fn utf8_names(entries: FolderEntries<'_>) -> impl Iterator<Item = String> {
    entries.filter_map(|entry| entry.ok()?.name.into_string().ok())
}
