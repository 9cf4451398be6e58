//! [`TargetFile`]: one name in a folder held open, to read what is there and to lock it for a change.

use std::borrow::Borrow;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::folder::{Folder, OpenMode, file_metadata};
use crate::git_folder;
use crate::metadata::{Metadata, PathKind};
use crate::root_set::RootSet;

/// One name in a folder held open by handle. What happens to the path above it no longer matters.
#[derive(Debug)]
pub struct TargetFile {
    root_set: RootSet,
    pub(crate) folder: Folder,
    pub(crate) name: OsString,
    /// The root it lies in.
    root: usize,
    /// The folder's path beneath the root, free of links.
    path: PathBuf,
    /// The path as messages show it.
    display_path: String,
}

/// Holds off other calls of this process that change the same file.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct TargetLock(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

/// Holds off other calls of this process that change one of several files.
#[derive(Debug)]
#[must_use = "the locks are released when this is dropped"]
pub struct TargetLocks(#[allow(dead_code, reason = "held, not read")] Vec<TargetLock>);

/// The locks of all files. Few for many: two files may share one, which costs a moment and no memory.
static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

fn lock(index: usize) -> TargetLock {
    TargetLock(LOCKS[index].lock().unwrap_or_else(PoisonError::into_inner))
}

impl TargetFile {
    pub(crate) fn new(
        root_set: RootSet,
        root: usize,
        path: PathBuf,
        folder: Folder,
        name: OsString,
        display_path: String,
    ) -> Self {
        Self { root_set, folder, name, root, path, display_path }
    }

    /// Returns the path as messages and results show it.
    pub fn display_path(&self) -> &str {
        &self.display_path
    }

    /// Waits until no other call of this process holds this file for a change. Hold at most one at a time, or take all of
    /// them with [`lock_all`](Self::lock_all).
    pub fn lock(&self) -> TargetLock {
        lock(self.lock_index())
    }

    /// Waits until no other call of this process holds one of `targets` for a change.
    pub fn lock_all<T: Borrow<Self>>(targets: impl IntoIterator<Item = T>) -> TargetLocks {
        let mut indexes: Vec<usize> =
            targets.into_iter().map(|target| target.borrow().lock_index()).collect();
        // In one order, so that two calls never wait for each other; and once, as two files may share a lock.
        indexes.sort_unstable();
        indexes.dedup();
        TargetLocks(indexes.into_iter().map(lock).collect())
    }

    fn lock_index(&self) -> usize {
        let mut hasher = DefaultHasher::new();
        if let Ok(folder) = self.folder.own_metadata() {
            (folder.stamp.device, folder.stamp.inode).hash(&mut hasher);
        }
        // Where case does not distinguish names, it must not distinguish locks.
        self.name.to_ascii_lowercase().hash(&mut hasher);
        usize::try_from(hasher.finish() % LOCKS.len() as u64).unwrap_or_default()
    }

    /// Returns the metadata of what is there, or `None` if the name is free. A link is described itself.
    ///
    /// # Errors
    /// The folder may not be searched.
    pub fn metadata(&self) -> Result<Option<Metadata>, Error> {
        match self.folder.metadata(&self.name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.io_error("look at", error)),
        }
    }

    /// Opens the regular file to read. Anything else is refused before it is opened.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WrongKind`], [`Error::Io`].
    pub fn open_read(&self) -> Result<(File, Metadata), Error> {
        let found = self.folder.metadata(&self.name).map_err(|error| self.io_error("read", error))?;
        self.expect_file(found.kind)?;
        let file =
            self.folder.open(&self.name, OpenMode::Read).map_err(|error| self.io_error("read", error))?;
        let metadata = file_metadata(&file).map_err(|error| self.io_error("read", error))?;
        // It may have been swapped since, for something that opened without waiting.
        self.expect_file(metadata.kind)?;
        Ok((file, metadata))
    }

    /// Checks that this is a regular file that may be read, and with `for_writing` also changed: for a library that
    /// opens it by path. The file itself is not opened.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WrongKind`], [`Error::Protected`], [`Error::Io`].
    pub fn check_file_access(&self, for_writing: bool) -> Result<(), Error> {
        let found = self.folder.metadata(&self.name).map_err(|error| self.io_error("open", error))?;
        self.expect_file(found.kind)?;
        self.folder.check_readable(&self.name).map_err(|error| self.io_error("read", error))?;
        if for_writing { self.check_changeable() } else { Ok(()) }
    }

    /// Checks as [`check_file_access`](Self::check_file_access) does, and returns a handle to the folder and the name
    /// in it. The name is no link now; the caller must open it so that no link is followed.
    ///
    /// # Errors
    /// As for [`check_file_access`](Self::check_file_access).
    #[cfg(unix)]
    pub fn into_folder_and_name(self, for_writing: bool) -> Result<(std::os::fd::OwnedFd, OsString), Error> {
        self.check_file_access(for_writing)?;
        Ok((self.folder.into_handle(), self.name))
    }

    /// Refuses to remove what is here if it is no file and no link, or may not be changed.
    ///
    /// # Errors
    /// There is nothing here, it is a folder, or the path may not be changed.
    pub fn check_removable(&self) -> Result<(), Error> {
        self.check_changeable()?;
        match self.metadata()? {
            None => Err(self.io_error("remove", io::ErrorKind::NotFound.into())),
            Some(found) if found.kind == PathKind::Directory => Err(Error::WrongKind {
                path: self.display_path.clone(),
                found: PathKind::Directory,
                expected: "a file or symbolic link",
            }),
            Some(_) => Ok(()),
        }
    }

    /// Refuses a change of what is here by an operation of this crate: if it is protected, or belongs to git.
    ///
    /// # Errors
    /// [`Error::Protected`], [`Error::GitFolder`], [`Error::Io`] with the reason of a limit.
    pub fn check_changeable(&self) -> Result<(), Error> {
        self.check_unprotected()?;
        let root = self.root_set.get(self.root)?;
        git_folder::check_change(root, &self.path, &self.folder, &self.name, &self.display_path)
    }

    /// Refuses a change of what is here if it is protected.
    pub(crate) fn check_unprotected(&self) -> Result<(), Error> {
        self.root_set.protected.check_entry(&self.folder, &self.name, &self.display_path)?;
        self.root_set.protected.check_place(&self.place()?, &self.display_path)
    }

    /// Refuses to put a whole folder here, if it could bring something to where a protected file is.
    pub(crate) fn check_whole_folder(&self) -> Result<(), Error> {
        self.root_set.protected.check_whole_folder(&self.place()?, &self.display_path)
    }

    /// Returns the absolute path, without links.
    fn place(&self) -> Result<PathBuf, Error> {
        Ok(self.root_set.get(self.root)?.canonical.join(&self.path).join(&self.name))
    }

    pub(crate) fn expect_file(&self, found: PathKind) -> Result<(), Error> {
        match found {
            PathKind::File => Ok(()),
            _ => Err(Error::WrongKind {
                path: self.display_path.clone(),
                found,
                expected: PathKind::File.noun(),
            }),
        }
    }

    pub(crate) fn io_error(&self, action: &'static str, error: io::Error) -> Error {
        self.root_set.io_error(self.root, action, &self.display_path, error)
    }
}
