//! [`Target`]: one name in a folder held open, to read and replace what is there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::folder::{Open, copy_permissions, file_metadata, identities};
use super::{Error, Folder, Kind, Metadata, Protected, Stamp, Workspace};

/// What must hold of the file for a replacement to take place.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// Nothing: the file is replaced or created.
    Anything,
    /// There is none yet.
    Missing,
    /// It is still the file, and in the state, of this stamp. Checked right before the replacement; a write
    /// by another process in the microseconds between is not noticed.
    Unchanged(Stamp),
}

/// One name in a folder held open by handle. What happens to the path above it no longer matters.
#[derive(Debug)]
pub struct Target {
    workspace: Workspace,
    folder: Folder,
    name: OsString,
    /// The root it lies in.
    root: usize,
    /// The path as messages show it.
    shown: String,
}

/// Holds off other calls of this process that change the same file.
#[must_use]
pub struct TargetLock(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Target {
    pub(super) fn new(
        workspace: Workspace,
        root: usize,
        folder: Folder,
        name: OsString,
        shown: String,
    ) -> Self {
        Self { workspace, folder, name, root, shown }
    }

    /// The path as messages and results show it.
    pub fn shown(&self) -> &str {
        &self.shown
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

    /// What is there; a link is described itself. Nothing if the name is free.
    ///
    /// # Errors
    /// The folder may not be searched.
    pub fn metadata(&self) -> Result<Option<Metadata>, Error> {
        match self.folder.metadata(&self.name) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("look at", error)),
        }
    }

    /// Opens the regular file to read. Anything else is refused before it is opened.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WrongKind`], [`Error::Io`].
    pub fn open_read(&self) -> Result<(File, Metadata), Error> {
        let found = self.folder.metadata(&self.name).map_err(|error| self.failed("read", error))?;
        self.expect_file(found.kind)?;
        let file = self.folder.open(&self.name, Open::Read).map_err(|error| self.failed("read", error))?;
        let metadata = file_metadata(&file).map_err(|error| self.failed("read", error))?;
        // It may have been swapped since, for something that opened without waiting.
        self.expect_file(metadata.kind)?;
        Ok((file, metadata))
    }

    /// Whether this is a regular file that may be read, and changed if it `changes`: for a library that opens it
    /// by path. The file itself is not opened.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WrongKind`], [`Error::Protected`], [`Error::Io`].
    #[cfg(feature = "sqlite")]
    pub fn check_place(&self, changes: bool) -> Result<(), Error> {
        let found = self.folder.metadata(&self.name).map_err(|error| self.failed("open", error))?;
        self.expect_file(found.kind)?;
        self.folder.check_readable(&self.name).map_err(|error| self.failed("read", error))?;
        if changes { self.check_unprotected() } else { Ok(()) }
    }

    /// As [`check_place`](Self::check_place), and gives the folder by handle, with the name in it. The name is no
    /// link now; whoever opens it has to see to it that none is followed.
    ///
    /// # Errors
    /// As for [`check_place`](Self::check_place).
    #[cfg(all(unix, feature = "sqlite"))]
    pub fn into_place(self, changes: bool) -> Result<(std::os::fd::OwnedFd, OsString), Error> {
        self.check_place(changes)?;
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
    pub fn replace(&self, content: &[u8], expect: Expect) -> Result<(), Error> {
        let existing = self.metadata()?;
        if let Some(existing) = &existing {
            if matches!(expect, Expect::Missing) {
                return Err(Error::AlreadyExists { path: self.shown.clone() });
            }
            self.check_replaceable(existing)?;
        }
        self.fill(expect, existing.as_ref(), |file| file.write_all(content))
    }

    /// Adds `content` to the end of the file, or creates it. If not all of it can be written, what was is
    /// taken back.
    ///
    /// # Errors
    /// [`Error::HardLinked`] if the file has other names, [`Error::WrongKind`], [`Error::Protected`],
    /// [`Error::Io`].
    pub fn append(&self, content: &[u8]) -> Result<(), Error> {
        let Some(existing) = self.metadata()? else {
            return self.fill(Expect::Missing, None, |file| file.write_all(content));
        };
        self.check_replaceable(&existing)?;
        let failed = |error| self.failed("write", error);
        let mut file = self.folder.open(&self.name, Open::Append).map_err(failed)?;
        let before = file_metadata(&file).map_err(failed)?;
        self.expect_file(before.kind)?;
        if before.links > 1 {
            return Err(Error::HardLinked { path: self.shown.clone(), links: before.links });
        }
        file.write_all(content).map_err(|error| {
            // Only this process's own calls are held off; another's writing may be cut short here.
            let _ = file.set_len(before.size);
            self.failed("write", error)
        })
    }

    pub(super) fn remove_file(&self) -> Result<(), Error> {
        self.check_unprotected()?;
        match self.metadata()? {
            None => Err(self.failed("remove", io::ErrorKind::NotFound.into())),
            Some(found) if found.kind == Kind::Directory => Err(Error::WrongKind {
                path: self.shown.clone(),
                found: Kind::Directory,
                expected: "a file or symbolic link",
            }),
            Some(_) => self.folder.remove_file(&self.name).map_err(|error| self.failed("remove", error)),
        }
    }

    pub(super) fn rename_to(&self, destination: &Self, overwrite: bool) -> Result<(), Error> {
        self.check_unprotected()?;
        destination.check_unprotected()?;
        if let Some(limited) = self.folder.limit()
            && self.metadata()?.is_some_and(|found| found.kind == Kind::Directory)
        {
            limited.check_moved(&self.name).map_err(|error| self.failed("move", error))?;
        }
        let existing = destination.metadata()?;
        let replace = overwrite && existing.as_ref().is_some_and(|found| found.kind != Kind::Directory);
        let renamed = if replace {
            self.folder.rename(&self.name, &destination.folder, &destination.name)
        } else {
            self.folder.rename_new(&self.name, &destination.folder, &destination.name)
        };
        match renamed {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::AlreadyExists { path: destination.shown.clone() })
            }
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.copy_to(destination, existing.filter(|_| replace).as_ref())?;
                self.folder.remove_file(&self.name).map_err(|error| self.failed("remove", error))
            }
            Err(error) => Err(self.failed("move", error)),
        }
    }

    /// Copies the regular file here, with its permissions, into the place of `existing` or a free name.
    fn copy_to(&self, destination: &Self, existing: Option<&Metadata>) -> Result<(), Error> {
        let (mut file, metadata) = self.open_read()?;
        let expect = existing.map_or(Expect::Missing, |_| Expect::Anything);
        destination.fill(expect, Some(&metadata), |copy| io::copy(&mut file, copy).map(|_| ()))
    }

    /// Has `write` fill a temporary file with the permissions of `model`, which then takes the name.
    fn fill(
        &self,
        expect: Expect,
        model: Option<&Metadata>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.check_unprotected()?;
        let failed = |error| self.failed("write", error);
        let (temporary, mut file) = Temporary::create(&self.folder, model.is_some()).map_err(failed)?;
        write(&mut file).map_err(failed)?;
        if let Some(model) = model {
            copy_permissions(&file, model).map_err(failed)?;
            file.sync_data().map_err(failed)?;
        }
        // Where an open file cannot be renamed.
        drop(file);
        match expect {
            Expect::Anything => temporary.replace(&self.name).map_err(failed),
            Expect::Missing => temporary.take_name(&self.name).map_err(failed),
            Expect::Unchanged(stamp) => match self.metadata()? {
                Some(found) if found.stamp == stamp => temporary.replace(&self.name).map_err(failed),
                _ => Err(Error::Changed { path: self.shown.clone() }),
            },
        }
    }

    fn check_replaceable(&self, existing: &Metadata) -> Result<(), Error> {
        self.check_unprotected()?;
        self.expect_file(existing.kind)?;
        self.folder.check_writable(&self.name).map_err(|error| self.failed("write", error))
    }

    /// Refuses a change of what is here if it is protected.
    pub(super) fn check_unprotected(&self) -> Result<(), Error> {
        self.workspace.check_unprotected(&self.folder, &self.name, &self.shown)
    }

    fn expect_file(&self, found: Kind) -> Result<(), Error> {
        match found {
            Kind::File => Ok(()),
            _ => Err(Error::WrongKind { path: self.shown.clone(), found, expected: Kind::File.noun() }),
        }
    }

    fn failed(&self, action: &'static str, error: io::Error) -> Error {
        self.workspace.failed(self.root, action, &self.shown, error)
    }
}

impl Workspace {
    /// Refuses a change of `relative`, whose folder does not exist, if that could be a protected file.
    pub(super) fn check_names(&self, relative: &Path, shown: &str) -> Result<(), Error> {
        let Protected { files, names } = &*self.protected;
        let own = |protected: &OsStr| relative.file_name().is_some_and(|name| is_same_name(name, protected));
        let is_protected = |file: &Path| {
            file.file_name().is_some_and(own) && file.parent().is_none_or(|parent| !parent.exists())
        };
        if names.iter().any(|name| own(name)) || files.iter().any(|file| is_protected(file)) {
            return Err(Error::Protected { path: shown.to_owned() });
        }
        Ok(())
    }

    /// Refuses a change of `name` in `folder` if that is a protected file, a link to one, a folder (or a
    /// link) on the way to one, or has a protected name.
    pub(super) fn check_unprotected(&self, folder: &Folder, name: &OsStr, shown: &str) -> Result<(), Error> {
        if let Some(limited) = folder.limit() {
            limited.check_written(name).map_err(|error| Error::from_io("change", shown, error))?;
        }
        let Protected { files, names } = &*self.protected;
        if files.is_empty() && names.is_empty() {
            return Ok(());
        }
        let existing = folder.metadata(name).ok();
        let is_protected_name = |own: &OsString| {
            // The second is a file system that takes more names for the same than we do.
            is_same_name(own, name)
                || existing.as_ref().is_some_and(|existing| {
                    folder.metadata(own).is_ok_and(|found| found.stamp.same_file(existing.stamp))
                })
        };
        let is_protected = |file: &Path| {
            // By place, since the file need not exist yet; case aside, since the file system may ignore it.
            let by_place = file.file_name().is_some_and(|own| is_same_name(own, name))
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

/// Whether a file system that ignores case could take both names for one. By way of upper case, since `ſ` is
/// an `s` to APFS, NTFS and ext4 and has no lower case of its own.
fn is_same_name(one: &OsStr, other: &OsStr) -> bool {
    let folded = |name: &OsStr| name.to_string_lossy().to_uppercase().to_lowercase();
    one == other || folded(one) == folded(other)
}

/// A file that is removed again unless it takes its name.
struct Temporary<'folder> {
    folder: &'folder Folder,
    name: OsString,
    kept: bool,
}

impl<'folder> Temporary<'folder> {
    /// A new file in `folder` under a name nobody guesses.
    fn create(folder: &'folder Folder, private: bool) -> io::Result<(Self, File)> {
        let random = RandomState::new().build_hasher().finish();
        let name = OsString::from(format!(".coretools-{random:016x}.tmp"));
        let file = folder.open(&name, Open::New { private })?;
        Ok((Self { folder, name, kept: false }, file))
    }

    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename(&self.name, self.folder, name)?;
        self.kept = true;
        Ok(())
    }

    fn take_name(mut self, name: &OsStr) -> io::Result<()> {
        self.folder.rename_new(&self.name, self.folder, name)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done about it here.
            let _ = self.folder.remove_file(&self.name);
        }
    }
}
