//! One allowed root.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::folder::Folder;
#[cfg(target_os = "linux")]
use crate::folder::openat2;
use crate::path_text::printable;

/// One allowed root: a folder held open from the start.
#[derive(Clone, Debug)]
pub(crate) struct AllowedRoot {
    pub(crate) folder: Arc<Folder>,
    /// The path of the folder, free of links.
    pub(crate) canonical: PathBuf,
    /// The path as the operator gave it, which may go through links.
    pub(crate) as_given: PathBuf,
    /// The last component of the path, to tell roots apart in messages.
    pub(crate) name: String,
    /// True if the root lies in a local file system, whose cached names and pages can be read without waiting.
    #[cfg(target_os = "linux")]
    pub(crate) is_local: bool,
}

impl AllowedRoot {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Root { path: path.to_owned(), source };
        let folder = Folder::open_trusted(path).map_err(failed)?;
        let canonical = path.canonicalize().map_err(failed)?;
        Ok(Self::new(folder, canonical, path.to_owned()))
    }

    pub(crate) fn new(folder: Folder, canonical: PathBuf, as_given: PathBuf) -> Self {
        let name = canonical.file_name().map_or_else(|| "/".to_owned(), printable);
        Self {
            #[cfg(target_os = "linux")]
            is_local: openat2::is_local(&folder),
            folder: Arc::new(folder),
            canonical,
            as_given,
            name,
        }
    }

    /// Returns the part of the absolute `path` beneath this root, and the number of components that named the root.
    pub(crate) fn strip<'path>(&self, path: &'path Path) -> Option<(&'path Path, usize)> {
        // By either spelling, as clients know the one that the operator gave.
        [&self.canonical, &self.as_given]
            .into_iter()
            .filter_map(|root| Some((path.strip_prefix(root).ok()?, root.components().count())))
            .max_by_key(|(_, depth)| *depth)
    }

    pub(crate) fn is_at(&self, path: &Path) -> bool {
        path == self.canonical || path == self.as_given
    }

    /// Returns true if the folder was removed. Its handle then leads nowhere.
    pub(crate) fn is_gone(&self) -> bool {
        match self.folder.own_metadata() {
            // A folder that is open stays readable after its removal, and then has no name left.
            Ok(metadata) => metadata.links == 0,
            Err(_) => true,
        }
    }
}
