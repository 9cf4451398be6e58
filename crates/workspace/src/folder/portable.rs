//! Folders by path, for systems without `openat(2)`, which here means Windows.
//!
//! Promise, lower than on Unix: every component is looked at before it is entered, links (junctions
//! included) are resolved and judged, and nothing outside the roots is opened as long as nobody swaps a
//! folder for a link *between* the look and the opening. Whoever can write to the root can win that race.

#![allow(clippy::disallowed_methods, reason = "this module is what the workspace opens files with")]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::entry::DirEntry;
use super::open_mode::OpenMode;
use crate::access_limit::LimitedLocation;
use crate::metadata::{FileRevision, Metadata, PathKind};

/// A folder by its resolved path.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The location of the folder and the limit it was reached under, for a call that has one.
    location: Option<Box<LimitedLocation>>,
}

impl Folder {
    /// Opens `path`, following links: only for what the operator named.
    pub(crate) fn open_trusted(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path, location: None })
    }

    /// Returns another handle to the same folder.
    ///
    /// # Errors
    /// None on this platform.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), location: self.location.clone() })
    }

    /// Returns the same folder, under a limit that holds for everything reached through it.
    pub(crate) fn with_limit(&self, location: LimitedLocation) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), location: Some(Box::new(location)) })
    }

    /// Returns the location of the folder, if it was reached under a limit.
    pub(crate) fn location(&self) -> Option<&LimitedLocation> {
        self.location.as_deref()
    }

    /// Opens the folder `name` in this one; a link is refused with `NotADirectory`.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn child(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path_of(name)?;
        if from_std(&fs::symlink_metadata(&path)?).kind == PathKind::Directory {
            Ok(Self { path, location: self.location.as_ref().map(|location| Box::new(location.child(name))) })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Returns the target of the link `name`, or `None` if it is no link.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let path = self.path_of(name)?;
        if fs::symlink_metadata(&path)?.file_type().is_symlink() {
            return fs::read_link(path).map(Some);
        }
        Ok(None)
    }

    /// Returns the metadata of `name`. A link is described itself.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_metadata(name))?;
        self.unjudged_metadata(name)
    }

    /// Returns the metadata of `name` whatever the limit of the call says: for decisions of this crate, never for a caller.
    pub(crate) fn unjudged_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        Ok(from_std(&fs::symlink_metadata(self.path_of(name)?)?))
    }

    /// Returns the metadata of this folder itself.
    pub(crate) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_std(&fs::metadata(&self.path)?))
    }

    /// Opens the file `name`, which must be no link.
    pub(crate) fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<File> {
        if let (OpenMode::Read, Some(location)) = (mode, &self.location) {
            location.check_read(name)?;
        }
        let path = self.path_of(name)?;
        match mode {
            OpenMode::New { .. } => OpenOptions::new().write(true).create_new(true).open(path),
            OpenMode::Read => {
                self.check_not_link(name)?;
                File::open(path)
            }
            OpenMode::Append => {
                self.check_not_link(name)?;
                OpenOptions::new().append(true).open(path)
            }
        }
    }

    /// Opens the regular file `name` to read; a link is refused before it is opened.
    ///
    /// # Errors
    /// `InvalidInput` for what is no regular file, and what the system says.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        if self.metadata(name)?.kind != PathKind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.open(name, OpenMode::Read)
    }

    /// Opens `name`, which a listing of this folder said is a regular file, to read. A link is refused.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn open_listed(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name)
    }

    /// Refuses to read the file `name` if the limit of the call excludes it. Its permissions are judged when it is
    /// opened.
    pub(crate) fn check_readable(&self, name: &OsStr) -> io::Result<()> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_read(name))
    }

    /// Fails if this process may not write to the file `name`.
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        if fs::symlink_metadata(self.path_of(name)?)?.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path_of(name)?)
    }

    pub(crate) fn remove_empty_child(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.path_of(name)?)
    }

    pub(crate) fn create_child(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.path_of(name)?)
    }

    /// Renames `name` to `new_name` in `folder`, replacing what is there.
    pub(crate) fn rename(&self, name: &OsStr, folder: &Self, new_name: &OsStr) -> io::Result<()> {
        fs::rename(self.path_of(name)?, folder.path_of(new_name)?)
    }

    /// Renames `name` to `new_name` in `folder`, or fails with `AlreadyExists`.
    pub(crate) fn rename_new(&self, name: &OsStr, folder: &Self, new_name: &OsStr) -> io::Result<()> {
        // std has no rename that fails if the name is taken, so another process may come in between.
        if folder.metadata(new_name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(name, folder, new_name)
    }

    /// Returns true if both are the same folder.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// Lists the names in this folder, in no order.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn entries(&self) -> io::Result<FolderEntries<'_>> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_list())?;
        Ok(FolderEntries { entries: fs::read_dir(&self.path)?, folder: self })
    }

    /// Returns the path of `name`, which must be one ordinary component: no separator, drive or stream.
    fn path_of(&self, name: &OsStr) -> io::Result<PathBuf> {
        let text = name.to_string_lossy();
        if text.contains(['/', '\\', ':']) || text == ".." || text == "." {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        Ok(self.path.join(name))
    }

    fn check_not_link(&self, name: &OsStr) -> io::Result<()> {
        match self.read_link(name)? {
            Some(_) => Err(io::Error::other("is a link")),
            None => Ok(()),
        }
    }
}

/// The names in a folder; see [`Folder::entries`].
#[derive(Debug)]
pub struct FolderEntries<'folder> {
    entries: fs::ReadDir,
    folder: &'folder Folder,
}

impl Iterator for FolderEntries<'_> {
    type Item = io::Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = self.entries.next()?;
            let entry = entry.and_then(|entry| {
                let kind = kind_of(entry.file_type()?);
                Ok(DirEntry { name: entry.file_name(), kind })
            });
            match (&entry, self.folder.location()) {
                (Ok(entry), Some(location)) if location.check_read(&entry.name).is_err() => {}
                _ => return Some(entry),
            }
        }
    }
}

/// Returns the metadata of an open file.
pub(crate) fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_std(&file.metadata()?))
}

/// Copies nothing: a new file inherits the access list of its folder.
pub(crate) fn copy_permissions(_file: &File, _model: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns nothing, as stable Rust knows no identity of a file on this system.
pub(crate) fn identities(_path: &Path) -> impl Iterator<Item = FileRevision> {
    std::iter::empty()
}

fn kind_of(file_type: fs::FileType) -> PathKind {
    if file_type.is_symlink() {
        PathKind::Symlink
    } else if file_type.is_dir() {
        PathKind::Directory
    } else if file_type.is_file() {
        PathKind::File
    } else {
        PathKind::Other
    }
}

/// Converts metadata. Stable Rust has no device and inode on this system, so both are 0, which equals no other file.
fn from_std(metadata: &fs::Metadata) -> Metadata {
    let nanoseconds = |time: io::Result<SystemTime>| {
        let since = time.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let since = since.unwrap_or(Duration::ZERO);
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
    };
    Metadata {
        kind: kind_of(metadata.file_type()),
        size: metadata.len(),
        mode: if metadata.permissions().readonly() { 0o444 } else { 0o666 },
        modified: metadata.modified().ok(),
        links: 1,
        stamp: FileRevision {
            device: 0,
            inode: 0,
            size: metadata.len(),
            modified: nanoseconds(metadata.modified()),
        },
        owner: (0, 0),
    }
}
