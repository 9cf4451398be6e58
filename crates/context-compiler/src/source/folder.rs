//! A [`SourceTree`] over a folder that is held open.

use super::name::printable_name;
use super::stable_read::read_stable;
use super::tree::{
    SourceEntryKind, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

/// Links followed on one path: as many as Linux follows before it returns ELOOP.
const MAX_LINKS: usize = 40;

/// Attempts of `openat2(2)`, which returns EAGAIN when something on the path is renamed at the same time.
const MAX_OPEN_ATTEMPTS: usize = 16;

/// The files beneath one folder on disk, which is opened once; every file is opened relative to that handle.
///
/// On Linux 5.6 and later the kernel resolves paths (`openat2(2)` with `RESOLVE_BENEATH` and
/// `RESOLVE_NO_MAGICLINKS`): links that stay beneath the root are followed, links that leave it are
/// [`SourceReadError::Outside`]. On other systems a path is opened component by component and no link is followed.
#[derive(Debug)]
pub struct FolderTree {
    handle: OwnedFd,
}

impl FolderTree {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// `path` is not a folder, or cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: fs::open(path.as_ref(), flags, Mode::empty())? })
    }

    /// Opens `path` beneath the root. It never blocks, whatever kind of file is there.
    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, SourceReadError> {
        if path.contains('\0') || path.starts_with('/') {
            return Err(SourceReadError::Outside);
        }
        let path = if path.is_empty() { "." } else { path };
        // O_PATH refers to a file without opening it, so it cannot block, and openat2 rejects other flags beside it.
        #[cfg(target_os = "linux")]
        let is_reference = flags.contains(OFlags::PATH);
        #[cfg(not(target_os = "linux"))]
        let is_reference = false;
        let nonblocking = if is_reference { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
        let flags = flags | nonblocking | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            let resolve = fs::ResolveFlags::BENEATH | fs::ResolveFlags::NO_MAGICLINKS;
            for _ in 0..MAX_OPEN_ATTEMPTS {
                match fs::openat2(&self.handle, path, flags, Mode::empty(), resolve) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    // A kernel before 5.6, or a container whose seccomp filter forbids the call.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    other => return other.map_err(read_error),
                }
            }
        }
        self.open_by_components(path, flags)
    }

    /// Opens `path` component by component and follows no link.
    fn open_by_components(&self, path: &str, flags: OFlags) -> Result<OwnedFd, SourceReadError> {
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => parts.push(name),
                Component::CurDir => {}
                _ => return Err(SourceReadError::Outside),
            }
        }
        let last = parts.pop().unwrap_or(OsStr::new("."));
        let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder: Option<OwnedFd> = None;
        for part in parts {
            let parent = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
            folder = Some(fs::openat(parent, part, folder_flags, Mode::empty()).map_err(read_error)?);
        }
        let parent = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
        fs::openat(parent, last, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(read_error)
    }

    /// Opens the regular file at `path`.
    ///
    /// On Linux its kind is checked through an `O_PATH` reference first, because opening a device can have an effect.
    fn open_file(&self, path: &str, flags: OFlags) -> Result<(OwnedFd, Stat), SourceReadError> {
        #[cfg(target_os = "linux")]
        check_kind(&fs::fstat(self.open_beneath(path, OFlags::PATH)?).map_err(read_error)?)?;
        // The path may lead to another file by now, so the kind of this one is checked as well.
        let file = self.open_beneath(path, flags)?;
        let stat = fs::fstat(&file).map_err(read_error)?;
        check_kind(&stat)?;
        Ok((file, stat))
    }
}

impl SourceTree for FolderTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
        let open = || {
            let (file, stat) = self.open_file(path, OFlags::RDONLY)?;
            Ok((File::from(file), state_of(&stat)))
        };
        read_stable(max_bytes, open, |file| Ok(state_of(&fs::fstat(file).map_err(read_error)?)))
    }

    fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
        let folder = self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(&folder).map_err(read_error)? {
            let entry = entry.map_err(read_error)?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let (name, has_invalid_bytes) = printable_name(bytes);
            let mut kind = entry.file_type();
            // Some file systems do not tell the kind of an entry in the listing.
            if kind == FileType::Unknown
                && let Ok(stat) = fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            {
                kind = FileType::from_raw_mode(stat.st_mode);
            }
            let kind = match kind {
                _ if has_invalid_bytes => SourceEntryKind::Other,
                FileType::RegularFile => SourceEntryKind::File,
                FileType::Directory => SourceEntryKind::Folder,
                FileType::Symlink => SourceEntryKind::Link,
                _ => SourceEntryKind::Other,
            };
            entries.push(SourceTreeEntry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
        #[cfg(target_os = "linux")]
        let file = self.open_beneath(path, OFlags::PATH)?;
        #[cfg(not(target_os = "linux"))]
        let file = self.open_beneath(path, OFlags::RDONLY)?;
        let stat = fs::fstat(&file).map_err(read_error)?;
        check_kind(&stat)?;
        Ok(state_of(&stat))
    }

    fn resolve(&self, path: &str) -> Result<String, SourceReadError> {
        // A stack, so the components are in reverse: those of a link are pushed onto what is left of the path.
        let mut pending: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut resolved: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    resolved.pop().ok_or(SourceReadError::Outside)?;
                    continue;
                }
                _ => resolved.push(part),
            }
            match fs::readlinkat(&self.handle, resolved.join("/"), Vec::new()) {
                Ok(target) => {
                    links += 1;
                    let target = target
                        .to_str()
                        .map_err(|_| SourceReadError::NotRegular("a name that is not UTF-8"))?;
                    if links > MAX_LINKS || target.starts_with('/') {
                        return Err(SourceReadError::Outside);
                    }
                    resolved.pop();
                    pending.extend(target.split('/').rev().map(str::to_owned));
                }
                // EINVAL: the path is not a link.
                Err(Errno::INVAL) => {}
                Err(errno) => return Err(read_error(errno)),
            }
        }
        Ok(resolved.join("/"))
    }
}

fn check_kind(stat: &Stat) -> Result<(), SourceReadError> {
    Err(SourceReadError::NotRegular(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(SourceReadError::IsFolder),
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no regular file",
    }))
}

#[allow(
    clippy::cast_sign_loss,
    clippy::unnecessary_cast,
    trivial_numeric_casts,
    reason = "the fields have other types on each system; a size is not negative"
)]
fn state_of(stat: &Stat) -> SourceFileState {
    SourceFileState {
        size: stat.st_size as u64,
        mtime_ns: i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128,
        ctime_ns: i128::from(stat.st_ctime) * 1_000_000_000 + stat.st_ctime_nsec as i128,
        inode: stat.st_ino as u64,
    }
}

fn read_error(errno: Errno) -> SourceReadError {
    match errno {
        Errno::NOENT | Errno::NOTDIR => SourceReadError::NotFound,
        // RESOLVE_BENEATH returns XDEV; O_NOFOLLOW at a link returns LOOP, and so does a loop of links.
        Errno::XDEV | Errno::LOOP => SourceReadError::Outside,
        other => SourceReadError::Io(other.into()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make the files that are read")]
mod tests {
    use super::*;
    use std::fs as disk;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn project() -> (tempfile::TempDir, FolderTree) {
        let project = tempfile::tempdir().unwrap();
        disk::create_dir_all(project.path().join("docs/deep")).unwrap();
        disk::write(project.path().join("docs/a.md"), "text").unwrap();
        let folder = FolderTree::open(project.path()).unwrap();
        (project, folder)
    }

    #[test]
    fn a_link_that_stays_is_followed_and_one_that_leaves_is_not() {
        let (project, folder) = project();
        let outside = tempfile::tempdir().unwrap();
        disk::write(outside.path().join("secret"), "secret").unwrap();
        symlink("a.md", project.path().join("docs/b.md")).unwrap();
        symlink(outside.path().join("secret"), project.path().join("docs/c.md")).unwrap();
        symlink(outside.path(), project.path().join("away")).unwrap();
        assert_eq!(folder.read("docs/b.md", 10).unwrap().bytes, b"text");
        for path in ["docs/c.md", "away/secret", "../x", "/etc/passwd", "docs/../../x"] {
            assert!(matches!(folder.read(path, 10), Err(SourceReadError::Outside)), "{path}");
            assert!(folder.state(path).is_err(), "{path}");
        }
        assert!(matches!(folder.list("away"), Err(SourceReadError::Outside)));
        // Without openat2 no link is followed.
        assert!(matches!(
            folder.open_by_components("docs/b.md", OFlags::RDONLY),
            Err(SourceReadError::Outside)
        ));
        assert!(folder.open_by_components("docs/a.md", OFlags::RDONLY).is_ok());
    }

    #[test]
    fn reading_a_pipe_is_an_error_and_does_not_block() {
        let (project, folder) = project();
        fs::mknodat(fs::CWD, project.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(matches!(folder.read("pipe", 10), Err(SourceReadError::NotRegular("a named pipe"))));
        assert!(matches!(folder.read("docs", 10), Err(SourceReadError::IsFolder)));
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let (_project, folder) = project();
        assert_eq!(folder.read("docs/a.md", 4).unwrap().state.size, 4);
        assert!(matches!(folder.read("docs/a.md", 3), Err(SourceReadError::TooLarge { bytes: 4 })));
        assert!(matches!(folder.read("docs/z.md", 3), Err(SourceReadError::NotFound)));
    }

    #[test]
    fn a_list_is_in_byte_order_and_has_the_kind_of_each_entry() {
        let (project, folder) = project();
        symlink("a.md", project.path().join("docs/Z")).unwrap();
        disk::write(project.path().join("docs").join(OsStr::from_bytes(b"\xff")), "").unwrap();
        let names: Vec<_> = folder.list("docs").unwrap().into_iter().map(|e| (e.name, e.kind)).collect();
        let expected = [
            ("Z", SourceEntryKind::Link),
            ("\\xff", SourceEntryKind::Other),
            ("a.md", SourceEntryKind::File),
            ("deep", SourceEntryKind::Folder),
        ];
        assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
