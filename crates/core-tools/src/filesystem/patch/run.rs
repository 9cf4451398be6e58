//! One call of `apply_patch`, from its text to the files.

use super::commit::commit;
use super::file_patch::FilePatch;
use super::parse::parse;
use super::plan::{PatchPlan, PatchedFileState, PlannedPatchFile};
use super::request::{ApplyPatch, PatchResult};
use crate::filesystem::edit::{truncate_diff, unified_diff};
use crate::filesystem::error::Error;
use crate::workspace::{TargetFile, TargetLocks, Workspace};

/// Applies a patch of several files in the form of Codex or as a unified diff. If one part does not fit, nothing is
/// changed, and all parts that do not fit are reported.
///
/// Lines are compared exactly, then without blanks at their ends, then without indentation, then with typographic
/// characters read as their ASCII equivalents. Lines that the patch keeps stay as they are in the file. Line ends and
/// permissions stay. Each file is replaced in one step; if a step fails, the earlier steps are undone. A process that
/// is killed between two steps leaves some files in the new state and others in the old state, each file complete.
///
/// # Errors
/// [`Error::PatchSyntax`], [`Error::Patch`], and every failure to write.
pub fn apply_patch(workspace: &Workspace, input: &ApplyPatch) -> Result<PatchResult, Error> {
    let patches = parse(&input.patch)?;
    // Held from the first read to the last write: of two concurrent calls the second sees the result of the first.
    let _locks = lock(workspace, &patches);
    let PatchPlan { files, report, mut notes, .. } = PatchPlan::new(workspace, &patches)?;
    let mut diff = String::new();
    if input.dry_run {
        diff = files.iter().map(file_diff).collect();
        notes.extend(truncate_diff(&mut diff));
    } else {
        notes.extend(commit(&files)?);
    }
    Ok(PatchResult { files: report, dry_run: input.dry_run, diff, notes })
}

/// Locks the files that exist. A new one needs no lock: it takes its name only if the name is free.
fn lock(workspace: &Workspace, patches: &[FilePatch]) -> TargetLocks {
    lock_files(workspace, patches.iter().flat_map(paths))
}

/// Locks the files at these paths that exist.
pub(super) fn lock_files<'a>(workspace: &Workspace, paths: impl Iterator<Item = &'a str>) -> TargetLocks {
    let located = paths.filter_map(|path| workspace.locate(path).ok());
    // Both the link and the file that it leads to.
    let targets = located.flat_map(|path| [path.target(), path.own_target()].into_iter().flatten());
    TargetFile::lock_all(targets)
}

fn paths(patch: &FilePatch) -> Vec<&str> {
    match patch {
        FilePatch::Add { path, .. } | FilePatch::Delete { path, .. } => vec![path],
        FilePatch::Update { path, move_to, .. } => {
            std::iter::once(path).chain(move_to).map(String::as_str).collect()
        }
    }
}

pub(super) fn file_diff(file: &PlannedPatchFile) -> String {
    let old = file.existing.as_ref().and_then(|existing| existing.content.as_deref()).unwrap_or_default();
    match &file.state {
        PatchedFileState::AsItIs => String::new(),
        PatchedFileState::Written { content, .. } => unified_diff(old, content, &file.path.display_path()),
        PatchedFileState::Removed => unified_diff(old, b"", &file.path.display_path()),
    }
}

/// Returns the paths in a patch with the use that it makes of each, for a policy to judge.
///
/// # Errors
/// [`Error::PatchSyntax`].
#[cfg(feature = "mcp")]
pub(crate) fn patched_paths(patch: &str) -> Result<Vec<role_policy::PatchedPath>, Error> {
    use role_policy::PatchedPath;
    let mut paths = Vec::new();
    for patch in parse(patch)? {
        match patch {
            // One that exists is replaced unread, whatever it held.
            FilePatch::Add { path, .. } => paths.push(PatchedPath::Created(path)),
            FilePatch::Delete { path, .. } => paths.push(PatchedPath::Removed(path)),
            FilePatch::Update { path, move_to: None, .. } => paths.push(PatchedPath::Edited(path)),
            FilePatch::Update { path, move_to: Some(destination), .. } => {
                // A link is followed to be read, and is itself removed.
                paths.push(PatchedPath::Edited(path.clone()));
                paths.push(PatchedPath::Moved(path));
                paths.push(PatchedPath::Created(destination));
            }
        }
    }
    Ok(paths)
}
