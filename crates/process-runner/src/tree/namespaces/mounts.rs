//! The file tree of a mount namespace: what is granted, and nothing else.
//!
//! The new root is an empty file system in memory. Each grant is mounted there under its own path, and can be written
//! only if that was granted. `/tmp` and `/dev/shm` are file systems of their own, and `/proc` shows only the processes
//! of the new PID namespace.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, fstat, mkdirat, openat, openat2, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, geteuid, pivot_root};

use super::masked::{self, MaskedPath};
use super::mount_calls::{NO_DEVICES, NO_PROGRAMS, NO_SET_ID, READ_ONLY, attach, clone_of, relative};
use crate::confine::Confinement;
use crate::tree::child::set_mount_attributes;

/// The folder over which the new root is mounted while it is built. Nothing beneath it is granted but itself, and a
/// new `/proc` takes its place in the end.
const STAGING: &str = "/proc";
const SHARED_MEMORY: &str = "/dev/shm";
const TERMINALS: &str = "/dev/pts";
const TEMPORARY: &str = "/tmp";

/// Links in `/dev` by which programs find their own descriptors.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// A path that is mounted in the new root.
struct BindMount<'a> {
    path: &'a Path,
    writable: bool,
}

/// The contents of a new root.
pub(super) struct MountPlan<'a> {
    binds: Vec<BindMount<'a>>,
    links: Vec<(PathBuf, PathBuf)>,
    /// Files and folders that are replaced by empty ones.
    masked: Vec<MaskedPath>,
    private_temporary: bool,
    writable_proc: bool,
    memory_bytes: u64,
}

impl<'a> MountPlan<'a> {
    /// Returns the plan for `confinement`. It reads the names in `/`, where most systems have links to `/usr`.
    /// The file systems in memory hold `memory_bytes` together.
    pub(super) fn new(confinement: &'a Confinement, writable_proc: bool, memory_bytes: u64) -> Self {
        let grants = confinement.grants().iter();
        let mut binds: Vec<_> = grants
            .filter(|grant| grant.path != Path::new("/proc") && grant.path != Path::new(SHARED_MEMORY))
            .map(|grant| BindMount { path: &grant.path, writable: grant.write })
            .collect();
        // A folder before what lies in it.
        binds.sort_by(|one, other| one.path.cmp(other.path));
        let mut links = root_links();
        links.extend(DEVICE_LINKS.map(|(link, target)| (link.into(), target.into())));
        links.extend(confinement.links().iter().cloned());
        let private_temporary =
            confinement.has_private_temp() && binds.iter().all(|bind| bind.path != Path::new(TEMPORARY));
        // Root's programs could read what the mode keeps from all others.
        let masked = if geteuid().is_root() { masked::private_paths(confinement) } else { Vec::new() };
        Self { binds, links, masked, private_temporary, writable_proc, memory_bytes }
    }

    /// Builds the tree and makes it the root of the calling process, which is alone in new namespaces for mounts and
    /// processes.
    pub(super) fn enter(&self) -> io::Result<()> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        // A program cannot write the root itself.
        let root = memory_file_system("0755", MAX_ROOT_BYTES)?;
        attach(root.as_fd(), CWD, Path::new(STAGING))?;
        let root_fd = root.as_fd();
        self.mount_memory(root_fd)?;
        let terminals = BindMount { path: Path::new(TERMINALS), writable: false };
        for bind in self.binds.iter().chain([&terminals]) {
            bind.mount(root_fd)?;
        }
        masked::mount(root_fd, &self.masked)?;
        let proc = process_file_system(self.writable_proc)?;
        mount_at(root_fd, Path::new("/proc"), proc.as_fd())?;
        for (link, target) in &self.links {
            make_link(root_fd, link, target)?;
        }
        fchdir(&root)?;
        // The old root is put over the new one, and then taken away.
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir("/")?;
        set_mount_attributes(root_fd, READ_ONLY | NO_SET_ID | NO_DEVICES, false)
    }

    /// Mounts `/dev/shm` and `/tmp`: two folders of one file system in memory, so that one limit holds for both.
    fn mount_memory(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        let both = memory_file_system("0755", self.memory_bytes)?;
        // Beneath the folder of its own that is mounted over it next, so that no program sees it.
        mount_at(root, Path::new(SHARED_MEMORY), both.as_fd())?;
        let places = [("tmp", TEMPORARY), ("shm", SHARED_MEMORY)];
        for (name, place) in places.into_iter().filter(|(name, _)| *name == "shm" || self.private_temporary) {
            mkdirat(&both, name, Mode::from_raw_mode(0o1777))?;
            // The umask has a say in the mode that a folder is made with.
            chmodat(&both, name, Mode::from_raw_mode(0o1777), AtFlags::empty())?;
            mount_at(root, Path::new(place), clone_of(both.as_fd(), name)?.as_fd())?;
        }
        Ok(())
    }
}

impl BindMount<'_> {
    /// Mounts the path in `root`. A path that does not exist, or that has become a link, is left out.
    fn mount(&self, root: BorrowedFd<'_>) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(object) = openat2(CWD, self.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
            return Ok(());
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(&object, "", flags)?;
        let mut attributes = NO_SET_ID;
        if !self.path.starts_with("/dev") {
            attributes |= NO_DEVICES;
        }
        // A device is used by reading and writing it; read-only are its mode and its owner.
        if !self.writable || self.path.starts_with("/dev") {
            attributes |= READ_ONLY;
        }
        set_mount_attributes(tree.as_fd(), attributes, true)?;
        if FileType::from_raw_mode(fstat(&object)?.st_mode) == FileType::Directory {
            return mount_at(root, self.path, tree.as_fd());
        }
        if let Some(folder) = self.path.parent() {
            make_folders(root, folder)?;
        }
        let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::EXCL;
        match openat(root, relative(self.path), create, Mode::from_raw_mode(0o444)) {
            // It may lie in a folder that is mounted already, which may be read-only.
            Ok(_) | Err(Errno::EXIST | Errno::ROFS) => {}
            Err(error) => return Err(error.into()),
        }
        attach(tree.as_fd(), root, relative(self.path))
    }
}

/// Mounts `tree` as the folder `path` of `root`.
fn mount_at(root: BorrowedFd<'_>, path: &Path, tree: BorrowedFd<'_>) -> io::Result<()> {
    make_folders(root, path)?;
    attach(tree, root, relative(path))
}

/// Makes the folder and those that it lies in, as far as they are missing.
fn make_folders(root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let mut made = PathBuf::new();
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        made.push(name);
        match mkdirat(root, &made, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes a link, unless something is there.
fn make_link(root: BorrowedFd<'_>, link: &Path, target: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent() {
        make_folders(root, folder)?;
    }
    match symlinkat(target, root, relative(link)) {
        // A link in a mounted folder is there, or was removed since.
        Ok(()) | Err(Errno::EXIST | Errno::ROFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The most bytes in the new root, which only has the folders on which other things are mounted.
const MAX_ROOT_BYTES: u64 = 16 << 20;
/// The most bytes in all file systems in memory of one caller, whatever the machine has.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// The most files in one. Each costs the kernel about a kilobyte.
const MAX_MEMORY_FILES: &str = "200000";

/// Returns the most bytes in all file systems in memory of one caller: a quarter of the machine's, at most
/// [`MAX_MEMORY_BYTES`]. Without a limit of its own, the kernel gives each half of the memory.
pub(super) fn memory_budget() -> u64 {
    let info = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
    let total = u64::from(info.totalram) * u64::from(info.mem_unit);
    (total / 4).min(MAX_MEMORY_BYTES)
}

fn memory_file_system(mode: &str, max_bytes: u64) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", mode)?;
    fsconfig_set_string(context.as_fd(), "size", max_bytes.to_string())?;
    fsconfig_set_string(context.as_fd(), "nr_inodes", MAX_MEMORY_FILES)?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn process_file_system(writable: bool) -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let more = if writable { NO_PROGRAMS } else { NO_PROGRAMS | READ_ONLY };
    set_mount_attributes(mount.as_fd(), more, false)?;
    Ok(mount)
}

/// Returns the links in `/` with their targets.
#[allow(clippy::disallowed_methods, reason = "reads only the names in the system's root")]
fn root_links() -> Vec<(PathBuf, PathBuf)> {
    let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| Some((link.path(), std::fs::read_link(link.path()).ok()?))).collect()
}

/// Returns the folder of a handle by its path in this process's own namespace.
pub(super) fn path_of(handle: BorrowedFd<'_>) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
}
