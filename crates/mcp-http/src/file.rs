//! Files that are replaced whole, or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Keeps others from changing a file until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "its descriptor holds the lock")] File);

/// Waits until nobody else changes the file at `path`. The lock is a file beside it, as the file itself is replaced.
pub(crate) fn lock(path: &Path) -> io::Result<Lock> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(PathBuf::from(name))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(Lock(file))
}

/// Puts `content` at `path`, 0600, so that a reader finds the old or the new content, also after a crash.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".tokens")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}
