//! Paths as text: what is accepted from a client, and what is shown to one.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, shortened};

/// The longest path taken, in bytes: Linux's own limit (`PATH_MAX`).
const MAX_PATH_BYTES: usize = 4096;

/// Returns a name as text for a message or a list: what is no UTF-8 becomes U+FFFD, and control characters, which
/// could forge lines of output, are escaped.
pub fn printable(name: &OsStr) -> String {
    // 0xc2 begins the control characters past ASCII, and few others; most names have neither.
    let may_need_escape = |byte: &u8| *byte < 0x20 || matches!(byte, 0x7f | 0xc2);
    let text = name.to_string_lossy();
    if !text.as_bytes().iter().any(may_need_escape) {
        return text.into_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Refuses text that no operating system takes for a path.
pub(crate) fn check_text(path: &OsStr) -> Result<(), Error> {
    let bytes = path.as_encoded_bytes();
    let reason = if bytes.is_empty() {
        "it is empty; use `.` for the first root"
    } else if bytes.contains(&0) {
        "it contains a NUL character"
    } else if bytes.len() > MAX_PATH_BYTES {
        "it is longer than 4096 bytes"
    } else {
        return Ok(());
    };
    Err(Error::Invalid { path: shortened(&path.to_string_lossy()), reason })
}

/// Returns `path` with only names and `..` left: `.`, doubled and trailing separators mean nothing.
///
/// A drive or a root in the middle (Windows: `C:x`, `\x`) is refused.
pub(crate) fn normalize(path: &Path) -> Option<PathBuf> {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normalized.push(name),
            Component::ParentDir => normalized.push(".."),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(normalized)
}
