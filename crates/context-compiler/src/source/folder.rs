//! A [`Tree`] over a folder that is held open.

use super::{Content, Entry, EntryKind, ReadProblem, Stamp, Tree, printable_name};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

/// How often a file that changes while it is read is read.
const ATTEMPTS: usize = 3;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// A project's folder, opened once. Everything is opened beneath that handle.
///
/// On Linux 5.6 and later the kernel resolves paths (`openat2(2)` with `RESOLVE_BENEATH` and
/// `RESOLVE_NO_MAGICLINKS`): links that stay beneath the root are followed, those that leave it are
/// [`ReadProblem::Outside`]. Elsewhere a path is opened part by part, and a link on it is not followed at all.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
}

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// What the operating system said.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: fs::open(path, flags, Mode::empty())? })
    }

    /// Opens `path` beneath the root without waiting, whatever is there.
    fn open_beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd, ReadProblem> {
        if path.contains('\0') || path.starts_with('/') {
            return Err(ReadProblem::Outside);
        }
        let path = if path.is_empty() { "." } else { path };
        // With PATH the kernel takes no other flags, and opens nothing that could wait.
        #[cfg(target_os = "linux")]
        let referring = flags.contains(OFlags::PATH);
        #[cfg(not(target_os = "linux"))]
        let referring = false;
        let quick = if referring { OFlags::empty() } else { OFlags::NONBLOCK | OFlags::NOCTTY };
        let flags = flags | quick | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            let resolve = fs::ResolveFlags::BENEATH | fs::ResolveFlags::NO_MAGICLINKS;
            // The kernel says EAGAIN where something was renamed meanwhile, and it cannot tell.
            for _ in 0..16 {
                match fs::openat2(&self.handle, path, flags, Mode::empty(), resolve) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    // An old kernel, or a container that forbids the call.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    other => return other.map_err(problem),
                }
            }
        }
        self.walk(path, flags)
    }

    /// The same, part by part, following no link.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, ReadProblem> {
        let mut parts = Vec::new();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) => parts.push(name),
                Component::CurDir => {}
                _ => return Err(ReadProblem::Outside),
            }
        }
        let last = parts.pop().unwrap_or(OsStr::new("."));
        let way = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder: Option<OwnedFd> = None;
        for part in parts {
            let at = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
            folder = Some(fs::openat(at, part, way, Mode::empty()).map_err(problem)?);
        }
        let at = folder.as_ref().map_or(self.handle.as_fd(), AsFd::as_fd);
        fs::openat(at, last, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(problem)
    }

    /// Opens the regular file at `path`. What else is there is looked at by reference only: to open a device
    /// may do something.
    fn open_file(&self, path: &str, flags: OFlags) -> Result<(OwnedFd, Stat), ReadProblem> {
        #[cfg(target_os = "linux")]
        check_kind(&fs::fstat(self.open_beneath(path, OFlags::PATH)?).map_err(problem)?)?;
        let file = self.open_beneath(path, flags)?;
        let stat = fs::fstat(&file).map_err(problem)?;
        check_kind(&stat)?;
        Ok((file, stat))
    }
}

impl Tree for Folder {
    fn read(&self, path: &str, limit: u64) -> Result<Content, ReadProblem> {
        let mut attempt = 1;
        loop {
            let (file, before) = self.open_file(path, OFlags::RDONLY)?;
            let before = stamp(&before);
            if before.size > limit {
                return Err(ReadProblem::TooLarge { bytes: before.size });
            }
            let mut file = File::from(file);
            let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or_default());
            file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadProblem::Io)?;
            let after = stamp(&fs::fstat(&file).map_err(problem)?);
            if bytes.len() as u64 > limit {
                return Err(ReadProblem::TooLarge { bytes: after.size.max(bytes.len() as u64) });
            }
            let unstable = before != after || bytes.len() as u64 != after.size;
            if !unstable || attempt == ATTEMPTS {
                return Ok(Content { bytes, stamp: after, unstable });
            }
            attempt += 1;
        }
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadProblem> {
        let folder = self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(&folder).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let (name, strange) = printable_name(bytes);
            let mut kind = entry.file_type();
            if kind == FileType::Unknown
                && let Ok(stat) = fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            {
                kind = FileType::from_raw_mode(stat.st_mode);
            }
            let kind = match kind {
                _ if strange => EntryKind::Other,
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            };
            entries.push(Entry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stamp(&self, path: &str) -> Result<Stamp, ReadProblem> {
        #[cfg(target_os = "linux")]
        let file = self.open_beneath(path, OFlags::PATH)?;
        #[cfg(not(target_os = "linux"))]
        let file = self.open_beneath(path, OFlags::RDONLY)?;
        let stat = fs::fstat(&file).map_err(problem)?;
        check_kind(&stat)?;
        Ok(stamp(&stat))
    }

    fn resolve(&self, path: &str) -> Result<String, ReadProblem> {
        let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut found: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    found.pop().ok_or(ReadProblem::Outside)?;
                    continue;
                }
                _ => found.push(part),
            }
            match fs::readlinkat(&self.handle, found.join("/"), Vec::new()) {
                Ok(target) => {
                    links += 1;
                    let target =
                        target.to_str().map_err(|_| ReadProblem::NotRegular("a name that is not UTF-8"))?;
                    if links > MOST_LINKS || target.starts_with('/') {
                        return Err(ReadProblem::Outside);
                    }
                    found.pop();
                    left.extend(target.split('/').rev().map(str::to_owned));
                }
                // No link.
                Err(Errno::INVAL) => {}
                Err(errno) => return Err(problem(errno)),
            }
        }
        Ok(found.join("/"))
    }
}

fn check_kind(stat: &Stat) -> Result<(), ReadProblem> {
    Err(ReadProblem::NotRegular(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder",
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
    reason = "the members have other types on each system; a size is not negative"
)]
fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        size: stat.st_size as u64,
        mtime_ns: i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128,
        ctime_ns: i128::from(stat.st_ctime) * 1_000_000_000 + stat.st_ctime_nsec as i128,
        inode: stat.st_ino as u64,
    }
}

fn problem(errno: Errno) -> ReadProblem {
    match errno {
        Errno::NOENT | Errno::NOTDIR => ReadProblem::NotFound,
        // `RESOLVE_BENEATH` says XDEV; O_NOFOLLOW at a link says LOOP, and so does a loop of links.
        Errno::XDEV | Errno::LOOP => ReadProblem::Outside,
        other => ReadProblem::Io(other.into()),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make the files that are read")]
mod tests {
    use super::*;
    use std::fs as disk;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn project() -> (tempfile::TempDir, Folder) {
        let project = tempfile::tempdir().unwrap();
        disk::create_dir_all(project.path().join("docs/deep")).unwrap();
        disk::write(project.path().join("docs/a.md"), "text").unwrap();
        let folder = Folder::open(project.path()).unwrap();
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
            assert!(matches!(folder.read(path, 10), Err(ReadProblem::Outside)), "{path}");
            assert!(folder.stamp(path).is_err(), "{path}");
        }
        assert!(matches!(folder.list("away"), Err(ReadProblem::Outside)));
        // Where the kernel does not resolve paths, no link is followed.
        assert!(matches!(folder.walk("docs/b.md", OFlags::RDONLY), Err(ReadProblem::Outside)));
        assert!(folder.walk("docs/a.md", OFlags::RDONLY).is_ok());
    }

    #[test]
    fn a_pipe_is_named_and_not_waited_for() {
        let (project, folder) = project();
        fs::mknodat(fs::CWD, project.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(matches!(folder.read("pipe", 10), Err(ReadProblem::NotRegular("a named pipe"))));
        assert!(matches!(folder.read("docs", 10), Err(ReadProblem::NotRegular("a folder"))));
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_no_further() {
        let (_project, folder) = project();
        assert_eq!(folder.read("docs/a.md", 4).unwrap().stamp.size, 4);
        assert!(matches!(folder.read("docs/a.md", 3), Err(ReadProblem::TooLarge { bytes: 4 })));
        assert!(matches!(folder.read("docs/z.md", 3), Err(ReadProblem::NotFound)));
    }

    #[test]
    fn a_list_is_in_byte_order_and_says_what_each_name_is() {
        let (project, folder) = project();
        symlink("a.md", project.path().join("docs/Z")).unwrap();
        disk::write(project.path().join("docs").join(OsStr::from_bytes(b"\xff")), "").unwrap();
        let names: Vec<_> = folder.list("docs").unwrap().into_iter().map(|e| (e.name, e.kind)).collect();
        let expected = [
            ("Z", EntryKind::Link),
            ("\\xff", EntryKind::Other),
            ("a.md", EntryKind::File),
            ("deep", EntryKind::Folder),
        ];
        assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
