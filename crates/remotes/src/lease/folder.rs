//! [`LeaseFolder`]: leases as files, for the servers of one user on one machine.
//!
//! A lease is a file, `ID.json`, in a folder that belongs to the user alone. Its owner holds the lock of the file
//! (flock(2)), which the system releases when the owner dies.
#![allow(clippy::disallowed_methods, reason = "the module's own files, in a folder that the server names")]

use super::record::{FoundLease, LeaseRecord, OrphanedLease};
use crate::error::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most bytes of a file that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The ending of a lease that is being written. Nothing is created before it has its name.
const STAGED: &str = "new";

/// The age from which a lease that is still being written has lost its writer, who takes milliseconds.
pub(super) const STAGED_LIFE: Duration = Duration::from_secs(10);

/// The line that is added to the file once `create` has ended.
const CREATED: &str = "created";

/// A folder of leases. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFolder(PathBuf);

/// The file of a lease, with its lock.
#[derive(Debug)]
pub(super) struct LeaseFile {
    pub(super) path: PathBuf,
    lock: File,
}

impl LeaseFile {
    pub(super) fn note_created(&self) -> Result<(), Error> {
        let mut file = &self.lock;
        file.write_all(CREATED.as_bytes()).map_err(Error::lease(&self.path))
    }

    pub(super) fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(Error::lease(&self.path))
    }
}

impl LeaseFolder {
    /// Names the folder. It is created with the first lease.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn prepare(&self) -> Result<(), Error> {
        let path = &self.0;
        // The umask may only take rights away, so that no other user can read the folder.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::lease(path))?;
        let metadata = path.symlink_metadata().map_err(Error::lease(path))?;
        if !metadata.is_dir() {
            return Err(Error::lease(path)(io::Error::other("it is not a folder")));
        }
        trusted_file::check_access(&metadata, trusted_file::OthersAccess::MayNotRead)
            .map_err(|error| Error::lease(path)(error.into()))
    }

    /// Writes a lease down.
    pub(super) fn write(&self, record: &LeaseRecord) -> Result<LeaseFile, Error> {
        self.prepare()?;
        let path = self.0.join(format!("{}.json", record.id));
        let staged = self.0.join(format!("{}.{STAGED}", record.id));
        let lock = write_locked(&staged, record)
            .and_then(|file| fs::rename(&staged, &path).map(|()| file))
            .inspect_err(|_| {
                let _ = fs::remove_file(&staged);
            })
            .map_err(Error::lease(&path))?;
        Ok(LeaseFile { path, lock })
    }

    /// Returns the leases in the folder.
    pub(super) fn leases(&self) -> Result<Vec<FoundLease>, Error> {
        let mut found = Vec::new();
        for path in self.files()? {
            // One that was taken away meanwhile, or is not ours, is none.
            let Ok(text) = trusted_file::read_private(&path, MAX_BYTES) else { continue };
            let Ok(record) = serde_json::from_str::<LeaseRecord>(first_line(&text)) else { continue };
            let is_owned = File::open(&path).is_ok_and(|file| is_locked(&file));
            found.push(FoundLease { record, is_owned });
        }
        Ok(found)
    }

    /// Returns the paths of the leases.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, Error> {
        self.files_ending_in("json")
    }

    fn files_ending_in(&self, ending: &str) -> Result<Vec<PathBuf>, Error> {
        let entries = match fs::read_dir(&self.0) {
            // Nothing was ever created.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::lease(&self.0))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::lease(&self.0))?.path();
            if path.extension().is_some_and(|extension| extension == ending) {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Removes the leases whose writers were killed before they had their names.
    pub(super) fn remove_abandoned(&self) -> Result<(), Error> {
        self.files_ending_in(STAGED)?.iter().for_each(|path| remove_abandoned(path));
        Ok(())
    }

    /// Returns the lease in a file, if nobody owns it.
    #[allow(clippy::unused_self, reason = "the file is one of the folder")]
    pub(super) fn take_over(&self, path: &Path) -> Option<OrphanedLease<LeaseFile>> {
        let mut file = File::open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        // Between the opening and the lock its holder may have destroyed it and taken the file away.
        let (opened, named) = (file.metadata().ok()?, path.symlink_metadata().ok()?);
        if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
            return None;
        }
        trusted_file::check_access(&opened, trusted_file::OthersAccess::MayNotRead)
            .inspect_err(|error| tracing::warn!("{} is not used: {error}", path.display()))
            .ok()?;
        let mut text = String::new();
        (&mut file).take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let record: LeaseRecord = serde_json::from_str(first_line(&text))
            .inspect_err(|error| tracing::warn!("{} is no lease: {error}", path.display()))
            .ok()?;
        let is_settled = text.lines().nth(1) == Some(CREATED) || record.settles_at <= SystemTime::now();
        let place = LeaseFile { path: path.to_owned(), lock: file };
        Some(OrphanedLease { record, is_settled, place })
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Removes a lease whose writer was killed before it had its name. One that cannot be removed is tried again by the next.
fn remove_abandoned(path: &Path) {
    let is_abandoned = File::open(path).is_ok_and(|file| {
        let age = file.metadata().and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
        // Between its creation and its lock, a file that is being written has no lock.
        matches!(age, Ok(Ok(age)) if age >= STAGED_LIFE) && !is_locked(&file)
    });
    if is_abandoned && let Err(error) = fs::remove_file(path) {
        tracing::warn!("{} cannot be removed: {error}", path.display());
    }
}

/// Writes a new file for its owner alone, whole and with its lock held.
fn write_locked(path: &Path, record: &LeaseRecord) -> io::Result<File> {
    let mut file = fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.write_all(b"\n")?;
    // After a crash of the machine the lease must be there, because what was created may have survived.
    file.sync_all()?;
    Ok(file)
}

fn is_locked(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // Released with the file: nobody waits for it.
            false
        }
        Err(_) => true,
    }
}
