//! What is known about a file without reading it.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

/// What a file is: a directory, a regular file, a symbolic link (itself), a named pipe, a Unix socket, a
/// device, or something this platform does not name.
// The variants have no doc comments: each would become a paragraph of every schema that names a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[schemars(description = "")]
#[allow(missing_docs, reason = "see above")]
pub enum Kind {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    Device,
    Other,
}

impl Kind {
    /// The kind with its article, for a sentence.
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

/// What the operating system says about a file, folder or link.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// What it is.
    pub kind: Kind,
    /// Its length in bytes.
    pub size: u64,
    /// The permission bits, as in `chmod`; only the write bit is meaningful where there is no such thing.
    pub mode: u32,
    /// When the content last changed.
    pub modified: Option<SystemTime>,
    /// How many names (hard links) it has.
    pub links: u64,
    /// Which file it is, and in which state.
    pub(super) stamp: Stamp,
    /// User and group.
    #[cfg_attr(not(unix), allow(dead_code, reason = "owners are not numbers"))]
    pub(super) owner: (u32, u32),
}

impl Metadata {
    /// Which file this is and in which state, to see later whether it changed.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// A file's identity and state: equal stamps mean the same file, not written in between (as far as the
/// file system's clock can tell).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) modified: (i64, i64),
}

impl Stamp {
    /// Whether both are certainly the same file, in whatever state.
    pub(super) fn same_file(self, other: Self) -> bool {
        self.inode != 0 && (self.device, self.inode) == (other.device, other.inode)
    }
}
