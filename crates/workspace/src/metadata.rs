//! The metadata of a file: everything known about it without reading it.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a file: a directory, a regular file, a symbolic link (itself), a named pipe, a Unix socket, a
/// device, or something this platform does not name.
// The variants have no doc comments: each would become a paragraph of every schema that names a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[schemars(description = "")]
#[allow(missing_docs, reason = "see above")]
pub enum PathKind {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    Device,
    Other,
}

impl PathKind {
    /// Returns the kind with its article, for a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Directory => "a directory",
            Self::File => "a regular file",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a named pipe (FIFO)",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Other => "of an unknown kind",
        }
    }
}

/// The properties that the operating system reports of a file, folder or link.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The kind of thing it is.
    pub kind: PathKind,
    /// Its length in bytes.
    pub size: u64,
    /// The permission bits, as in `chmod`; only the write bit is meaningful where there is no such thing.
    pub mode: u32,
    /// The time of the last change of the content, where the file system records one.
    pub modified: Option<SystemTime>,
    /// The number of its names (hard links).
    pub links: u64,
    /// The identity and state of the file.
    pub(crate) stamp: FileRevision,
    /// The numbers of user and group.
    #[cfg_attr(not(unix), allow(dead_code, reason = "owners are not numbers"))]
    pub(crate) owner: (u32, u32),
}

impl Metadata {
    /// Returns the identity and state of the file, to see later whether it changed.
    pub fn stamp(&self) -> FileRevision {
        self.stamp
    }
}

/// A file's identity and state: equal stamps mean the same file, not written in between (as far as the
/// file system's clock can tell).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRevision {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: (i64, i64),
}

impl FileRevision {
    /// Returns true if both are certainly the same file, in whatever state.
    pub fn same_file(self, other: Self) -> bool {
        // An inode of 0 stands for no identity (`portable.rs`).
        self.inode != 0 && (self.device, self.inode) == (other.device, other.inode)
    }
}
