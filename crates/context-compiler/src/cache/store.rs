//! The files of a cache: writing, reading and removing them.

use super::format::put_bytes;
use crate::decoded_text::hex;
use crate::hash::{ContentHash, hash_content};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the files. Increase it when their layout changes, or when the same text gets another outline.
const FORMAT_VERSION: u32 = 2;
const MAGIC: &[u8; 12] = b"ctx-compiler";
/// The bytes of the checksum at the end of a file.
const CHECKSUM_BYTES: usize = size_of::<ContentHash>();

/// The most bytes of the files of a folder together, and of one file that is read.
const MAX_FOLDER_BYTES: u64 = 256 << 20;
/// The age at which a file is removed that no process has opened.
const UNUSED_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The age at which a temporary file is removed: its writer is gone.
const UNFINISHED_AGE: Duration = Duration::from_secs(3600);

/// One of the two files of a project.
#[derive(Clone, Copy)]
pub(super) enum ContentCacheFile {
    /// The index and the facts.
    Facts,
    /// The outlines. They have a file of their own because they are larger and often not needed.
    Outlines,
}

/// The files of one project and counter in a folder.
pub(super) struct ContentCacheFolder {
    folder: OwnedFd,
    /// The beginning of the names of the files.
    name_prefix: String,
    /// The beginning of the content of each file.
    header: Vec<u8>,
}

/// Creates `folder` and its missing parents with mode 0700, as the XDG Base Directory Specification requires.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let created = match fs::mkdir(folder, Mode::RWXU) {
        // Each parent gets mode 0700 too, which `create_dir_all` would not give it.
        Err(Errno::NOENT) => {
            create_private_folder(folder.parent().ok_or(Errno::NOENT)?)?;
            fs::mkdir(folder, Mode::RWXU)
        }
        created => created,
    };
    match created {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl ContentCacheFolder {
    /// Opens `folder`, which is created if it does not exist.
    pub(super) fn open(folder: &Path, project: &str, counter: &str) -> io::Result<Self> {
        create_private_folder(folder)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = fs::open(folder, flags, Mode::empty())?;
        let stat = fs::fstat(&folder)?;
        if stat.st_uid != rustix::process::geteuid().as_raw()
            || Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO)
        {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "others than its owner have access to the folder of the cache",
            ));
        }
        let mut header = MAGIC.to_vec();
        header.extend(FORMAT_VERSION.to_le_bytes());
        put_bytes(&mut header, counter.as_bytes());
        // The counter is part of the name too, so that two counters do not overwrite each other's files in turn.
        let name_prefix = hex(&hash_content(format!("{counter}\0{project}").as_bytes())[..16]);
        Ok(Self { folder, name_prefix, header })
    }

    fn file_name(&self, file: ContentCacheFile) -> String {
        let extension = match file {
            ContentCacheFile::Facts => "facts",
            ContentCacheFile::Outlines => "outlines",
        };
        format!("{}.{extension}", self.name_prefix)
    }

    /// Returns the payload of a file; `None` if there is no such file or anything is wrong with it.
    pub(super) fn read(&self, file: ContentCacheFile) -> Option<Vec<u8>> {
        // NONBLOCK, since a pipe of that name would block the opening; its kind is checked below.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = fs::openat(&self.folder, self.file_name(file), flags, Mode::empty()).ok()?;
        let stat = fs::fstat(&handle).ok()?;
        let size = u64::try_from(stat.st_size).ok().filter(|&size| size <= MAX_FOLDER_BYTES)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        // `prune` goes by the time of change, so a file in use is touched. A failure only makes it look older.
        let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
        let _ = fs::futimens(&handle, &Timestamps { last_access: now, last_modification: now });
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        File::from(handle).take(MAX_FOLDER_BYTES).read_to_end(&mut bytes).ok()?;
        let checksum = bytes.split_off(bytes.len().checked_sub(CHECKSUM_BYTES)?);
        // The header has the version and the counter: counts of another counter are of no use.
        if hash_content(&bytes)[..] != checksum[..] || !bytes.starts_with(&self.header) {
            return None;
        }
        bytes.drain(..self.header.len());
        Some(bytes)
    }

    /// Replaces a file by `payload`, whole or not at all.
    pub(super) fn write(&self, file: ContentCacheFile, payload: Vec<u8>) -> io::Result<()> {
        static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);
        let mut bytes = self.header.clone();
        bytes.extend(payload);
        let checksum = hash_content(&bytes);
        bytes.extend(checksum);
        // Unique for each write: several processes and threads may save the same project at once.
        let temporary = format!(
            "{}.{}.{}.new",
            self.file_name(file),
            std::process::id(),
            NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed)
        );
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = fs::openat(&self.folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        // No fsync: after a power loss the checksum does not match, and the worst case is an empty cache.
        let written = File::from(handle).write_all(&bytes).and_then(|()| {
            fs::renameat(&self.folder, &temporary, &self.folder, self.file_name(file)).map_err(Into::into)
        });
        if written.is_err() {
            let _ = fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes files that were not used for long, temporary files without a writer, and the oldest files beyond the limit
    /// of the folder.
    pub(super) fn prune(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(entries) = fs::Dir::read_from(&self.folder) else { return };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            // The folder may contain files of other programs, which stay.
            let text = name.to_string_lossy();
            let is_temporary = text.ends_with(".new");
            let is_ours = text.get(..32).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
                && (is_temporary || text.ends_with(".facts") || text.ends_with(".outlines"));
            let Ok(stat) = fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if is_ours {
                let used_at = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
                let age = now.saturating_sub(used_at);
                let max_age = if is_temporary { UNFINISHED_AGE } else { UNUSED_AGE };
                files.push((age, u64::try_from(stat.st_size).unwrap_or(0), name.to_owned(), age > max_age));
            }
        }
        // By age, the youngest first: files beyond the limit are the ones unused for longest.
        files.sort();
        let mut total = 0;
        for (_, size, name, expired) in files {
            total += size;
            if expired || total > MAX_FOLDER_BYTES {
                let _ = fs::unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }
}
