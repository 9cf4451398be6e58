//! Access to the files of a repository, with errors that say what of it is refused.

use super::error::Error;
use crate::workspace::{self, ConfinedPath, Workspace};
use std::io::Read;
use std::path::Path;

/// The longest pointer file or list of alternates, in bytes. No real one comes near.
const MAX_POINTER_BYTES: u64 = 64 * 1024;

/// Returns `path` without links, if that is beneath a root.
pub(super) fn real_path(
    workspace: &Workspace,
    path: &Path,
    description: impl FnOnce() -> String,
) -> Result<ConfinedPath, Error> {
    let refused = |reason: &str| Error::UnsupportedLayout(format!("{} {reason}", description()));
    let Ok(path) = path.canonicalize() else {
        return Err(refused("of this repository cannot be found"));
    };
    workspace.locate(&path).map_err(|_| refused("of this repository leads outside the allowed roots"))
}

/// Returns [`Error::OutsideRoots`] for an error that says so.
pub(super) fn outside_roots(error: workspace::Error, path: &ConfinedPath) -> Error {
    if error.is_outside() { Error::OutsideRoots(format!("`{path}`")) } else { error.into() }
}

/// Returns the content of a pointer file, or nothing where there is none.
pub(super) fn read_small_file(path: &ConfinedPath) -> Result<Option<Vec<u8>>, Error> {
    read_up_to(path, MAX_POINTER_BYTES)
}

/// Returns the content of a file of at most `max_bytes`, or nothing where there is none.
pub(super) fn read_up_to(path: &ConfinedPath, max_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
    let (file, _) = match path.open_read() {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(outside_roots(error, path)),
    };
    let mut content = Vec::new();
    let read = file.take(max_bytes + 1).read_to_end(&mut content);
    if read.is_err() || content.len() as u64 > max_bytes {
        return Err(Error::UnsupportedLayout(format!("`{path}` cannot be read, or is too long")));
    }
    Ok(Some(content))
}
