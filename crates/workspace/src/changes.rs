//! Changes of what a [`TargetFile`] names: replacing, appending, removing and renaming it.

use std::fs::File;
use std::io::{self, Write};

use crate::error::Error;
use crate::folder::{OpenMode, copy_permissions, file_metadata};
use crate::metadata::{Metadata, PathKind};
use crate::staged::{FileReplaceCondition, SetAsideFile, StagedFile, TemporaryFile};
use crate::target::TargetFile;

impl TargetFile {
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
    pub fn replace(&self, content: &[u8], expect: FileReplaceCondition) -> Result<(), Error> {
        let existing = self.metadata()?;
        if let Some(existing) = &existing {
            if matches!(expect, FileReplaceCondition::Missing) {
                return Err(Error::AlreadyExists { path: self.display_path().to_owned() });
            }
            self.check_replaceable(existing)?;
        }
        self.write_atomically(expect, existing.as_ref(), |file| file.write_all(content))
    }

    /// Writes `content` to a temporary file beside this one, as [`replace`](Self::replace) does, with the permissions
    /// of `model`. The temporary file takes the name of this file later. Thereby an error, such as a full disk or
    /// missing permissions, is known before one of several files is replaced.
    ///
    /// # Errors
    /// As for [`replace`](Self::replace).
    pub fn stage(
        &self,
        content: &[u8],
        expect: FileReplaceCondition,
        model: Option<&Metadata>,
    ) -> Result<StagedFile<'_>, Error> {
        if let Some(existing) = self.metadata()? {
            if matches!(expect, FileReplaceCondition::Missing) {
                return Err(Error::AlreadyExists { path: self.display_path().to_owned() });
            }
            self.check_replaceable(&existing)?;
        }
        self.write_temporary(expect, model, |file| file.write_all(content))
    }

    /// Gives the file, or the link itself, another name in its folder, so that it can be brought back. A folder is refused.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::WrongKind`], [`Error::Protected`], [`Error::GitFolder`], [`Error::Io`].
    pub fn set_aside(&self) -> Result<SetAsideFile<'_>, Error> {
        self.check_removable()?;
        SetAsideFile::new(self)
    }

    /// Adds `content` to the end of the file, or creates it. If not all of it can be written, what was is
    /// taken back.
    ///
    /// # Errors
    /// [`Error::HardLinked`] if the file has other names, [`Error::WrongKind`], [`Error::Protected`],
    /// [`Error::Io`].
    pub fn append(&self, content: &[u8]) -> Result<(), Error> {
        let Some(existing) = self.metadata()? else {
            return self
                .write_atomically(FileReplaceCondition::Missing, None, |file| file.write_all(content));
        };
        self.check_replaceable(&existing)?;
        let failed = |error| self.io_error("write", error);
        let mut file = self.folder.open(&self.name, OpenMode::Append).map_err(failed)?;
        let before = file_metadata(&file).map_err(failed)?;
        self.expect_file(before.kind)?;
        // Asked of the open file, since the name may have been swapped.
        if before.links > 1 {
            return Err(Error::HardLinked { path: self.display_path().to_owned(), links: before.links });
        }
        file.write_all(content).map_err(|error| {
            // The lock holds off this process only: what another process appended meanwhile may be cut off here.
            let _ = file.set_len(before.size);
            self.io_error("write", error)
        })
    }

    pub(crate) fn remove_file(&self) -> Result<(), Error> {
        self.check_removable()?;
        self.folder.remove_file(&self.name).map_err(|error| self.io_error("remove", error))
    }

    pub(crate) fn remove_empty_folder(&self) -> Result<(), Error> {
        self.check_changeable()?;
        self.folder.remove_empty_child(&self.name).map_err(|error| self.io_error("remove", error))
    }

    pub(crate) fn rename_to(&self, destination: &Self, overwrite: bool) -> Result<(), Error> {
        self.check_changeable()?;
        destination.check_changeable()?;
        if self.metadata()?.is_some_and(|found| found.kind == PathKind::Directory) {
            self.check_whole_folder()?;
            destination.check_whole_folder()?;
            if let Some(location) = self.folder.location() {
                location.check_move(&self.name).map_err(|error| self.io_error("move", error))?;
            }
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
                Err(Error::AlreadyExists { path: destination.display_path().to_owned() })
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
        let expect = existing.map_or(FileReplaceCondition::Missing, |_| FileReplaceCondition::Anything);
        destination.write_atomically(expect, Some(&metadata), |copy| io::copy(&mut file, copy).map(|_| ()))
    }

    /// Has `write` fill a temporary file with the permissions of `model`, which then takes the name.
    fn write_atomically(
        &self,
        expect: FileReplaceCondition,
        model: Option<&Metadata>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.write_temporary(expect, model, write)?.commit()
    }

    fn write_temporary(
        &self,
        expect: FileReplaceCondition,
        model: Option<&Metadata>,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<StagedFile<'_>, Error> {
        self.check_changeable()?;
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
        Ok(StagedFile::new(self, temporary, expect))
    }

    fn check_replaceable(&self, existing: &Metadata) -> Result<(), Error> {
        self.check_changeable()?;
        self.expect_file(existing.kind)?;
        // To replace a file needs no permission on the file itself, so a read-only one would be replaced as well.
        self.folder.check_writable(&self.name).map_err(|error| self.io_error("write", error))
    }
}
