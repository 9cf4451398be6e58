//! Steps by which a root is built of mounts.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

// `MOUNT_ATTR_*`, `<linux/mount.h>`.
pub(super) const READ_ONLY: u64 = 0x1;
pub(super) const NO_SET_ID: u64 = 0x2;
pub(super) const NO_DEVICES: u64 = 0x4;
pub(super) const NO_PROGRAMS: u64 = 0x8;

/// Returns a mount of its own of what `path` in `folder` is.
pub(super) fn clone_of(folder: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(folder, path, flags)?)
}

/// Mounts `tree` on `path` of `root`, where something must be.
pub(super) fn attach(tree: BorrowedFd<'_>, root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(move_mount(tree, "", root, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Returns a path of the root without its first slash.
pub(super) fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}
