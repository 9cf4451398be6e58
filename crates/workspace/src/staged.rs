//! Changes of names that are prepared first and made later, so that several can be made together or none.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use crate::error::Error;
use crate::folder::{Folder, OpenMode};
use crate::metadata::FileRevision;
use crate::target::TargetFile;

/// The condition on the file under which it is replaced.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FileReplaceCondition {
    /// Nothing: the file is replaced or created.
    Anything,
    /// There is none yet.
    Missing,
    /// It is still the file, and in the state, of this stamp. Checked right before the replacement; a write
    /// by another process in the microseconds between is not noticed.
    Unchanged(FileRevision),
}

/// A file that is written under a temporary name beside its target. Dropping it removes it.
#[derive(Debug)]
#[must_use = "the file is removed unless it is committed"]
pub struct StagedFile<'target> {
    target: &'target TargetFile,
    temporary: TemporaryFile<'target>,
    expect: FileReplaceCondition,
}

impl<'target> StagedFile<'target> {
    pub(crate) fn new(
        target: &'target TargetFile,
        temporary: TemporaryFile<'target>,
        expect: FileReplaceCondition,
    ) -> Self {
        Self { target, temporary, expect }
    }

    /// Gives the file its name, in one step.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] and [`Error::Changed`] if the condition no longer holds, [`Error::Io`].
    pub fn commit(self) -> Result<(), Error> {
        let Self { target, temporary, expect } = self;
        let failed = |error| target.io_error("write", error);
        match expect {
            FileReplaceCondition::Anything => temporary.replace(&target.name).map_err(failed),
            FileReplaceCondition::Missing => temporary.take_name(&target.name).map_err(failed),
            FileReplaceCondition::Unchanged(stamp) => match target.metadata()? {
                Some(found) if found.stamp == stamp => temporary.replace(&target.name).map_err(failed),
                _ => Err(Error::Changed { path: target.display_path().to_owned() }),
            },
        }
    }
}

/// A file, or a link, that has a temporary name for the time being. Dropping it gives it its own name again.
#[derive(Debug)]
#[must_use = "the file has its own name again unless it is removed"]
pub struct SetAsideFile<'target> {
    target: &'target TargetFile,
    name: OsString,
    is_removed: bool,
}

impl<'target> SetAsideFile<'target> {
    pub(crate) fn new(target: &'target TargetFile) -> Result<Self, Error> {
        let name = temporary_name();
        let renamed = target.folder.rename_new(&target.name, &target.folder, &name);
        renamed.map_err(|error| target.io_error("remove", error))?;
        Ok(Self { target, name, is_removed: false })
    }

    /// Removes the file.
    ///
    /// # Errors
    /// [`Error::Io`]: it stays under its temporary name.
    pub fn remove(mut self) -> Result<(), Error> {
        self.is_removed = true;
        self.target.folder.remove_file(&self.name).map_err(|error| self.target.io_error("remove", error))
    }

    /// Gives the file its own name again.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if something else has it by now, [`Error::Io`].
    pub fn restore(mut self) -> Result<(), Error> {
        self.is_removed = true;
        let Self { target, name, .. } = &self;
        let renamed = target.folder.rename_new(name, &target.folder, &target.name);
        renamed.map_err(|error| target.io_error("restore", error))
    }
}

impl Drop for SetAsideFile<'_> {
    fn drop(&mut self) {
        if !self.is_removed {
            // Best effort: `drop` cannot report an error.
            let _ = self.target.folder.rename_new(&self.name, &self.target.folder, &self.target.name);
        }
    }
}

/// A temporary file, which is removed again unless it takes its final name.
#[derive(Debug)]
pub(crate) struct TemporaryFile<'folder> {
    folder: &'folder Folder,
    name: OsString,
    is_persisted: bool,
}

impl<'folder> TemporaryFile<'folder> {
    /// Creates a file in `folder` under a name that cannot be guessed.
    pub(crate) fn create(folder: &'folder Folder, private: bool) -> io::Result<(Self, File)> {
        // With `create_new`, a name that somebody has put there is an error.
        let name = temporary_name();
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

/// Returns a name that cannot be guessed: the hasher is seeded from the operating system.
fn temporary_name() -> OsString {
    let random = RandomState::new().build_hasher().finish();
    OsString::from(format!(".coretools-{random:016x}.tmp"))
}
