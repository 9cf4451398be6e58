//! The files that decide what may be done, read only if nobody else can have written them.

use std::path::{Path, PathBuf};

pub use trusted_file::{Error, TrackedFile, TrackedText};

/// The largest file that is read. A larger one is a mistake.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file that decides what may be done; see [`trusted_file::read`].
///
/// # Errors
/// The file is not trusted, or it is larger than 4 MiB.
pub fn read(path: &Path) -> Result<String, Error> {
    trusted_file::read(path, MAX_BYTES)
}

/// Creates a tracker for a file that decides what may be done, which is read again when it changes.
pub fn tracked(path: PathBuf) -> TrackedFile {
    TrackedFile::new(path, MAX_BYTES)
}

/// Reads such a file so that it can be replaced; see [`trusted_file::read_to_repair`].
///
/// # Errors
/// The file belongs to another user, cannot be read, or is larger than 4 MiB.
pub fn read_to_repair(path: &Path) -> Result<(String, Option<Error>), Error> {
    trusted_file::read_to_repair(path, MAX_BYTES)
}

/// Returns the end of a message about a file whose mode may have been set back.
pub fn repaired(is_repaired: bool) -> &'static str {
    if is_repaired { "; its mode was set back" } else { "" }
}
