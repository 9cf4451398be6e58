//! Folders by directory handle: `openat(2)` and its relatives, and `openat2(2)` on Linux.
//!
//! Promise: an operation acts on the folder that was opened, whatever happens to its path meanwhile, and
//! never goes through a link that it was not asked to follow.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, AtFlags, Dir, FileType, Gid, Mode, OFlags, RawMode, Stat, Uid};

use super::{Entry, Open};
use crate::workspace::limit::Limited;
use crate::workspace::metadata::{Kind, Metadata, Stamp};

/// Opens for reference only: no permission on the object is needed and no driver is woken.
#[cfg(target_os = "linux")]
const REFERENCE: OFlags = OFlags::PATH;
/// Elsewhere a folder handle must be readable.
#[cfg(not(target_os = "linux"))]
const REFERENCE: OFlags = OFlags::RDONLY;

/// What every open carries: never inherited, never a controlling terminal, never a wait for a peer.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

/// A folder held open by handle.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    /// Where it lies, if that matters to somebody.
    limited: Option<Box<Limited>>,
}

impl Folder {
    /// Opens `path`, following links: only for what the operator named.
    pub(in crate::workspace) fn open_trusted(path: &Path) -> io::Result<Self> {
        let flags = REFERENCE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self::from(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Another handle to the same folder.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, limited: self.limited.clone() })
    }

    /// Another handle to the same folder, under a limit that holds for everything reached through it.
    pub(in crate::workspace) fn limited(&self, limited: Limited) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, limited: Some(Box::new(limited)) })
    }

    /// The limit it was reached under.
    pub(in crate::workspace) fn limit(&self) -> Option<&Limited> {
        self.limited.as_deref()
    }

    /// The folder `name` in this one; a link is refused with `NotADirectory`.
    ///
    /// # Errors
    /// What `openat(2)` says.
    pub fn child(&self, name: &OsStr) -> io::Result<Self> {
        let flags = REFERENCE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => {
                let limited = self.limited.as_ref().map(|limited| Box::new(limited.child(name)));
                Ok(Self { handle, limited })
            }
            // Which of the two a link gives differs between systems.
            Err(rustix::io::Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the link `name` leads, or nothing if it is no link.
    pub(in crate::workspace) fn read_link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        match rustix::fs::readlinkat(&self.handle, name, Vec::new()) {
            Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
            Err(rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What `name` is; a link is described itself.
    ///
    /// # Errors
    /// What `fstatat(2)` says.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_looked_at(name))?;
        Ok(from_stat(&rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// What this folder itself is.
    pub(in crate::workspace) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::fstat(&self.handle)?))
    }

    /// Opens the file `name`; a link gives `ELOOP`.
    pub(in crate::workspace) fn open(&self, name: &OsStr, how: Open) -> io::Result<File> {
        if let (Open::Read, Some(limited)) = (how, &self.limited) {
            limited.check_read(name)?;
        }
        let (flags, mode) = match how {
            Open::Read => (OFlags::RDONLY, 0),
            Open::Append => (OFlags::WRONLY | OFlags::APPEND, 0),
            Open::New { private } => {
                (OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, if private { 0o600 } else { 0o666 })
            }
        };
        let flags = flags | OFlags::NOFOLLOW | ALWAYS;
        Ok(File::from(rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Opens the regular file `name` to read; a link, pipe or device is refused before it is opened.
    ///
    /// # Errors
    /// `InvalidInput` for what is no regular file, and what `openat(2)` says.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        if self.metadata(name)?.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.open(name, Open::Read)
    }

    /// Opens `name`, which a listing of this folder said is a regular file, to read: by one system call. A link
    /// is refused, and what is something else by now opens without waiting.
    ///
    /// # Errors
    /// What `openat(2)` says.
    pub fn open_listed(&self, name: &OsStr) -> io::Result<File> {
        self.open(name, Open::Read)
    }

    /// Whether the call may read the file `name`. What its permissions say, opening finds out.
    #[cfg(feature = "sqlite")]
    pub(in crate::workspace) fn check_readable(&self, name: &OsStr) -> io::Result<()> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_read(name))
    }

    /// Whether this process may write to the file `name`.
    pub(in crate::workspace) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::accessat(&self.handle, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    pub(in crate::workspace) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    pub(in crate::workspace) fn create_child(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777))?)
    }

    /// Renames `name` to `new_name` in `folder`, replacing what is there.
    pub(in crate::workspace) fn rename(
        &self,
        name: &OsStr,
        folder: &Self,
        new_name: &OsStr,
    ) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, name, &folder.handle, new_name)?)
    }

    /// Renames `name` to `new_name` in `folder`, or fails with `AlreadyExists`.
    pub(in crate::workspace) fn rename_new(
        &self,
        name: &OsStr,
        folder: &Self,
        new_name: &OsStr,
    ) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            use rustix::fs::RenameFlags;
            use rustix::io::Errno;
            match rustix::fs::renameat_with(
                &self.handle,
                name,
                &folder.handle,
                new_name,
                RenameFlags::NOREPLACE,
            ) {
                // The file system (or an old kernel) does not know the flag.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                other => return Ok(other?),
            }
        }
        // A hard link never replaces anything. Folders have none; there a check must do, and since a
        // folder can only replace an empty folder, nothing is lost in between.
        match rustix::fs::linkat(&self.handle, name, &folder.handle, new_name, AtFlags::empty()) {
            Ok(()) => self.remove_file(name),
            Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => match folder.metadata(new_name) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.rename(name, folder, new_name),
                Err(error) => Err(error),
            },
        }
    }

    /// Whether both are the same folder.
    pub(in crate::workspace) fn is_same(&self, other: &Self) -> bool {
        match (self.own_metadata(), other.own_metadata()) {
            (Ok(a), Ok(b)) => a.stamp().same_file(b.stamp()),
            _ => false,
        }
    }

    /// The names in this folder, in no order, without `.` and `..`.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn entries(&self) -> io::Result<Entries<'_>> {
        self.limited.as_ref().map_or(Ok(()), |limited| limited.check_listed())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        Ok(Entries { folder: self, dir: Dir::new(handle)? })
    }

    /// The handle itself, for a child process's working directory.
    pub fn into_handle(self) -> OwnedFd {
        self.handle
    }
}

impl From<OwnedFd> for Folder {
    fn from(handle: OwnedFd) -> Self {
        Self { handle, limited: None }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The names in a folder; see [`Folder::entries`].
pub struct Entries<'folder> {
    folder: &'folder Folder,
    dir: Dir,
}

impl Iterator for Entries<'_> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.dir.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsStr::from_bytes(name).to_owned();
            if self.folder.limit().is_some_and(|limited| limited.check_read(&name).is_err()) {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => match self.folder.metadata(&name) {
                    Ok(metadata) => metadata.kind,
                    Err(_) => Kind::Other,
                },
                known => kind_of(known),
            };
            return Some(Ok(Entry { name, kind }));
        }
    }
}

/// What an open file is.
pub(in crate::workspace) fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_stat(&rustix::fs::fstat(file)?))
}

/// Gives `file` the owner, where this process may, and then the permissions of `model`.
pub(in crate::workspace) fn copy_permissions(file: &File, model: &Metadata) -> io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    let (user, group) = model.owner;
    if (own.st_uid, own.st_gid) != (user, group) {
        // Not being allowed to is no reason to refuse the write: the file then belongs to its writer.
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    }
    #[allow(clippy::cast_possible_truncation, reason = "permission bits fit in every platform's mode type")]
    let mode = Mode::from_raw_mode(model.mode as RawMode);
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// The files that `path` names, once through links and once as the link itself.
pub(in crate::workspace) fn identities(path: &Path) -> impl Iterator<Item = Stamp> {
    let stats = [rustix::fs::stat(path), rustix::fs::lstat(path)];
    stats.into_iter().flatten().map(|stat| from_stat(&stat).stamp)
}

fn kind_of(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
        FileType::Unknown => Kind::Other,
    }
}

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    reason = "the fields of `struct stat` have other widths on other platforms; none is negative but a time"
)]
fn from_stat(stat: &Stat) -> Metadata {
    let (seconds, nanoseconds) = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let modified = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) }
        .and_then(|time| time.checked_add(Duration::from_nanos(nanoseconds as u64)));
    Metadata {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode as RawMode)),
        size: stat.st_size as u64,
        mode: stat.st_mode as u32 & 0o7777,
        modified,
        links: stat.st_nlink as u64,
        stamp: Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (seconds, nanoseconds),
        },
        owner: (stat.st_uid as u32, stat.st_gid as u32),
    }
}

/// One system call that resolves a whole path beneath a folder: `openat2(2)`, Linux 5.6.
#[cfg(target_os = "linux")]
pub(in crate::workspace) mod kernel {
    use std::io::IoSliceMut;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::OnceLock;

    use rustix::fs::{Mode, OFlags, ResolveFlags};
    use rustix::io::{Errno, ReadWriteFlags};

    use super::{ALWAYS, Folder, REFERENCE, from_stat};
    use crate::workspace::metadata::{Kind, Metadata};

    /// A rename or mount anywhere on the system can make the kernel unsure whether `..` stayed beneath;
    /// it then says EAGAIN. Past this many tries the walk, which is never unsure, takes over.
    const TRIES: usize = 16;

    /// Whether the kernel has `openat2` and lets us call it; some container sandboxes answer EPERM.
    pub(in crate::workspace) fn available(folder: &Folder) -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| resolve(folder, Path::new("."), OFlags::PATH).is_ok())
    }

    /// An open file or folder that was reached without leaving the root.
    pub(in crate::workspace) struct Reached {
        handle: OwnedFd,
        pub(in crate::workspace) metadata: Metadata,
    }

    impl Reached {
        pub(in crate::workspace) fn into_file(self) -> std::fs::File {
            self.handle.into()
        }
    }

    /// The folder at `path` beneath `root`.
    pub(in crate::workspace) fn folder(root: &Folder, path: &Path) -> Result<Folder, Errno> {
        resolve(root, path, REFERENCE | OFlags::DIRECTORY).map(Folder::from)
    }

    /// Whatever is at `path` beneath `root`, without opening it in earnest.
    pub(in crate::workspace) fn reference(root: &Folder, path: &Path) -> Result<Reached, Errno> {
        let handle = resolve(root, path, OFlags::PATH)?;
        let metadata = from_stat(&rustix::fs::fstat(&handle)?);
        Ok(Reached { handle, metadata })
    }

    /// The file at `path` beneath `root`, opened to read.
    pub(in crate::workspace) fn read(root: &Folder, path: &Path) -> Result<Reached, Errno> {
        let handle = resolve(root, path, OFlags::RDONLY | ALWAYS)?;
        let metadata = from_stat(&rustix::fs::fstat(&handle)?);
        Ok(Reached { handle, metadata })
    }

    /// Whether a folder lies in a file system of this machine whose cached names and pages are read without asking
    /// anybody: not over a network, and not in another process (FUSE).
    pub(in crate::workspace) fn is_local(folder: &Folder) -> bool {
        // statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, bcachefs, ramfs.
        const LOCAL: [u32; 8] = [
            0xef53,
            0x5846_5342,
            0x9123_683e,
            0x0102_1994,
            0x794c_7630,
            0xf2f5_2010,
            0xca45_1a4e,
            0x8584_58f6,
        ];
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "32 bits on every architecture"
        )]
        rustix::fs::fstatfs(&folder.handle).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
    }

    /// Whatever is at `path` beneath `root`, as far as the kernel knows it without waiting for a disk (`RESOLVE_CACHED`,
    /// Linux 5.12) and without leaving the root's file system.
    pub(in crate::workspace) fn known(root: &Folder, path: &Path) -> Result<Metadata, Errno> {
        Ok(from_stat(&rustix::fs::fstat(&cached(root, path, OFlags::PATH)?)?))
    }

    /// Whether the whole regular file at `path` beneath `root`, of at most `most` bytes, is in memory
    /// (`RWF_NOWAIT`).
    pub(in crate::workspace) fn holds(root: &Folder, path: &Path, most: u64) -> bool {
        let held = || {
            // A pipe or a device is not opened.
            let reference = cached(root, path, OFlags::PATH)?;
            let metadata = from_stat(&rustix::fs::fstat(&reference)?);
            if metadata.kind != Kind::File || metadata.size > most {
                return Ok(false);
            }
            let file = cached(root, path, OFlags::RDONLY | ALWAYS)?;
            let (mut buffer, mut read) = ([0; 8192], 0);
            while read < metadata.size {
                let parts = &mut [IoSliceMut::new(&mut buffer)];
                match rustix::io::preadv2(&file, parts, read, ReadWriteFlags::NOWAIT)? {
                    0 => break,
                    more => read += more as u64,
                }
            }
            Ok::<_, Errno>(true)
        };
        held().unwrap_or(false)
    }

    fn cached(root: &Folder, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV
            | ResolveFlags::CACHED;
        rustix::fs::openat2(&root.handle, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    fn resolve(root: &Folder, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&root.handle, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }
}
