//! [`TargetFile`]: one name in a folder held open, to read and replace what is there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::folder::{Folder, OpenMode, copy_permissions, file_metadata};
use crate::metadata::{FileRevision, Metadata, PathKind};
use crate::root_set::RootSet;

/// The condition on the file under which it is replaced.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ReplaceCondition {
    /// Nothing: the file is replaced or created.
    Anything,
    /// There is none yet.
    Missing,
    /// It is still the file, and in the state, of this stamp. Checked right before the replacement; a write
    /// by another process in the microseconds between is not noticed.
    Unchanged(FileRevision),
}

/// One name in a folder held open by handle. What happens to the path above it no longer matters.
#[derive(Debug)]
pub struct TargetFile {
    root_set: RootSet,
    folder: Folder,
    name: OsString,
    /// The root it lies in.
    root: usize,
    /// The path as messages show it.
    display_path: String,
}

/// Holds off other calls of this process that change the same file.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct TargetLock(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl TargetFile {
    pub(crate) fn new(
        root_set: RootSet,
        root: usize,
        folder: Folder,
        name: OsString,
        display_path: String,
    ) -> Self {
        Self { root_set, folder, name, root, display_path }
    }

    /// Returns the path as messages and results show it.
    pub fn display_path(&self) -> &str {
        &self.display_path
    }

    /// Waits until no other call of this process holds this file for a change. Hold at most one at a time.
    pub fn lock(&self) -> TargetLock {
        // Few locks for many files: two files may share one, which costs a moment and no memory.
        static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];
        let mut hasher = DefaultHasher::new();
        if let Ok(folder) = self.folder.own_metadata() {
            (folder.stamp.device, folder.stamp.inode).hash(&mut hasher);
        }
        // Where case does not distinguish names, it must not distinguish locks.
        self.name.to_ascii_lowercase().hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % 64).unwrap_or_default();
        TargetLock(LOCKS[index].lock().unwrap_or_else(PoisonError::into_inner))
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
        if for_writing { self.check_unprotected() } else { Ok(()) }
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

    /// Puts `content` in the place of the file, whole or not at all: it is written to a temporary file in
    /// the same folder, which then takes the name. On any failure, a full disk included, the old file is
    /// untouched and the temporary one removed.
    ///
    /// Permissions stay, and the owner where this process may set it; other hard links keep the old content.
    /// A file that exists is on disk before it is replaced (`fdatasync`), so that a power failure leaves the
    /// one or the other. A file this process may not write to is not replaced either.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] and [`Error::Changed`] if `expect` does not hold, [`Error::WrongKind`],
    /// [`Error::Protected`], [`Error::Io`].
    pub fn replace(&self, content: &[u8], expect: ReplaceCondition) -> Result<(), Error> {
        let existing = self.metadata()?;
        if let Some(existing) = &existing {
            if matches!(expect, ReplaceCondition::Missing) {
                return Err(Error::AlreadyExists { path: self.display_path.clone() });
            }
            self.check_replaceable(existing)?;
        }
        self.write_atomically(expect, existing.as_ref(), |file| file.write_all(content))
    }

    /// Adds `content` to the end of the file, or creates it. If not all of it can be written, what was is
    /// taken back.
    ///
    /// # Errors
    /// [`Error::HardLinked`] if the file has other names, [`Error::WrongKind`], [`Error::Protected`],
    /// [`Error::Io`].
    pub fn append(&self, content: &[u8]) -> Result<(), Error> {
        let Some(existing) = self.metadata()? else {
            return self.write_atomically(ReplaceCondition::Missing, None, |file| file.write_all(content));
        };
        self.check_replaceable(&existing)?;
        let failed = |error| self.io_error("write", error);
        let mut file = self.folder.open(&self.name, OpenMode::Append).map_err(failed)?;
        let before = file_metadata(&file).map_err(failed)?;
        self.expect_file(before.kind)?;
        // Asked of the open file, since the name may have been swapped.
        if before.links > 1 {
            return Err(Error::HardLinked { path: self.display_path.clone(), links: before.links });
        }
        file.write_all(content).map_err(|error| {
            // The lock holds off this process only: what another process appended meanwhile may be cut off here.
            let _ = file.set_len(before.size);
            self.io_error("write", error)
        })
    }

    pub(crate) fn remove_file(&self) -> Result<(), Error> {
        self.check_unprotected()?;
        match self.metadata()? {
            None => Err(self.io_error("remove", io::ErrorKind::NotFound.into())),
            Some(found) if found.kind == PathKind::Directory => Err(Error::WrongKind {
                path: self.display_path.clone(),
                found: PathKind::Directory,
                expected: "a file or symbolic link",
            }),
            Some(_) => self.folder.remove_file(&self.name).map_err(|error| self.io_error("remove", error)),
        }
    }

    pub(crate) fn rename_to(&self, destination: &Self, overwrite: bool) -> Result<(), Error> {
        self.check_unprotected()?;
        destination.check_unprotected()?;
        if let Some(location) = self.folder.location()
            && self.metadata()?.is_some_and(|found| found.kind == PathKind::Directory)
        {
            location.check_move(&self.name).map_err(|error| self.io_error("move", error))?;
        }
        let existing = destination.metadata()?;
        // A folder is never replaced, although rename(2) would replace an empty one.
        let replace = overwrite && existing.as_ref().is_some_and(|found| found.kind != PathKind::Directory);
        let renamed = if replace {
            self.folder.rename(&self.name, &destination.folder, &destination.name)
        } else {
            self.folder.rename_new(&self.name, &destination.folder, &destination.name)
        };
        match renamed {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::AlreadyExists { path: destination.display_path.clone() })
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                // Copied whole before the source is removed, so that a failure loses nothing.
                self.copy_to(destination, existing.filter(|_| replace).as_ref())?;
                self.folder.remove_file(&self.name).map_err(|error| self.io_error("remove", error))
            }
            Err(error) => Err(self.io_error("move", error)),
        }
    }

    /// Copies the regular file here, with its permissions, into the place of `existing` or a free name.
    fn copy_to(&self, destination: &Self, existing: Option<&Metadata>) -> Result<(), Error> {
        let (mut file, metadata) = self.open_read()?;
        let expect = existing.map_or(ReplaceCondition::Missing, |_| ReplaceCondition::Anything);
        destination.write_atomically(expect, Some(&metadata), |copy| io::copy(&mut file, copy).map(|_| ()))
    }

    /// Has `write` fill a temporary file with the permissions of `model`, which then takes the name.
    fn write_atomically(
        &self,
        expect: ReplaceCondition,
        model: Option<&Metadata>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.check_unprotected()?;
        let failed = |error| self.io_error("write", error);
        // Private until it has the permissions of the file that it replaces, which may be narrower than the umask.
        let (temporary, mut file) = TemporaryFile::create(&self.folder, model.is_some()).map_err(failed)?;
        write(&mut file).map_err(failed)?;
        if let Some(model) = model {
            copy_permissions(&file, model).map_err(failed)?;
            file.sync_data().map_err(failed)?;
        }
        // Windows does not rename an open file.
        drop(file);
        match expect {
            ReplaceCondition::Anything => temporary.replace(&self.name).map_err(failed),
            ReplaceCondition::Missing => temporary.take_name(&self.name).map_err(failed),
            ReplaceCondition::Unchanged(stamp) => match self.metadata()? {
                Some(found) if found.stamp == stamp => temporary.replace(&self.name).map_err(failed),
                _ => Err(Error::Changed { path: self.display_path.clone() }),
            },
        }
    }

    fn check_replaceable(&self, existing: &Metadata) -> Result<(), Error> {
        self.check_unprotected()?;
        self.expect_file(existing.kind)?;
        // To replace a file needs no permission on the file itself, so a read-only one would be replaced as well.
        self.folder.check_writable(&self.name).map_err(|error| self.io_error("write", error))
    }

    /// Refuses a change of what is here if it is protected.
    pub(crate) fn check_unprotected(&self) -> Result<(), Error> {
        self.root_set.protected.check_entry(&self.folder, &self.name, &self.display_path)
    }

    fn expect_file(&self, found: PathKind) -> Result<(), Error> {
        match found {
            PathKind::File => Ok(()),
            _ => Err(Error::WrongKind {
                path: self.display_path.clone(),
                found,
                expected: PathKind::File.noun(),
            }),
        }
    }

    fn io_error(&self, action: &'static str, error: io::Error) -> Error {
        self.root_set.io_error(self.root, action, &self.display_path, error)
    }
}

/// A temporary file, which is removed again unless it takes its final name.
struct TemporaryFile<'folder> {
    folder: &'folder Folder,
    name: OsString,
    is_persisted: bool,
}

impl<'folder> TemporaryFile<'folder> {
    /// Creates a file in `folder` under a name that cannot be guessed.
    fn create(folder: &'folder Folder, private: bool) -> io::Result<(Self, File)> {
        // Seeded from the operating system. With `create_new`, a name that somebody has put there is an error.
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!(".coretools-{random:016x}.tmp"));
        let file = folder.open(&name, OpenMode::New { private })?;
        Ok((Self { folder, name, is_persisted: false }, file))
    }

    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, self.folder, name)?;
        self.is_persisted = true;
        Ok(())
    }

    fn take_name(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename_new(&self.name, self.folder, name)?;
        self.is_persisted = true;
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_persisted {
            // Removal is best effort: `drop` cannot report an error.
            let _ = self.folder.remove_file(&self.name);
        }
    }
}
