//! The files that no writing operation may change, and how one is recognized under another name.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::folder::{Folder, identities};

/// The files that no writing operation may change.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProtectedFiles {
    /// The files by absolute path; they need not exist.
    pub(crate) files: Vec<PathBuf>,
    /// The names that are protected in every folder.
    pub(crate) names: Vec<OsString>,
    /// The folders that are protected with everything beneath them, by absolute path; they need not exist.
    pub(crate) folders: Vec<PathBuf>,
}

impl ProtectedFiles {
    /// Refuses a change of `relative`, whose folder does not exist, if that could be a protected file.
    pub(crate) fn check_missing(&self, relative: &Path, shown: &str) -> Result<(), Error> {
        let Self { files, names, .. } = self;
        let has_name =
            |protected: &OsStr| relative.file_name().is_some_and(|name| is_same_name(name, protected));
        let is_protected = |file: &Path| {
            file.file_name().is_some_and(has_name) && file.parent().is_none_or(|parent| !parent.exists())
        };
        if names.iter().any(|name| has_name(name)) || files.iter().any(|file| is_protected(file)) {
            return Err(Error::Protected { path: shown.to_owned() });
        }
        Ok(())
    }

    /// Refuses a change of `name` in `folder` if that is a protected file, a link to one, a folder (or a
    /// link) on the way to one, or has a protected name.
    pub(crate) fn check_entry(&self, folder: &Folder, name: &OsStr, shown: &str) -> Result<(), Error> {
        if let Some(location) = folder.location() {
            location.check_write(name).map_err(|error| Error::from_io("change", shown, error))?;
        }
        let Self { files, names, .. } = self;
        if files.is_empty() && names.is_empty() {
            return Ok(());
        }
        let existing = folder.metadata(name).ok();
        let is_protected_name = |protected_name: &OsString| {
            // By identity as well: a file system may equate more names than `is_same_name` does.
            is_same_name(protected_name, name)
                || existing.as_ref().is_some_and(|existing| {
                    folder.metadata(protected_name).is_ok_and(|found| found.stamp.same_file(existing.stamp))
                })
        };
        let is_protected = |file: &Path| {
            // By folder and name, since the file need not exist yet; case aside, since the file system may ignore it.
            let by_place = file.file_name().is_some_and(|protected_name| is_same_name(protected_name, name))
                && file
                    .parent()
                    .and_then(|parent| Folder::open_trusted(parent).ok())
                    .is_some_and(|parent| parent.is_same(folder));
            by_place
                || existing.as_ref().is_some_and(|existing| {
                    file.ancestors().flat_map(identities).any(|stamp| stamp.same_file(existing.stamp))
                })
        };
        if names.iter().any(is_protected_name) || files.iter().any(|file| is_protected(file)) {
            return Err(Error::Protected { path: shown.to_owned() });
        }
        Ok(())
    }
}

impl ProtectedFiles {
    /// Refuses a change at `place`, an absolute path without links, if that is a protected folder or lies beneath one.
    pub(crate) fn check_place(&self, place: &Path, shown: &str) -> Result<(), Error> {
        match self.folders.iter().any(|folder| is_beneath(place, folder)) {
            true => Err(Error::Protected { path: shown.to_owned() }),
            false => Ok(()),
        }
    }

    /// Refuses to put a whole folder at `place`, an absolute path without links, if it could bring something to where a
    /// protected file or folder is.
    pub(crate) fn check_whole_folder(&self, place: &Path, shown: &str) -> Result<(), Error> {
        match self.files.iter().chain(&self.folders).any(|protected| is_beneath(protected, place)) {
            true => Err(Error::Protected { path: shown.to_owned() }),
            false => self.check_place(place, shown),
        }
    }
}

/// Returns true if `path` is `folder` or lies beneath it, by names that a file system could take for the same.
fn is_beneath(path: &Path, folder: &Path) -> bool {
    let mut parts = path.components();
    folder
        .components()
        .all(|part| parts.next().is_some_and(|found| is_same_name(found.as_os_str(), part.as_os_str())))
}

/// Returns true if a file system that ignores case could take both names for one. They are compared by way of upper
/// case, since `ſ` is an `s` to APFS, NTFS and ext4 and has no lower case of its own.
fn is_same_name(one: &OsStr, other: &OsStr) -> bool {
    let folded = |name: &OsStr| name.to_string_lossy().to_uppercase().to_lowercase();
    one == other || folded(one) == folded(other)
}
