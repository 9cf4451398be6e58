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

use super::{Entry, Open};
use crate::workspace::limit::Limited;
use crate::workspace::metadata::{Kind, Metadata, Stamp};

/// A folder by its resolved path.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Where it lies, if that matters to somebody.
    limited: Option<Box<Limited>>,
}

impl Folder {
    /// Opens `path`, following links: only for what the operator named.
    pub(in crate::workspace) fn open_trusted(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path, limited: None })
    }

    /// Another handle to the same folder.
    ///
    /// # Errors
    /// None on this platform.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), limited: self.limited.clone() })
    }

    /// The same folder, under a limit that holds for everything reached through it.
    pub(in crate::workspace) fn limited(&self, limited: Limited) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), limited: Some(Box::new(limited)) })
    }

    /// The limit it was reached under.
    pub(in crate::workspace) fn limit(&self) -> Option<&Limited> {
        self.limited.as_deref()
    }

    /// The folder `name` in this one; a link is refused with `NotADirectory`.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn child(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.at(name)?;
        if from_std(&fs::symlink_metadata(&path)?).kind == Kind::Directory {
            Ok(Self { path, limited: self.limited.as_ref().map(|limited| Box::new(limited.child(name))) })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Where the link `name` leads, or nothing if it is no link.
    pub(in crate::workspace) fn read_link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let path = self.at(name)?;
        if fs::symlink_metadata(&path)?.file_type().is_symlink() {
            return fs::read_link(path).map(Some);
        }
        Ok(None)
    }

    /// What `name` is; a link is described itself.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_looked_at(name))?;
        Ok(from_std(&fs::symlink_metadata(self.at(name)?)?))
    }

    /// What this folder itself is.
    pub(in crate::workspace) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_std(&fs::metadata(&self.path)?))
    }

    /// Opens the file `name`, which must be no link.
    pub(in crate::workspace) fn open(&self, name: &OsStr, how: Open) -> io::Result<File> {
        if let (Open::Read, Some(limited)) = (how, &self.limited) {
            limited.check_read(name)?;
        }
        let path = self.at(name)?;
        match how {
            Open::New { .. } => OpenOptions::new().write(true).create_new(true).open(path),
            Open::Read => {
                self.check_not_link(name)?;
                File::open(path)
            }
            Open::Append => {
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
        if self.metadata(name)?.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.open(name, Open::Read)
    }

    /// Opens `name`, which a listing of this folder said is a regular file, to read. A link is refused.
    ///
    /// # Errors
    /// What the system says of `name`.
    pub fn open_listed(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name)
    }

    /// Whether the call may read the file `name`. What its permissions say, opening finds out.
    #[cfg(feature = "sqlite")]
    pub(in crate::workspace) fn check_readable(&self, name: &OsStr) -> io::Result<()> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_read(name))
    }

    /// Whether this process may write to the file `name`.
    pub(in crate::workspace) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        if fs::symlink_metadata(self.at(name)?)?.permissions().readonly() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }

    pub(in crate::workspace) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.at(name)?)
    }

    pub(in crate::workspace) fn create_child(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.at(name)?)
    }

    /// Renames `name` to `new_name` in `folder`, replacing what is there.
    pub(in crate::workspace) fn rename(
        &self,
        name: &OsStr,
        folder: &Self,
        new_name: &OsStr,
    ) -> io::Result<()> {
        fs::rename(self.at(name)?, folder.at(new_name)?)
    }

    /// Renames `name` to `new_name` in `folder`, or fails with `AlreadyExists`.
    pub(in crate::workspace) fn rename_new(
        &self,
        name: &OsStr,
        folder: &Self,
        new_name: &OsStr,
    ) -> io::Result<()> {
        if folder.metadata(new_name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(name, folder, new_name)
    }

    /// Whether both are the same folder.
    pub(in crate::workspace) fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// The names in this folder, in no order.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn entries(&self) -> io::Result<Entries<'_>> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_listed())?;
        Ok(Entries { entries: fs::read_dir(&self.path)?, folder: self })
    }

    /// The folder's path, for a child process's working directory.
    pub fn into_path(self) -> PathBuf {
        self.path
    }

    /// `name` must be one ordinary component: no separator, drive or stream.
    fn at(&self, name: &OsStr) -> io::Result<PathBuf> {
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
pub struct Entries<'folder> {
    entries: fs::ReadDir,
    folder: &'folder Folder,
}

impl Iterator for Entries<'_> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = self.entries.next()?;
            let entry = entry.and_then(|entry| {
                let kind = kind_of(entry.file_type()?);
                Ok(Entry { name: entry.file_name(), kind })
            });
            match (&entry, self.folder.limit()) {
                (Ok(entry), Some(limited)) if limited.check_read(&entry.name).is_err() => {}
                _ => return Some(entry),
            }
        }
    }
}

/// What an open file is.
pub(in crate::workspace) fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_std(&file.metadata()?))
}

/// Nothing to copy: a new file inherits its folder's access list.
pub(in crate::workspace) fn copy_permissions(_file: &File, _model: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Files have no identity here.
pub(in crate::workspace) fn identities(_path: &Path) -> impl Iterator<Item = Stamp> {
    std::iter::empty()
}

fn kind_of(file_type: fs::FileType) -> Kind {
    if file_type.is_symlink() {
        Kind::Symlink
    } else if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}

/// Identity (device and inode) is not to be had on stable Rust: zero, which is the same as nothing.
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
        stamp: Stamp {
            device: 0,
            inode: 0,
            size: metadata.len(),
            modified: nanoseconds(metadata.modified()),
        },
        owner: (0, 0),
    }
}
