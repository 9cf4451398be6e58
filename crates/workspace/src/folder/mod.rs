//! A folder held open, and what can be done to one name in it without following a link.
//!
//! The rest of the workspace is built from these operations only, so one file says what a platform promises:
//! `unix.rs` or `portable.rs`.

mod entry;
mod open_mode;
#[cfg(target_os = "linux")]
pub(crate) mod openat2;
#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

pub use entry::DirEntry;
pub(crate) use open_mode::OpenMode;
#[cfg(not(unix))]
pub use portable::{Folder, FolderEntries};
#[cfg(unix)]
pub use unix::{Folder, FolderEntries};

#[cfg(not(unix))]
pub(crate) use portable::{copy_permissions, file_metadata, identities};
#[cfg(unix)]
pub(crate) use unix::{copy_permissions, file_metadata, identities};
