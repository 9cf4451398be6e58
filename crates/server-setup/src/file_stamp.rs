//! The identity and state of a file, to see whether it changed.

use std::path::Path;

/// The properties of a file of which one differs after every change.
#[cfg(unix)]
pub type FileStamp = (u64, u64, i64, i64, u64);

/// Returns the stamp of the file at `path`, or `None` if it cannot be looked at, which counts as a change.
#[cfg(unix)]
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    // The time of the last change of any kind, which nobody can set back as they can that of the content.
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
}

/// The properties of a file of which one differs after every change.
#[cfg(not(unix))]
pub type FileStamp = (std::time::SystemTime, u64);

/// Returns the stamp of the file at `path`, or `None` if it cannot be looked at, which counts as a change.
#[cfg(not(unix))]
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
