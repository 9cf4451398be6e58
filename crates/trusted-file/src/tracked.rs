//! A file that is read again while a program runs, and whose content is not trusted again once others could write it.

use crate::access::{
    Error, LinkTreatment, OthersAccess, check_access, check_kind, open_without_waiting, read_open,
};
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

/// A file that is read again whenever it changes.
///
/// A file to which others may write is *tainted*: somebody may have written it, or hold it open and write later. The
/// content of a tainted file is trusted only as long as it is the content that was trusted last. Another file at the
/// path, put there by a rename, is judged anew.
#[derive(Debug)]
pub struct TrackedFile {
    path: PathBuf,
    max_bytes: u64,
    /// The text that was trusted last.
    trusted: Option<String>,
    /// The tainted file. It is held open, so that no other file gets its number while it is remembered.
    tainted: Option<File>,
}

/// The text of a [`TrackedFile`], with the trust that it deserves.
#[derive(Debug)]
pub enum TrackedText {
    /// Nobody but the owner can have written the text.
    Trusted(String),
    /// Others could write to the file, and its text is still the one that was trusted last.
    Unchanged {
        /// The reason why the file is not trusted.
        cause: Error,
        /// True if the mode of the file was set back, so that others can no longer write to it.
        is_repaired: bool,
    },
    /// Others could write to the file, and its text is another one: what it adds must not count, and what it removes
    /// must.
    Distrusted {
        /// The text that others may have written.
        text: String,
        /// The reason why it is not trusted.
        cause: Error,
        /// True if the mode of the file was set back.
        is_repaired: bool,
    },
}

/// The identity of a file, whatever its name.
type FileIdentity = (u64, u64);

impl TrackedFile {
    /// Creates a tracker for the file at `path`, of which nothing is known yet.
    pub fn new(path: PathBuf, max_bytes: u64) -> Self {
        Self { path, max_bytes, trusted: None, tainted: None }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again, and takes the access of others away if the file belongs to the user of this process.
    ///
    /// # Errors
    /// The path leads to no file, the file is too large, is not UTF-8, or cannot be read.
    pub fn read(&mut self) -> Result<TrackedText, Error> {
        let file = open_without_waiting(&self.path, LinkTreatment::Follow)?;
        let metadata = file.metadata()?;
        check_kind(&metadata)?;
        let is_tainted = match &self.tainted {
            Some(tainted) => file_id(&tainted.metadata()?) == file_id(&metadata),
            None => false,
        };
        let (cause, is_repaired) = match check_access(&metadata, OthersAccess::GroupMayWrite) {
            Ok(()) if !is_tainted => {
                let text = read_open(&file, self.max_bytes)?;
                self.tainted = None;
                self.trusted = Some(text.clone());
                return Ok(TrackedText::Trusted(text));
            }
            Ok(()) => (Error::WasWritableByOthers, false),
            Err(cause) => (cause, take_access_away(&file, &metadata)),
        };
        // After the mode was set back, so that what is read is not changed through a path that is opened later.
        let text = read_open(&file, self.max_bytes);
        self.tainted = Some(file);
        let text = text?;
        Ok(match self.trusted.as_ref() == Some(&text) {
            true => TrackedText::Unchanged { cause, is_repaired },
            false => TrackedText::Distrusted { text, cause, is_repaired },
        })
    }
}

/// Takes the right to write away from all but the owner. Returns false if the file is not this user's.
#[cfg(unix)]
fn take_access_away(file: &File, metadata: &Metadata) -> bool {
    use rustix::fs::Mode;
    use std::os::unix::fs::MetadataExt;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return false;
    }
    let mode = Mode::from_raw_mode(metadata.mode()) & !(Mode::WGRP | Mode::WOTH);
    rustix::fs::fchmod(file, mode).is_ok()
}

#[cfg(not(unix))]
fn take_access_away(_: &File, _: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileIdentity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn file_id(_: &Metadata) -> FileIdentity {
    (0, 0)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_tainted_file_is_repaired_and_only_what_was_trusted_before_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        fs::write(&path, "one").unwrap();
        set_mode(&path, 0o600);
        let mut tracked = TrackedFile::new(path.clone(), 100);
        assert!(matches!(tracked.read().unwrap(), TrackedText::Trusted(text) if text == "one"));

        set_mode(&path, 0o666);
        let mut open_elsewhere = fs::OpenOptions::new().append(true).open(&path).unwrap();
        assert!(matches!(tracked.read().unwrap(), TrackedText::Unchanged { is_repaired: true, .. }));
        assert_eq!(mode(&path), 0o644);

        // Whoever had it open can still write.
        open_elsewhere.write_all(b"two").unwrap();
        for _ in 0..2 {
            let read = tracked.read().unwrap();
            assert!(matches!(&read, TrackedText::Distrusted { text, .. } if text == "onetwo"), "{read:?}");
        }
        // Another file in its place is judged anew.
        let next = folder.path().join("next");
        fs::write(&next, "three").unwrap();
        set_mode(&next, 0o600);
        fs::rename(&next, &path).unwrap();
        assert!(matches!(tracked.read().unwrap(), TrackedText::Trusted(text) if text == "three"));
        fs::write(&path, "four").unwrap();
        assert!(matches!(tracked.read().unwrap(), TrackedText::Trusted(text) if text == "four"));
    }

    #[test]
    fn a_file_that_was_never_trusted_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        fs::write(&path, "").unwrap();
        set_mode(&path, 0o646);
        let mut tracked = TrackedFile::new(path, 100);
        for _ in 0..2 {
            assert!(matches!(tracked.read().unwrap(), TrackedText::Distrusted { .. }));
        }
    }
}
