//! The patch of one file: written with its secrets masked, and divided into hunks.

use super::private_key::mask_key_lines;
use crate::changes::{ChangedFile, FileChangeKind};
use crate::decoded_text::{display_path, normalise};
use crate::load::FileLoader;
use std::borrow::Cow;

/// Returns the patch of `file` with the headers of a unified diff and its secrets masked, and the number of secrets.
pub(super) fn masked_patch(loader: &FileLoader<'_>, file: &ChangedFile, hunks: &str) -> (String, usize) {
    let path = display_path(&file.path);
    let (before, after) = match file.kind {
        FileChangeKind::Added | FileChangeKind::Untracked => ("/dev/null".to_owned(), format!("b/{path}")),
        FileChangeKind::Deleted => (format!("a/{path}"), "/dev/null".to_owned()),
        FileChangeKind::Modified => (format!("a/{path}"), format!("b/{path}")),
    };
    let (hunks, key_lines) = match file.kind {
        // The hunk of an untracked file is the whole file, which was masked before it became a hunk.
        FileChangeKind::Untracked => (Cow::Borrowed(hunks), 0),
        _ => mask_key_lines(loader, file, hunks),
    };
    let (text, redactions) = loader.mask(normalise(&format!("--- {before}\n+++ {after}\n{hunks}")));
    (text, redactions + key_lines)
}

/// Divides a patch into its hunks; the headers stay with the first one. A line of content begins with a sign, so a line
/// that begins with `@@` begins a hunk.
pub(super) fn split_hunks(patch: &str) -> Vec<&str> {
    let mut hunks = Vec::new();
    let mut rest = patch;
    while !rest.is_empty() {
        // The headers precede the first `@@`; every other hunk begins with its own.
        let search_from =
            if hunks.is_empty() { rest.find("\n@@").map_or(0, |newline| newline + 1) } else { 0 };
        let next = rest.get(search_from..).and_then(|after| after.find("\n@@"));
        let end = next.map_or(rest.len(), |newline| search_from + newline + 1);
        let (hunk, after) = rest.split_at(end);
        hunks.push(hunk);
        rest = after;
    }
    hunks
}

/// Returns true for lock files, which programs write and whose lines tell a reader little.
pub(crate) fn is_lock_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = std::path::Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("lock"))
        || matches!(name, "package-lock.json" | "npm-shrinkwrap.json" | "pnpm-lock.yaml" | "go.sum")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_divided_at_its_hunks_and_headers_stay_with_the_first() {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+@@\n@@ -9 +9 @@\n c\n";
        assert_eq!(split_hunks(patch), ["--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+@@\n", "@@ -9 +9 @@\n c\n"]);
        assert_eq!(split_hunks("--- a/x\n+++ b/x\n"), ["--- a/x\n+++ b/x\n"]);
    }
}
