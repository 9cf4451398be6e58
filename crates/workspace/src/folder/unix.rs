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

use super::entry::DirEntry;
use super::open_mode::OpenMode;
use crate::access_limit::LimitedLocation;
use crate::metadata::{FileRevision, Metadata, PathKind};

/// Opens for reference only: no permission on the object is needed and no driver is woken.
#[cfg(target_os = "linux")]
pub(super) const REFERENCE: OFlags = OFlags::PATH;
/// Elsewhere a folder handle must be readable.
#[cfg(not(target_os = "linux"))]
pub(super) const REFERENCE: OFlags = OFlags::RDONLY;

/// The flags of every open: never inherited, never a controlling terminal, never a wait for a peer.
pub(super) const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

/// A folder held open by handle.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    /// The location of the folder and the limit it was reached under, for a call that has one.
    location: Option<Box<LimitedLocation>>,
}

impl Folder {
    /// Opens `path`, following links: only for what the operator named.
    pub(crate) fn open_trusted(path: &Path) -> io::Result<Self> {
        let flags = REFERENCE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self::from(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Returns another handle to the same folder.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, location: self.location.clone() })
    }

    /// Returns another handle to the same folder, under a limit that holds for everything reached through it.
    pub(crate) fn with_limit(&self, location: LimitedLocation) -> io::Result<Self> {
        Ok(Self { handle: self.handle.try_clone()?, location: Some(Box::new(location)) })
    }

    /// Returns the location of the folder, if it was reached under a limit.
    pub(crate) fn location(&self) -> Option<&LimitedLocation> {
        self.location.as_deref()
    }

    /// Opens the folder `name` in this one; a link is refused with `NotADirectory`.
    ///
    /// # Errors
    /// What `openat(2)` says.
    pub fn child(&self, name: &OsStr) -> io::Result<Self> {
        let flags = REFERENCE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => {
                let location = self.location.as_ref().map(|location| Box::new(location.child(name)));
                Ok(Self { handle, location })
            }
            // Linux reports a link as ENOTDIR, other systems as ELOOP.
            Err(rustix::io::Errno::LOOP) => Err(io::ErrorKind::NotADirectory.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the target of the link `name`, or `None` if it is no link.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        match rustix::fs::readlinkat(&self.handle, name, Vec::new()) {
            Ok(target) => Ok(Some(PathBuf::from(OsString::from_vec(target.into_bytes())))),
            Err(rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the metadata of `name`. A link is described itself.
    ///
    /// # Errors
    /// What `fstatat(2)` says.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_metadata(name))?;
        self.unjudged_metadata(name)
    }

    /// Returns the metadata of `name` whatever the limit of the call says: for decisions of this crate, never for a caller.
    pub(crate) fn unjudged_metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns the metadata of this folder itself.
    pub(crate) fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(from_stat(&rustix::fs::fstat(&self.handle)?))
    }

    /// Opens the file `name`; a link gives `ELOOP`.
    pub(crate) fn open(&self, name: &OsStr, mode: OpenMode) -> io::Result<File> {
        if let (OpenMode::Read, Some(location)) = (mode, &self.location) {
            location.check_read(name)?;
        }
        let (flags, permissions) = match mode {
            OpenMode::Read => (OFlags::RDONLY, 0),
            OpenMode::Append => (OFlags::WRONLY | OFlags::APPEND, 0),
            // With `EXCL` a link of that name is refused too, even one that leads nowhere (open(2)).
            OpenMode::New { private } => {
                (OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, if private { 0o600 } else { 0o666 })
            }
        };
        let flags = flags | OFlags::NOFOLLOW | ALWAYS;
        Ok(File::from(rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(permissions))?))
    }

    /// Opens the regular file `name` to read; a link, pipe or device is refused before it is opened.
    ///
    /// # Errors
    /// `InvalidInput` for what is no regular file, and what `openat(2)` says.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        if self.metadata(name)?.kind != PathKind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.open(name, OpenMode::Read)
    }

    /// Opens `name`, which a listing of this folder said is a regular file, to read: by one system call. A link is
    /// refused. If the name stands for something else by now, opening it does not wait.
    ///
    /// # Errors
    /// What `openat(2)` says.
    pub fn open_listed(&self, name: &OsStr) -> io::Result<File> {
        self.open(name, OpenMode::Read)
    }

    /// Refuses to read the file `name` if the limit of the call excludes it. Its permissions are judged when it is
    /// opened.
    pub(crate) fn check_readable(&self, name: &OsStr) -> io::Result<()> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_read(name))
    }

    /// Fails if this process may not write to the file `name`.
    pub(crate) fn check_writable(&self, name: &OsStr) -> io::Result<()> {
        // By the effective user, as the write itself will be judged.
        Ok(rustix::fs::accessat(&self.handle, name, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_empty_child(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn create_child(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777))?)
    }

    /// Renames `name` to `new_name` in `folder`, replacing what is there.
    pub(crate) fn rename(&self, name: &OsStr, folder: &Self, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, name, &folder.handle, new_name)?)
    }

    /// Renames `name` to `new_name` in `folder`, or fails with `AlreadyExists`.
    pub(crate) fn rename_new(&self, name: &OsStr, folder: &Self, new_name: &OsStr) -> io::Result<()> {
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

    /// Returns true if both are the same folder.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self.own_metadata(), other.own_metadata()) {
            (Ok(a), Ok(b)) => a.stamp().same_file(b.stamp()),
            _ => false,
        }
    }

    /// Lists the names in this folder, in no order, without `.` and `..`.
    ///
    /// # Errors
    /// The folder may not be read.
    pub fn entries(&self) -> io::Result<FolderEntries<'_>> {
        self.location.as_ref().map_or(Ok(()), |location| location.check_list())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Opened anew: a handle with `O_PATH` cannot be listed, and copies of one handle would share the position.
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        Ok(FolderEntries { folder: self, dir: Dir::new(handle)? })
    }

    /// Returns the handle itself, for a child process's working directory.
    pub(crate) fn into_handle(self) -> OwnedFd {
        self.handle
    }
}

impl From<OwnedFd> for Folder {
    fn from(handle: OwnedFd) -> Self {
        Self { handle, location: None }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The names in a folder; see [`Folder::entries`].
#[derive(Debug)]
pub struct FolderEntries<'folder> {
    folder: &'folder Folder,
    dir: Dir,
}

impl Iterator for FolderEntries<'_> {
    type Item = io::Result<DirEntry>;

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
            // A name that the call may not read is left out, as if it did not exist.
            if self.folder.location().is_some_and(|location| location.check_read(&name).is_err()) {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems leave the type out of their listings.
                FileType::Unknown => match self.folder.metadata(&name) {
                    Ok(metadata) => metadata.kind,
                    Err(_) => PathKind::Other,
                },
                known => kind_of(known),
            };
            return Some(Ok(DirEntry { name, kind }));
        }
    }
}

/// Returns the metadata of an open file.
pub(crate) fn file_metadata(file: &File) -> io::Result<Metadata> {
    Ok(from_stat(&rustix::fs::fstat(file)?))
}

/// Gives `file` the owner, where this process may, and then the permissions of `model`.
pub(crate) fn copy_permissions(file: &File, model: &Metadata) -> io::Result<()> {
    let current = rustix::fs::fstat(file)?;
    let (user, group) = model.owner;
    if (current.st_uid, current.st_gid) != (user, group) {
        // Not being allowed to is no reason to refuse the write: the file then belongs to its writer.
        let _ = rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    }
    // After the owner, since chown(2) clears the set-user-id and set-group-id bits.
    #[allow(clippy::cast_possible_truncation, reason = "permission bits fit in every platform's mode type")]
    let mode = Mode::from_raw_mode(model.mode as RawMode);
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// Returns the stamps of the files that `path` names, once through links and once of the link itself.
pub(crate) fn identities(path: &Path) -> impl Iterator<Item = FileRevision> {
    let stats = [rustix::fs::stat(path), rustix::fs::lstat(path)];
    stats.into_iter().flatten().map(|stat| from_stat(&stat).stamp)
}

fn kind_of(file_type: FileType) -> PathKind {
    match file_type {
        FileType::RegularFile => PathKind::File,
        FileType::Directory => PathKind::Directory,
        FileType::Symlink => PathKind::Symlink,
        FileType::Fifo => PathKind::Fifo,
        FileType::Socket => PathKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => PathKind::Device,
        FileType::Unknown => PathKind::Other,
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
pub(super) fn from_stat(stat: &Stat) -> Metadata {
    let (seconds, nanoseconds) = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    // A file may be older than 1970.
    let modified = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) }
        .and_then(|time| time.checked_add(Duration::from_nanos(nanoseconds as u64)));
    Metadata {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode as RawMode)),
        size: stat.st_size as u64,
        mode: stat.st_mode as u32 & 0o7777,
        modified,
        links: stat.st_nlink as u64,
        stamp: FileRevision {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (seconds, nanoseconds),
        },
        owner: (stat.st_uid as u32, stat.st_gid as u32),
    }
}
