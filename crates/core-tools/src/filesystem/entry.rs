//! Marks and classes of directory entries that listings, trees and walks share.

use std::ffi::OsStr;

use crate::workspace::PathKind;

/// Returns the suffix by which `ls -F` marks a kind.
pub(super) fn kind_suffix(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Directory => "/",
        PathKind::Symlink => "@",
        PathKind::Fifo => "|",
        PathKind::Socket => "=",
        PathKind::File | PathKind::Device | PathKind::Other => "",
    }
}

/// Returns true if a name begins with a dot.
pub(super) fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}
