//! Finds out which form a patch has.

use super::file_patch::FilePatch;
use super::{codex, syntax, unified};
use crate::filesystem::error::Error;

/// The largest patch, in bytes.
const MAX_PATCH_BYTES: usize = 4 << 20;

/// The most files of one patch: each is held open until all are written.
const MAX_FILES: usize = 200;

/// Parses a patch of either form.
pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, Error> {
    if patch.len() > MAX_PATCH_BYTES {
        return Err(syntax::error(format!(
            "it has {} bytes; at most {MAX_PATCH_BYTES} are taken",
            patch.len()
        )));
    }
    // Line ends of the patch say nothing about those of the files.
    let lines: Vec<&str> = patch.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let files = if lines.iter().any(|line| line.trim() == codex::BEGIN) {
        codex::parse(&lines)?
    } else if lines.iter().any(|line| unified::begins_file(line)) {
        unified::parse(&lines)?
    } else {
        return Err(syntax::error(
            "it is no patch: it must have the lines `*** Begin Patch` and `*** End Patch` with files such as \
             `*** Update File: src/a.rs` between them, or be a unified diff with `--- a/FILE` and `+++ b/FILE`",
        ));
    };
    if files.is_empty() {
        return Err(syntax::error(
            "it changes no file: between `*** Begin Patch` and `*** End Patch` stand parts such as \
             `*** Update File: src/a.rs`",
        ));
    }
    if files.len() > MAX_FILES {
        return Err(syntax::error(format!(
            "it changes {} files; at most {MAX_FILES} are taken",
            files.len()
        )));
    }
    Ok(files)
}
