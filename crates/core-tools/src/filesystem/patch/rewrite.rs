//! Gives several files new contents, all or none, as a patch does.

use super::commit::commit;
use super::plan::{PatchPlan, PatchedFileState};
use super::run::{file_diff, lock_files};
use crate::filesystem::error::Error;
use crate::workspace::Workspace;

/// The files that were rewritten, or would be.
pub(in crate::filesystem) struct RewrittenFiles {
    /// The difference of all files, in unified format.
    pub(in crate::filesystem) diff: String,
    /// Remarks on what could not be cleaned up.
    pub(in crate::filesystem) notes: Vec<String>,
}

/// Rewrites the files at `paths`, all or none. `rewrite` gets the path and the content of each, and returns the new content,
/// or nothing to leave the file.
///
/// # Errors
/// A path, a file that is no text or too large, and every error of `rewrite`: nothing was changed then.
pub(in crate::filesystem) fn rewrite_files(
    workspace: &Workspace,
    paths: &[String],
    dry_run: bool,
    mut rewrite: impl FnMut(&str, &[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<RewrittenFiles, Error> {
    // Held from the first read to the last write: of two concurrent calls the second sees the result of the first.
    let _locks = lock_files(workspace, paths.iter().map(String::as_str));
    let mut plan = PatchPlan::new(workspace, &[])?;
    for path in paths {
        plan.rewrite(path, &mut rewrite)?;
    }
    let mut files = plan.files;
    files.retain(|file| !matches!(file.state, PatchedFileState::AsItIs));
    let diff = files.iter().map(file_diff).collect();
    let notes = if dry_run { Vec::new() } else { commit(&files)? };
    Ok(RewrittenFiles { diff, notes })
}
