//! The trait [`SourceTree`] and the types of its answers.

use std::io;

/// The files of one project, beneath one root.
///
/// Paths are relative to the root, in UTF-8, with `/` between their components; the root itself is `""`. An
/// implementation must open nothing outside the root, whatever a path or a link in it says. An implementation must not
/// block on a pipe, a socket or a device, and returns [`SourceReadError::NotRegular`] for them.
pub trait SourceTree: Send + Sync {
    /// Returns the content of the regular file at `path`, if it has at most `max_bytes` bytes. Links that stay beneath the
    /// root are followed.
    ///
    /// A file that changes while it is read is read again. If it keeps changing, the content is marked
    /// [`unstable`](SourceFileContent::unstable).
    ///
    /// # Errors
    /// There is no such regular file, it is too large, or it cannot be read.
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError>;

    /// Returns the entries of the folder at `path`, sorted by name in byte order. Links are not followed.
    ///
    /// # Errors
    /// There is no such folder, or it cannot be read.
    fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError>;

    /// Returns the state of the regular file at `path` without reading it. Links that stay beneath the root are followed.
    ///
    /// # Errors
    /// There is no such regular file, or its metadata cannot be read.
    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError>;

    /// Returns the path that `path` leads to once the links on it are followed. The default returns `path` as it is: an
    /// implementation that follows links must override it.
    ///
    /// # Errors
    /// The path does not exist, or leads outside the root.
    fn resolve(&self, path: &str) -> Result<String, SourceReadError> {
        Ok(path.to_owned())
    }
}

/// The content of a file, and the state of the file at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFileContent {
    /// The bytes of the file, unchanged.
    pub bytes: Vec<u8>,
    /// The state of the file after it was read.
    pub state: SourceFileState,
    /// True if the file changed during each attempt to read it.
    pub unstable: bool,
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTreeEntry {
    /// The name. In a name that is not UTF-8, each invalid byte is written `\xNN` and the kind is
    /// [`SourceEntryKind::Other`], since a request cannot name such a file.
    pub name: String,
    /// The kind of the entry.
    pub kind: SourceEntryKind,
}

/// The kind of a folder's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceEntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, not followed.
    Link,
    /// A pipe, a socket, a device, or a name that is not UTF-8.
    Other,
}

/// The state of a file. While it stays equal the file has not been written, as far as the clock of the file system can
/// tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceFileState {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of the content, in nanoseconds from 1970.
    pub mtime_ns: i128,
    /// The time of the last change of the content or the metadata, in nanoseconds from 1970; 0 if unknown. A program that
    /// restores a file together with its `mtime` does not restore this time.
    pub ctime_ns: i128,
    /// The inode number; 0 if unknown.
    pub inode: u64,
}

/// The reason why a file or a folder could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceReadError {
    /// There is nothing of that name.
    #[error("does not exist")]
    NotFound,
    /// The path leads to a folder where a file was expected.
    #[error("is a folder")]
    IsFolder,
    /// The path leads to something that is neither a regular file nor a folder. Holds a noun with its article, such as
    /// `a named pipe`.
    #[error("is {0}")]
    NotRegular(&'static str),
    /// The file has more bytes than the limit of the call.
    #[error("is too large: {bytes} bytes")]
    TooLarge {
        /// The size of the file.
        bytes: u64,
    },
    /// The path, or a link on it, leads outside the root.
    #[error("leads outside")]
    Outside,
    /// The operating system returned an error.
    #[error("cannot be read")]
    Io(#[source] io::Error),
}
