//! One system call that resolves a whole path beneath a folder: `openat2(2)`, Linux 5.6.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::unix::{ALWAYS, Folder, REFERENCE, from_stat};
use crate::metadata::{Metadata, PathKind};

/// A rename or mount anywhere on the system can make the kernel unsure whether `..` stayed beneath;
/// it then says EAGAIN. Past this many tries the walk, which is never unsure, takes over.
const MAX_RETRIES: usize = 16;

/// Returns true if the kernel has `openat2` and permits it. Some container sandboxes answer EPERM.
pub(crate) fn is_available(folder: &Folder) -> bool {
    // Found out by a call, since the kernel's version does not tell what a sandbox forbids.
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| resolve(folder, Path::new("."), OFlags::PATH).is_ok())
}

/// An open file or folder that was reached without leaving the root.
pub(crate) struct OpenedBeneath {
    handle: OwnedFd,
    pub(crate) metadata: Metadata,
}

impl OpenedBeneath {
    pub(crate) fn into_file(self) -> std::fs::File {
        self.handle.into()
    }
}

/// Opens the folder at `path` beneath `root`.
pub(crate) fn folder(root: &Folder, path: &Path) -> Result<Folder, Errno> {
    resolve(root, path, REFERENCE | OFlags::DIRECTORY).map(Folder::from)
}

/// Opens whatever is at `path` beneath `root` for reference only (`O_PATH`), which reads nothing and wakes no driver.
pub(crate) fn reference(root: &Folder, path: &Path) -> Result<OpenedBeneath, Errno> {
    let handle = resolve(root, path, OFlags::PATH)?;
    let metadata = from_stat(&rustix::fs::fstat(&handle)?);
    Ok(OpenedBeneath { handle, metadata })
}

/// Opens the file at `path` beneath `root` to read it.
pub(crate) fn read(root: &Folder, path: &Path) -> Result<OpenedBeneath, Errno> {
    let handle = resolve(root, path, OFlags::RDONLY | ALWAYS)?;
    let metadata = from_stat(&rustix::fs::fstat(&handle)?);
    Ok(OpenedBeneath { handle, metadata })
}

/// Returns true if a folder lies in a file system of this machine whose cached names and pages are read without asking
/// anybody: not over a network, and not in another process (FUSE).
pub(crate) fn is_local(folder: &Folder) -> bool {
    // statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, bcachefs, ramfs.
    const LOCAL: [u32; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0xca45_1a4e, 0x8584_58f6];
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "32 bits on every architecture"
    )]
    rustix::fs::fstatfs(folder).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
}

/// Returns the metadata of what is at `path` beneath `root`, as far as the kernel knows it without waiting for a disk
/// (`RESOLVE_CACHED`, Linux 5.12) and without leaving the root's file system.
pub(crate) fn cached_metadata(root: &Folder, path: &Path) -> Result<Metadata, Errno> {
    Ok(from_stat(&rustix::fs::fstat(&resolve_cached(root, path, OFlags::PATH)?)?))
}

/// Returns true if the whole regular file at `path` beneath `root`, of at most `max_bytes` bytes, is in memory
/// (`RWF_NOWAIT`).
pub(crate) fn is_in_page_cache(root: &Folder, path: &Path, max_bytes: u64) -> bool {
    let is_cached = || {
        // A pipe or a device is not opened.
        let reference = resolve_cached(root, path, OFlags::PATH)?;
        let metadata = from_stat(&rustix::fs::fstat(&reference)?);
        if metadata.kind != PathKind::File || metadata.size > max_bytes {
            return Ok(false);
        }
        let file = resolve_cached(root, path, OFlags::RDONLY | ALWAYS)?;
        let (mut buffer, mut read) = ([0; 8192], 0);
        while read < metadata.size {
            let parts = &mut [IoSliceMut::new(&mut buffer)];
            match rustix::io::preadv2(&file, parts, read, ReadWriteFlags::NOWAIT)? {
                0 => break,
                length => read += length as u64,
            }
        }
        Ok::<_, Errno>(true)
    };
    is_cached().unwrap_or(false)
}

fn resolve_cached(root: &Folder, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV | ResolveFlags::CACHED;
    rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn resolve(root: &Folder, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    // An empty path would be `ENOENT` (path_resolution(7)).
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    // Magic links, such as `/proc/self/fd/3`, lead to an object without a path that could be judged.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut retries = 0;
    loop {
        match rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if retries < MAX_RETRIES => retries += 1,
            other => return other,
        }
    }
}
