//! A temporary folder that no other user can enter.

#![allow(clippy::disallowed_methods, reason = "these folders lie in no root, and no caller names one")]

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// A folder for temporary files that only this user can enter (mode 0700, a name that cannot be guessed).
///
/// Dropping a `PrivateTempDir` removes the folder with its content. A killed server leaves its folder behind. The next
/// server that makes a folder in the same place removes the folder of the killed server.
#[derive(Debug)]
pub struct PrivateTempDir {
    folder: tempfile::TempDir,
    /// Locked as long as the folder is in use. Dropping it frees the lock, and so does the end of the process.
    _owner: File,
}

/// The beginning of the names of these folders.
const PREFIX: &str = "core-tools-";
/// The file in a folder that its owner has locked.
const OWNER_FILE: &str = ".owner";

impl PrivateTempDir {
    /// Creates a temporary folder in `folder`, such as `XDG_RUNTIME_DIR` or `/tmp`, and removes the folders that killed
    /// servers of this user left there.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn new_in(folder: impl AsRef<Path>) -> io::Result<Self> {
        // The real path: a program that asks where it is gets the same, and a link can be changed.
        let folder = folder.as_ref().canonicalize()?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        let created = builder.tempdir_in(&folder)?;
        let owner = lock(created.path())?;
        // After it: the new folder is locked, so that this does not remove it.
        remove_abandoned(&folder);
        Ok(Self { folder: created, _owner: owner })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes the file by which others see that `folder` is in use.
fn lock(folder: &Path) -> io::Result<File> {
    let unlocked = folder.join(".owner-new");
    let file = File::create_new(&unlocked)?;
    file.try_lock()?;
    // Renamed once it is locked: a folder whose file has its name and no lock is nobody's.
    fs::rename(unlocked, folder.join(OWNER_FILE))?;
    Ok(file)
}

/// Removes the folders in `folder` whose owners have ended. What cannot be looked at or removed is left: it is not ours, or
/// in use.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_candidate = entry.file_name().to_string_lossy().starts_with(PREFIX) && is_ours(&entry.path());
        if is_candidate && is_abandoned(&entry.path()) {
            match fs::remove_dir_all(entry.path()) {
                Ok(()) => tracing::debug!("removed {}, whose server has ended", entry.path().display()),
                Err(error) => tracing::debug!("cannot remove {}: {error}", entry.path().display()),
            }
        }
    }
}

/// Returns true if `path` is a folder, and no link to one, that this user alone can enter.
fn is_ours(path: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.is_dir()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o077 == 0
    }
    #[cfg(not(unix))]
    metadata.is_dir()
}

/// Returns true if the folder has an owner's file that nobody has locked.
fn is_abandoned(folder: &Path) -> bool {
    let path = folder.join(OWNER_FILE);
    // A program that had the folder may have put anything there; a FIFO would hold the opening.
    if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_owner_has_ended_is_removed_by_the_next_and_no_other_is() {
        let outer = tempfile::tempdir().unwrap();
        let path = |name: &str| outer.path().join(name);
        let in_use = PrivateTempDir::new_in(outer.path()).unwrap();
        // As a killed server leaves it: the lock is free.
        let left = PrivateTempDir::new_in(outer.path()).unwrap();
        let PrivateTempDir { folder, _owner } = left;
        let abandoned = folder.keep();
        fs::write(abandoned.join("file"), "x").unwrap();
        drop(_owner);
        for other in ["core-tools-without-owner", "another"] {
            fs::create_dir(path(other)).unwrap();
        }
        fs::write(path("another").join(OWNER_FILE), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(path("another"), path("core-tools-link")).unwrap();
        // A program that another thread is just starting holds a copy of the lock until it is in place.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let mut next = PrivateTempDir::new_in(outer.path()).unwrap();
        while abandoned.exists() && std::time::Instant::now() < deadline {
            next = PrivateTempDir::new_in(outer.path()).unwrap();
        }
        assert!(!abandoned.exists());
        assert!(in_use.path().exists() && next.path().exists());
        assert!(path("core-tools-without-owner").exists() && path("another").join(OWNER_FILE).exists());
    }

    #[cfg(unix)]
    #[test]
    fn through_a_link_the_folder_has_its_real_path() {
        let outer = tempfile::tempdir().unwrap();
        let real = outer.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, outer.path().join("link")).unwrap();
        let made = PrivateTempDir::new_in(outer.path().join("link")).unwrap();
        assert!(made.path().starts_with(&real), "{}", made.path().display());
    }
}
