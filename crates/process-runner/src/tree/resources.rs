//! Limits of the system that stop a start.

use std::io;

use rustix::io::Errno;

use crate::error::SystemResource;

/// Returns the resource that ran out if that is what `error` says.
pub(crate) fn exhausted_resource(error: &io::Error) -> Option<SystemResource> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(SystemResource::Descriptors),
        Errno::AGAIN => Some(SystemResource::Processes),
        Errno::NOMEM => Some(SystemResource::Memory),
        _ => None,
    }
}

/// Returns how many runs may go on at once where the caller does not say: 64 at most.
// A run needs 4 descriptors. An eighth of the limit in runs is then half of the limit in descriptors; the other
// half is for the rest of the program.
pub(crate) fn default_concurrency() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let descriptors = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (descriptors / 8).clamp(1, 64)
}
