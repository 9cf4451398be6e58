//! Pipes and descriptors for a child, all numbered above 2.
//!
//! `posix_spawn` puts the child's ends on 0, 1 and 2 one after the other. An end that already had one of these
//! numbers would be overwritten by an earlier step.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// Returns the reading and the writing end of a new pipe, both closed on exec and numbered above 2.
// A server that has closed its own standard streams would otherwise get one of their numbers.
pub(crate) fn pipe_above_stdio() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    let (reader, writer) = {
        // macOS has no `pipe2`. A child that other code starts between the calls inherits both ends; ours do
        // not (`POSIX_SPAWN_CLOEXEC_DEFAULT`).
        let (reader, writer) = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::CLOEXEC)?;
        (reader, writer)
    };
    Ok((move_above_stdio(reader)?, move_above_stdio(writer)?))
}

fn move_above_stdio(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() > 2 { Ok(descriptor) } else { duplicate_above_stdio(descriptor.as_fd()) }
}

/// Returns a copy of `descriptor` that is closed on exec and numbered above 2.
pub(super) fn duplicate_above_stdio(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}

/// Returns `/dev/null`, opened once for this process.
// It is the most common standard input. Opened once, it costs no descriptor for each run.
pub(super) fn dev_null() -> io::Result<BorrowedFd<'static>> {
    static NULL: OnceLock<OwnedFd> = OnceLock::new();
    if NULL.get().is_none() {
        use rustix::fs::{Mode, OFlags, open};
        let null = move_above_stdio(open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)?;
        // It fails if another thread was first. Then that one's descriptor is used and this one is closed.
        let _ = NULL.set(null);
    }
    NULL.get().map(AsFd::as_fd).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// Returns the descriptors above 2 that are open now, for a libc that cannot close them itself.
pub(super) fn open_above_stdio() -> Vec<RawFd> {
    let Ok(folder) = rustix::fs::open(
        c"/proc/self/fd",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    ) else {
        return Vec::new();
    };
    // The descriptor of the folder itself is in the list and is closed before the child starts.
    let own = folder.as_raw_fd();
    let Ok(entries) = rustix::fs::Dir::new(folder) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
        .filter(|descriptor| *descriptor > 2 && *descriptor != own)
        .collect()
}
