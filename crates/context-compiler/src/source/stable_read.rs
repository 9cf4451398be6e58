//! Reading a file that may change meanwhile.

use super::tree::{SourceFileContent, SourceFileState, SourceReadError};
use std::fs::File;
use std::io::Read;

/// Attempts to read a file that changes while it is read.
const MAX_READ_ATTEMPTS: usize = 3;

/// Reads a file as [`SourceTree::read`](super::SourceTree::read) does: whole or not at all. If the file changes during
/// the read, the file is read again.
///
/// `open` opens the file anew and returns its state, and `state_of` returns the state of the open file.
///
/// # Errors
/// Errors of `open` and `state_of`; the file has more than `max_bytes` bytes, or cannot be read.
pub fn read_stable(
    max_bytes: u64,
    mut open: impl FnMut() -> Result<(File, SourceFileState), SourceReadError>,
    state_of: impl Fn(&File) -> Result<SourceFileState, SourceReadError>,
) -> Result<SourceFileContent, SourceReadError> {
    let mut attempt = 1;
    loop {
        let (mut file, before) = open()?;
        if before.size > max_bytes {
            return Err(SourceReadError::TooLarge { bytes: before.size });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or_default());
        file.by_ref()
            .take(max_bytes.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(SourceReadError::Io)?;
        let after = state_of(&file)?;
        if bytes.len() as u64 > max_bytes {
            return Err(SourceReadError::TooLarge { bytes: after.size.max(bytes.len() as u64) });
        }
        let unstable = before != after || bytes.len() as u64 != after.size;
        if !unstable || attempt == MAX_READ_ATTEMPTS {
            return Ok(SourceFileContent { bytes, state: after, unstable });
        }
        attempt += 1;
    }
}
