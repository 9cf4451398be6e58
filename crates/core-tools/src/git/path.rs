//! Paths as git prints them.

use super::error::Error;
use std::borrow::Cow;
use std::path::Path;

/// Returns bytes that git printed as a path of this system.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere not every name is a path")]
pub(super) fn path_from_bytes(bytes: &[u8]) -> Result<Cow<'_, Path>, Error> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)).into())
}

/// Returns bytes that git printed as a path of this system.
#[cfg(not(unix))]
pub(super) fn path_from_bytes(bytes: &[u8]) -> Result<Cow<'_, Path>, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Path::new(text).into()),
        Err(_) => Err(Error::UnsupportedLayout("a file name that is no UTF-8".to_owned())),
    }
}
