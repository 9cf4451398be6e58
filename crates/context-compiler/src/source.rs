//! Where files come from: [`Tree`], one project beneath one root, and [`Folder`], which is one on disk.
//!
//! The compiler itself opens nothing. Whoever has a way to files already (roots, limits by role) implements
//! [`Tree`] over it; [`Folder`] is for everybody else.

use std::io;

#[cfg(unix)]
mod folder;
#[cfg(unix)]
pub use folder::Folder;

/// The files of one project, beneath one root.
///
/// Paths are relative to the root, in UTF-8, with `/` between their parts; the root itself is `""`. An
/// implementation must open nothing outside the root, whatever a path or a link in it says, and must not wait: a
/// pipe, a socket or a device is [`ReadProblem::NotRegular`].
pub trait Tree: Send + Sync {
    /// The content of the regular file at `path`, links beneath the root followed, if it has at most `limit` bytes.
    ///
    /// A file that changes while it is read is read again, and is marked [`unstable`](Content::unstable) where
    /// it never stops.
    ///
    /// # Errors
    /// Why there is no content.
    fn read(&self, path: &str, limit: u64) -> Result<Content, ReadProblem>;

    /// What is in the folder at `path`, sorted by name in byte order. Links are not followed.
    ///
    /// # Errors
    /// Why there is no list.
    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadProblem>;

    /// In which state the file at `path` is, links beneath the root followed.
    ///
    /// # Errors
    /// Why that cannot be said.
    fn stamp(&self, path: &str) -> Result<Stamp, ReadProblem>;

    /// Where `path` leads, links beneath the root followed, in the form of the paths here. By default as it is
    /// written: an implementation that follows links says where to.
    ///
    /// # Errors
    /// Why that cannot be said.
    fn resolve(&self, path: &str) -> Result<String, ReadProblem> {
        Ok(path.to_owned())
    }
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its bytes, as they are.
    pub bytes: Vec<u8>,
    /// The state it was read in.
    pub stamp: Stamp,
    /// It changed during each of several attempts to read it, so the bytes may be of two states.
    pub unstable: bool,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name. Where it is not UTF-8, bytes that are not are shown as `\xNN`, and the kind is
    /// [`EntryKind::Other`]: such a file cannot be named in a request.
    pub name: String,
    /// What it names.
    pub kind: EntryKind,
}

/// What a name in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, not followed.
    Link,
    /// Anything else.
    Other,
}

/// A file's state: while it is equal, the file has not been written (as far as the file system's clock can tell).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Nanoseconds from 1970 to the last change of the content.
    pub mtime_ns: i128,
    /// Nanoseconds from 1970 to the last change of the content or of anything else about the file; 0 where that
    /// is not known. A program that restores a file with its old time of change does not restore this one.
    pub ctime_ns: i128,
    /// Which file it is; 0 where that is not known.
    pub inode: u64,
}

/// Why a file or folder gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadProblem {
    /// There is nothing of that name.
    #[error("does not exist")]
    NotFound,
    /// It is no regular file (for a list: no folder). What is a folder is called `a folder`.
    #[error("is {0}")]
    NotRegular(&'static str),
    /// It has more bytes than asked for.
    #[error("is too large: {bytes} bytes")]
    TooLarge {
        /// How many it has.
        bytes: u64,
    },
    /// The path, or a link on it, leads out of the root.
    #[error("leads outside")]
    Outside,
    /// The operating system said no.
    #[error("cannot be read")]
    Io(#[source] io::Error),
}

/// `name` as UTF-8: bytes that are not are written `\xNN`. The second value says whether there were any.
pub(crate) fn printable_name(name: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(name.len());
    let mut strange = false;
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            strange = true;
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    (text, strange)
}
