//! Files that are replaced as a whole, or not at all.
#![allow(clippy::disallowed_methods, reason = "the files are the operator's; no client names them")]

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use server_setup::protected_files::lock_path;

/// A lock on a file; dropping it lets others change the file.
#[derive(Debug)]
pub(crate) struct FileLock(#[allow(dead_code, reason = "its descriptor holds the lock")] File);

/// Waits until no other process changes the file at `path`, and locks it. The lock is on a file beside it, because
/// `replace` puts a new inode at `path` and a lock would stay on the old one.
pub(crate) fn lock(path: &Path) -> io::Result<FileLock> {
    let lock = lock_path(path);
    let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(&lock);
    let file = trusted_file::with_own_access(&lock, open)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(FileLock(file))
}

/// Writes `content` to `path`, readable for its owner alone. A reader finds the old or the new content, also after a crash.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".tokens")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    // Without this, a crash after the rename could leave the new name with an empty file.
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The rename itself survives a crash only once the folder is synced.
    File::open(folder)?.sync_all()
}
