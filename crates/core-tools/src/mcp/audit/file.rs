//! The file of the audit: append only, private, rotated by size, shared with other servers.

#![allow(clippy::disallowed_methods, reason = "the operator names the file, and no client can reach it")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that reaches this size is renamed.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The renamed files that are kept.
pub(super) const ROTATED_FILES: u32 = 5;

/// A file that lines are appended to, whole or not at all.
#[derive(Debug)]
pub(super) struct AuditLogFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The last write broke off, and half a line may stand at the end.
    pub(super) torn: bool,
}

impl AuditLogFile {
    /// Opens the file at `path`, which is made where it is missing.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: trusted_file::open_append(path)?, torn: false })
    }

    /// Appends `text`, which ends with a line feed.
    ///
    /// Other servers may append to the same file, and rotate it. So it is looked at before each line, and half a
    /// line is taken back only while it is the last thing in the file; else what follows begins a new line.
    pub(super) fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let mut bytes = match current_length(&self.path, &self.file) {
            Some(bytes) => bytes,
            None => self.reopen()?,
        };
        if bytes + text.len() as u64 > MAX_FILE_BYTES && bytes > 0 {
            rotate(&self.path)?;
            bytes = self.reopen()?;
        }
        let mut line = Vec::with_capacity(text.len() + 1);
        if self.torn {
            line.push(b'\n');
        }
        line.extend_from_slice(text);
        let mut rest = line.as_slice();
        // Not `write_all`, which does not say how much it had written when it failed.
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let end = bytes + (line.len() - rest.len()) as u64;
                    // Half a line is taken back only if no other server has appended after it.
                    let is_last = self.file.metadata().is_ok_and(|metadata| metadata.len() == end);
                    self.torn |= end > bytes && !(is_last && self.file.set_len(bytes).is_ok());
                    return Err(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                }
            }
        }
        self.torn = false;
        Ok(())
    }

    /// Opens the file that is at the path now, and returns its length.
    fn reopen(&mut self) -> io::Result<u64> {
        self.file = trusted_file::open_append(&self.path)?;
        self.torn = false;
        Ok(self.file.metadata()?.len())
    }
}

/// Returns the length of the file at `path` if it is still `file`: another server may have rotated it.
#[cfg(unix)]
fn current_length(path: &Path, file: &File) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let (at_path, ours) = (path.symlink_metadata().ok()?, file.metadata().ok()?);
    ((at_path.dev(), at_path.ino()) == (ours.dev(), ours.ino())).then_some(ours.len())
}

#[cfg(not(unix))]
fn current_length(path: &Path, file: &File) -> Option<u64> {
    path.exists().then(|| file.metadata().ok())?.map(|ours| ours.len())
}

/// Renames `NAME` to `NAME.1`, `NAME.1` to `NAME.2`, and so on; the oldest is replaced.
fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    // From the oldest on, so that no rename replaces a file that is still needed.
    for number in (1..ROTATED_FILES).rev() {
        match std::fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, numbered(1))
}
