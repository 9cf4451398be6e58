//! The file of the audit: append only, private, rotated by size, shared with other servers, one chain for all of them.

use crate::chain::{self, ChainHash, ChainHead};
use crate::entry::AuditEntry;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that lines are appended to, whole or not at all.
///
/// Several processes may append to one file. Each process locks the file for the time of one line, and continues the
/// chain at the present end of the file.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    file: File,
    /// The length of the file after the last line of this process, and that line. `None` until one was written, and after
    /// a failure.
    last: Option<(u64, ChainHead)>,
}

/// The end of the file, as the next line finds it.
struct FileEnd {
    length: u64,
    head: Option<ChainHead>,
    /// The file ends in the middle of a line.
    is_torn: bool,
}

impl AuditFile {
    /// A file that reaches this size is renamed.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// The renamed files that are kept: `NAME.1` to `NAME.5`.
    pub const ROTATED: u32 = 5;

    /// Opens the file at `path`, which is made for its owner alone where it is missing.
    ///
    /// # Errors
    /// It cannot be written to, it is a link or no regular file, it is another user's, or others may write to it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::with_file(path, trusted_file::open_append(path)?))
    }

    /// Appends to an open file, which was opened at `path`.
    pub fn with_file(path: &Path, file: File) -> Self {
        Self { path: path.to_owned(), file, last: None }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `entry` as the next link of the chain.
    ///
    /// # Errors
    /// The entry cannot be written. The file then has nothing of the entry, or half a line, and the next entry
    /// begins on a new line.
    pub fn append(&mut self, entry: &mut AuditEntry) -> io::Result<()> {
        let lock = self.lock_current()?;
        let appended = self.append_locked(entry);
        drop(lock);
        appended
    }

    fn append_locked(&mut self, entry: &mut AuditEntry) -> io::Result<()> {
        let mut end = self.end()?;
        let (mut text, mut head) = next_line(entry, end.head.as_ref())?;
        // Kept until the line is written: others wait for the new file meanwhile.
        let mut _rotated_lock = None;
        if end.length + text.len() as u64 > Self::MAX_BYTES && end.length > 0 {
            rotate(&self.path)?;
            self.reopen()?;
            _rotated_lock = Some(self.lock_current()?);
            // Another process may have been faster.
            end = self.end()?;
            (text, head) = next_line(entry, end.head.as_ref())?;
        }
        if end.is_torn {
            text.insert(0, '\n');
        }
        self.last = None;
        write_whole(&mut self.file, text.as_bytes(), end.length)?;
        self.last = Some((end.length + text.len() as u64, head));
        Ok(())
    }

    /// Locks the file that is at the path now, which is opened if another process has rotated or removed the one before.
    fn lock_current(&mut self) -> io::Result<FileLock> {
        loop {
            let lock = FileLock::acquire(&self.file)?;
            if is_at(&self.path, &self.file) {
                return Ok(lock);
            }
            drop(lock);
            self.reopen()?;
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = trusted_file::open_append(&self.path)?;
        self.last = None;
        Ok(())
    }

    /// Finds the end of the locked file. It is read only if another process has written since.
    fn end(&self) -> io::Result<FileEnd> {
        let length = self.file.metadata()?.len();
        if let Some((end, head)) = &self.last
            && *end == length
        {
            return Ok(FileEnd { length, head: Some(head.clone()), is_torn: false });
        }
        let tail = if length == 0 { String::new() } else { tail(&self.path, length)? };
        let is_torn = length > 0 && !tail.ends_with('\n');
        // A new file continues the chain of the one that was rotated away.
        let head = last_head(&tail).or_else(|| {
            let before = numbered(&self.path, 1);
            let length = before.metadata().ok()?.len();
            last_head(&tail_of_rotated(&before, length)?)
        });
        Ok(FileEnd { length, head, is_torn })
    }
}

/// Makes `entry` the link after `head`. Returns its line and the new head.
fn next_line(entry: &mut AuditEntry, head: Option<&ChainHead>) -> io::Result<(String, ChainHead)> {
    let number = head.map_or(1, |head| head.number.saturating_add(1));
    entry.number = Some(number);
    entry.previous = head.map(|head| head.hash.clone());
    let body = entry.body()?;
    let hash = ChainHash::of(&body);
    Ok((chain::line(&body, &hash), ChainHead { number, hash }))
}

/// Writes `text` at the end of the file, which is at `begin`, or takes back what was written of it.
fn write_whole(file: &mut File, text: &[u8], begin: u64) -> io::Result<()> {
    let mut rest = text;
    // Not `write_all`, which does not say how much it had written when it failed.
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            failed => {
                if rest.len() < text.len() {
                    // If this fails, half a line stays, and the next line begins after it.
                    let _ = file.set_len(begin);
                }
                return Err(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
            }
        }
    }
    Ok(())
}

/// The part of the file in which the last line is looked for: more than the longest line.
const TAIL_BYTES: u64 = 256 * 1024;

/// Reads the end of the file at `path`, of this length.
fn tail(path: &Path, length: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn tail_of_rotated(path: &Path, length: u64) -> Option<String> {
    // Without the rotated file, the chain begins anew, and the verification says so.
    tail(path, length).ok()
}

/// Returns the last link in the end of a file.
fn last_head(tail: &str) -> Option<ChainHead> {
    tail.lines().rev().find_map(|line| {
        let (body, hash) = chain::split_line(line)?;
        let entry: AuditEntry = serde_json::from_str(&body).ok()?;
        Some(ChainHead { number: entry.number?, hash })
    })
}

/// Returns true if the file at `path` is still `file`: another server may have rotated it.
#[cfg(unix)]
fn is_at(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(at_path), Ok(ours)) = (path.symlink_metadata(), file.metadata()) else { return false };
    (at_path.dev(), at_path.ino()) == (ours.dev(), ours.ino())
}

#[cfg(not(unix))]
fn is_at(path: &Path, _file: &File) -> bool {
    path.exists()
}

/// Returns the path of the `number`th rotated file.
pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Renames `NAME` to `NAME.1`, `NAME.1` to `NAME.2`, and so on; the oldest is replaced.
fn rotate(path: &Path) -> io::Result<()> {
    // From the oldest on, so that no rename replaces a file that is still needed.
    for number in (1..AuditFile::ROTATED).rev() {
        match std::fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(path, 1))
}

/// A lock on the file, which the system gives back with the handle that it is on.
#[derive(Debug)]
struct FileLock {
    #[cfg(unix)]
    file: File,
}

#[cfg(unix)]
impl FileLock {
    /// Waits for the lock, for two seconds at the longest: others hold it for the time of one line.
    fn acquire(file: &File) -> io::Result<Self> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;
        let file = file.try_clone()?;
        for _ in 0..2000 {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // A file system without locks; its files cannot be shared by several servers.
                Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    return Ok(Self { file });
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps the file locked"))
    }
}

#[cfg(unix)]
impl Drop for FileLock {
    fn drop(&mut self) {
        // The handle of the file shares its lock with the one here, so closing this one would not be enough.
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }
}

#[cfg(not(unix))]
impl FileLock {
    #[allow(clippy::unnecessary_wraps, reason = "the one of Unix fails")]
    fn acquire(_file: &File) -> io::Result<Self> {
        Ok(Self {})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::AuditEvent;
    use crate::file_reader::read_files;
    use crate::verify::ChainVerifier;
    use std::time::SystemTime;

    fn entry(tool: &str) -> AuditEntry {
        let mut entry = AuditEntry::new(AuditEvent::Call, SystemTime::now());
        entry.tool = tool.to_owned();
        entry
    }

    /// The tools of all lines, and whether the chain is intact.
    fn read(path: &Path) -> (Vec<String>, bool) {
        let (mut tools, mut verifier) = (Vec::new(), ChainVerifier::default());
        read_files(path, |line| {
            verifier.check(&line.position(), "file", &line.record());
            tools.extend(line.entry().map(|entry| entry.tool));
        })
        .unwrap();
        (tools, verifier.finish().is_intact())
    }

    #[test]
    fn threads_of_several_writers_make_one_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut file = AuditFile::open(path).unwrap();
                    for number in 0..50 {
                        file.append(&mut entry(&format!("{writer}-{number}"))).unwrap();
                    }
                });
            }
        });
        let (tools, is_intact) = read(&path);
        assert_eq!((tools.len(), is_intact), (200, true));
    }

    #[test]
    fn half_a_line_spoils_no_other_and_two_writers_see_each_others_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let [mut one, mut other] = [(), ()].map(|()| AuditFile::open(&path).unwrap());
        other.append(&mut entry("t0")).unwrap();
        // A process that was killed in the middle of a line.
        one.file.write_all(b"{\"time").unwrap();
        one.append(&mut entry("t1")).unwrap();
        other.append(&mut entry("t2")).unwrap();
        assert_eq!(read(&path), (["t0", "t1", "t2"].map(str::to_owned).into(), true));
        // Lines that the next one would not fit behind.
        rotate(&path).unwrap();
        one.append(&mut entry("t3")).unwrap();
        other.append(&mut entry("t4")).unwrap();
        assert_eq!(read(&path), (["t0", "t1", "t2", "t3", "t4"].map(str::to_owned).into(), true));
        assert!(numbered(&path, 1).exists());
    }

    #[test]
    fn a_file_that_another_process_keeps_locked_is_an_error_and_no_wait_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut file = AuditFile::open(&path).unwrap();
        let lock = FileLock::acquire(&File::open(&path).unwrap()).unwrap();
        assert_eq!(file.append(&mut entry("t")).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(lock);
        file.append(&mut entry("t")).unwrap();
    }
}
