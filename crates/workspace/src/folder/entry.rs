//! One name in a folder.

use std::ffi::OsString;

use crate::metadata::PathKind;

/// One name in a folder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirEntry {
    /// The name, as the file system has it.
    pub name: OsString,
    /// The kind of thing it names. A link is reported as a link.
    pub kind: PathKind,
}
