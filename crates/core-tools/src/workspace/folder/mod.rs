//! A folder held open, and what can be done to one name in it without following a link.
//!
//! The rest of the workspace is built from these operations only, so whoever wants to know what a
//! platform promises reads one file: `unix.rs` or `portable.rs`.

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::{Entries, Folder};
#[cfg(unix)]
pub use unix::{Entries, Folder};

use std::ffi::OsString;

use super::Kind;

/// One name in a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name, as the file system has it.
    pub name: OsString,
    /// What it stands for; a link is a link.
    pub kind: Kind,
}

/// How a file is opened. A link in the last place is never followed, and nothing blocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open {
    /// To read an existing regular file.
    Read,
    /// To add to the end of an existing regular file.
    Append,
    /// To write a file that must not exist yet, readable by its owner only if `private`.
    New {
        /// Mode 0600 instead of 0666 less the umask.
        #[cfg_attr(not(unix), allow(dead_code, reason = "there are no modes"))]
        private: bool,
    },
}

#[cfg(not(unix))]
pub(super) use portable::{copy_permissions, file_metadata, identities};
#[cfg(target_os = "linux")]
pub(super) use unix::kernel;
#[cfg(unix)]
pub(super) use unix::{copy_permissions, file_metadata, identities};
