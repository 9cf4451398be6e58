//! The files that decide what may be done, read only if nobody else can have written them.

use std::path::Path;

pub use trusted_file::Error;

/// The largest file that is read. A larger one is a mistake.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file that decides what may be done; see [`trusted_file::read`].
///
/// # Errors
/// The file is not trusted, or it is larger than 4 MiB.
pub fn read(path: &Path) -> Result<String, Error> {
    trusted_file::read(path, MAX_BYTES)
}
