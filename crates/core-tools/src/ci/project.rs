//! What lies in a project's folders: shared by builds and tests.

#[cfg(feature = "testing")]
use crate::workspace::Kind;
use crate::workspace::{ConfinedPath, Entries};
use std::io::Read;

/// The longest manifest that is looked into, in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A folder that may be a project's.
#[derive(Clone, Debug)]
pub(crate) struct Project(pub(crate) ConfinedPath);

impl Project {
    /// Whether there is anything of this name. What a link leads to need not lie beneath a root.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.join(path).is_ok_and(|path| match path.kind() {
            Ok(kind) => kind.is_some(),
            Err(error) => error.is_outside(),
        })
    }

    #[cfg(feature = "testing")]
    pub(crate) fn has_any(&self, paths: &[&str]) -> bool {
        paths.iter().any(|path| self.has(path))
    }

    /// What a file holds; nothing if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let (file, _) = self.0.join(path).ok()?.open_read().ok()?;
        let mut text = Vec::new();
        file.take(MAX_MANIFEST).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    #[cfg(feature = "testing")]
    pub(crate) fn says(&self, path: &str, what: &str) -> bool {
        self.read(path).is_some_and(|text| text.contains(what))
    }

    /// The names in a folder beneath it, in order.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let path = if folder == "." { Ok(self.0.clone()) } else { self.0.join(folder) };
        let Ok(folder) = path.and_then(|path| path.open_folder()) else { return Vec::new() };
        let Ok(entries) = folder.entries() else { return Vec::new() };
        let mut names: Vec<_> = names(entries).take(MAX_ENTRIES).collect();
        names.sort_unstable();
        names
    }

    #[cfg(feature = "testing")]
    pub(crate) fn has_named(&self, folder: &str, matches: impl Fn(&str) -> bool) -> bool {
        self.names(folder).iter().any(|name| matches(name))
    }

    /// This folder and those above it, up to the root.
    pub(crate) fn upward(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), |project| project.0.parent().map(Self))
    }

    #[cfg(feature = "testing")]
    pub(crate) fn is_folder(&self) -> bool {
        matches!(self.0.kind(), Ok(Some(Kind::Directory)))
    }
}

fn names(entries: Entries<'_>) -> impl Iterator<Item = String> {
    entries.filter_map(|entry| entry.ok()?.name.into_string().ok())
}
