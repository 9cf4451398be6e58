//! The difference between two texts, and the size of what can be compared.

use std::time::Duration;

use similar::TextDiff;

use crate::filesystem::limits::MAX_TEXT_BYTES;

/// The largest file edited, in bytes: the file, its copy and the difference are held in memory at once.
pub(in crate::filesystem) const MAX_BYTES: u64 = 64 << 20;
/// The longest time spent on the shortest difference. After that `similar` returns a longer one.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);
/// Unchanged lines shown around each change, as in `diff -u`.
const CONTEXT_LINES: usize = 3;

/// Returns the difference in unified format, empty if there is none.
pub(in crate::filesystem) fn unified_diff(old: &[u8], new: &[u8], path: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&*old, &*new);
    diff.unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

/// Cuts a difference that is too long after a whole line. Returns the note that says so.
pub(in crate::filesystem) fn truncate_diff(diff: &mut String) -> Option<String> {
    truncate_diff_to(diff, MAX_TEXT_BYTES)
}

/// Cuts a difference of more than `max_bytes` after a whole line. Returns the note that says so.
pub(super) fn truncate_diff_to(diff: &mut String, max_bytes: usize) -> Option<String> {
    if diff.len() <= max_bytes {
        return None;
    }
    let full_bytes = diff.len();
    let end = diff.floor_char_boundary(max_bytes);
    diff.truncate(diff[..end].rfind('\n').map_or(end, |newline| newline + 1));
    Some(format!("the first {} of {full_bytes} bytes of the diff are given", diff.len()))
}
