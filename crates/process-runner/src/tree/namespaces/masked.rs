//! Files that only root may read, in folders that every program may read. Programs of root get empty ones in their place.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::mount_calls::{NO_DEVICES, NO_PROGRAMS, NO_SET_ID, READ_ONLY, attach, clone_of, relative};
use crate::confine::{AccessGrant, Confinement};
use crate::tree::child::set_mount_attributes;

/// The folder whose files have modes that keep them from other users than root.
const CONFIGURATION: &str = "/etc";

/// The most entries that are looked at, and the deepest folder. Programs get an empty folder in the place of each folder
/// beyond.
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 8;

/// The bits of a mode that let other users read a file, and enter and list a folder.
const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o005;

/// The names of the empty file and folder while the root is built.
const EMPTY_FILE: &str = ".empty-file";
const EMPTY_FOLDER: &str = ".empty-folder";

/// A path that is replaced by an empty file or folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MaskedPath {
    path: PathBuf,
    is_folder: bool,
}

/// Returns the granted paths below [`CONFIGURATION`] that only root may read. A root of the confinement, and what may be
/// written, was meant to be reached.
pub(super) fn private_paths(confinement: &Confinement) -> Vec<MaskedPath> {
    let (meant, system): (Vec<&AccessGrant>, Vec<&AccessGrant>) =
        confinement.grants().iter().partition(|grant| grant.root || grant.write);
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    for grant in system.iter().filter(|grant| grant.path.starts_with(CONFIGURATION)) {
        collect(&grant.path, MAX_DEPTH, &meant, &mut left, &mut found);
    }
    found
}

#[allow(clippy::disallowed_methods, reason = "reads only names and modes of the system's configuration")]
fn collect(path: &Path, depth: usize, meant: &[&AccessGrant], left: &mut usize, found: &mut Vec<MaskedPath>) {
    // A mount over a path that leads to a grant would hide the grant too.
    if meant.iter().any(|grant| path.starts_with(&grant.path)) {
        return;
    }
    *left = left.saturating_sub(1);
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_file() && metadata.mode() & OTHERS_READ == 0 {
        found.push(MaskedPath { path: path.to_owned(), is_folder: false });
    }
    if !metadata.is_dir() {
        return;
    }
    let leads_to_grant = meant.iter().any(|grant| grant.path.starts_with(path));
    // A folder that nobody looks into could hold a file of root.
    let is_beyond = depth == 0 || *left == 0;
    if (is_beyond || metadata.mode() & OTHERS_ENTER != OTHERS_ENTER) && !leads_to_grant {
        found.push(MaskedPath { path: path.to_owned(), is_folder: true });
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), depth.saturating_sub(1), meant, left, found);
    }
}

/// Mounts empty files and folders over `masked` in `root`, which can still be written.
pub(super) fn mount(root: BorrowedFd<'_>, masked: &[MaskedPath]) -> io::Result<()> {
    if masked.is_empty() {
        return Ok(());
    }
    let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::EXCL;
    drop(openat(root, EMPTY_FILE, create, Mode::empty())?);
    mkdirat(root, EMPTY_FOLDER, Mode::empty())?;
    for MaskedPath { path, is_folder } in masked {
        let empty = clone_of(root, if *is_folder { EMPTY_FOLDER } else { EMPTY_FILE })?;
        set_mount_attributes(empty.as_fd(), READ_ONLY | NO_SET_ID | NO_DEVICES | NO_PROGRAMS, false)?;
        match attach(empty.as_fd(), root, relative(path)) {
            // It was removed since, or its folder is not mounted here.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => {}
            mounted => mounted?,
        }
    }
    unlinkat(root, EMPTY_FILE, AtFlags::empty())?;
    Ok(unlinkat(root, EMPTY_FOLDER, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests make the files of a system")]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_too_much_or_too_deep_to_be_looked_at_is_masked() {
        let system = tempfile::tempdir().unwrap();
        fs::set_permissions(system.path(), Permissions::from_mode(0o755)).unwrap();
        let private: Vec<PathBuf> =
            ["a/secret", "b/secret", "c/d/e/f/secret", "secret"].map(|path| system.path().join(path)).into();
        for path in &private {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
        for folder in ["a", "b", "c", "c/d", "c/d/e", "c/d/e/f"] {
            fs::set_permissions(system.path().join(folder), Permissions::from_mode(0o755)).unwrap();
        }
        for (entries, depth) in [(1000, 8), (1000, 1), (1000, 3), (2, 8), (4, 8), (6, 2)] {
            let mut found = Vec::new();
            collect(system.path(), depth, &[], &mut { entries }, &mut found);
            for path in &private {
                let is_masked = found.iter().any(|masked| path.starts_with(&masked.path));
                assert!(is_masked, "{entries} entries, {depth} folders: {path:?} in {found:?}");
            }
            let masks_all = found.iter().any(|masked| masked.path == system.path());
            assert!(!masks_all, "{entries} entries, {depth} folders: {found:?}");
        }
    }
}
