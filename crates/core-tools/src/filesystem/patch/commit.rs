//! Writes the files of a plan: all, or none.
//!
//! Every new content is on disk under a temporary name before the first file is replaced, so what a full disk or missing
//! permissions prevent happens before anything changes. Then each file takes its name in one step, and files that go get a
//! temporary name until all is done. If a step fails, those before it are undone. A process that is killed between two
//! steps leaves some files new and others old, each of them whole.

use super::plan::{ExistingPatchFile, PatchedFileState, PlannedPatchFile};
use crate::filesystem::error::Error;
use crate::workspace::{
    self, ConfinedPath, FileReplaceCondition, Metadata, SetAsideFile, StagedFile, TargetFile,
};

/// A file that gets a new content.
struct PatchFileToWrite<'a> {
    target: TargetRef<'a>,
    content: &'a [u8],
    existing: Option<&'a ExistingPatchFile>,
    model: Option<&'a Metadata>,
}

/// The target of a file that exists, or of one that is new.
enum TargetRef<'a> {
    Existing(&'a TargetFile),
    New(TargetFile),
}

impl TargetRef<'_> {
    fn get(&self) -> &TargetFile {
        match self {
            Self::Existing(target) => target,
            Self::New(target) => target,
        }
    }
}

/// Makes the changes. Returns remarks on what could not be cleaned up.
///
/// # Errors
/// Nothing was changed, or the error says what could not be undone.
pub(super) fn commit(files: &[PlannedPatchFile]) -> Result<Vec<String>, Error> {
    let mut created_folders = Vec::new();
    let committed = create_targets(files, &mut created_folders).and_then(|writes| commit_all(&writes, files));
    if committed.is_err() {
        // Only those that are empty, the innermost first.
        created_folders.iter().rev().for_each(|folder| {
            folder.remove_empty_folder();
        });
    }
    committed
}

/// Creates missing folders, and returns the files that get a new content.
fn create_targets<'a>(
    files: &'a [PlannedPatchFile],
    created_folders: &mut Vec<ConfinedPath>,
) -> Result<Vec<PatchFileToWrite<'a>>, Error> {
    let mut writes = Vec::new();
    for file in files {
        let PatchedFileState::Written { content, model } = &file.state else { continue };
        let target = match &file.existing {
            Some(existing) => TargetRef::Existing(&existing.target),
            None => {
                created_folders.extend(file.path.create_parents()?);
                TargetRef::New(file.path.target()?)
            }
        };
        let existing = file.existing.as_ref();
        // A file that is replaced keeps its own permissions.
        let model = existing.map(|existing| &existing.metadata).or(model.as_ref());
        writes.push(PatchFileToWrite { target, content, existing, model });
    }
    Ok(writes)
}

fn commit_all(writes: &[PatchFileToWrite<'_>], files: &[PlannedPatchFile]) -> Result<Vec<String>, Error> {
    let staged = writes.iter().map(PatchFileToWrite::stage).collect::<Result<Vec<StagedFile<'_>>, _>>()?;
    for (done, file) in staged.into_iter().enumerate() {
        if let Err(error) = file.commit() {
            return Err(undo(&writes[..done], error.into()));
        }
    }
    let mut set_aside: Vec<SetAsideFile<'_>> = Vec::new();
    for existing in files.iter().filter_map(removed) {
        match set_aside_unchanged(existing) {
            Ok(file) => set_aside.push(file),
            Err(error) => {
                let mut error = Error::from(error);
                for file in set_aside.into_iter().rev() {
                    if let Err(failed) = file.restore() {
                        error = Error::NotUndone { failed: failed.to_string(), cause: Box::new(error) };
                    }
                }
                return Err(undo(writes, error));
            }
        }
    }
    let left = set_aside.into_iter().filter_map(|file| file.remove().err());
    Ok(left.map(|error| format!("{error}: it is left under a temporary name")).collect())
}

impl PatchFileToWrite<'_> {
    fn stage(&self) -> Result<StagedFile<'_>, workspace::Error> {
        let expect = match self.existing {
            // Other processes do not know our locks.
            Some(existing) => FileReplaceCondition::Unchanged(existing.metadata.stamp()),
            None => FileReplaceCondition::Missing,
        };
        self.target.get().stage(self.content, expect, self.model)
    }

    /// Gives the file its old content again, or removes it if it is new.
    fn undo(&self) -> Result<(), workspace::Error> {
        let target = self.target.get();
        match self.existing.and_then(|existing| existing.content.as_ref()) {
            Some(content) => target.replace(content, FileReplaceCondition::Anything),
            None => target.set_aside()?.remove(),
        }
    }
}

/// Returns the file that a part of the patch removes, if it does.
fn removed(file: &PlannedPatchFile) -> Option<&ExistingPatchFile> {
    match file.state {
        PatchedFileState::Removed => file.existing.as_ref(),
        _ => None,
    }
}

fn set_aside_unchanged(existing: &ExistingPatchFile) -> Result<SetAsideFile<'_>, workspace::Error> {
    match existing.target.metadata()? {
        Some(found) if found.stamp() == existing.metadata.stamp() => existing.target.set_aside(),
        _ => Err(workspace::Error::Changed { path: existing.target.display_path().to_owned() }),
    }
}

/// Undoes `writes`, the last first. Returns `error`, with what could not be undone.
fn undo(writes: &[PatchFileToWrite<'_>], error: Error) -> Error {
    writes.iter().rev().fold(error, |error, file| match file.undo() {
        Ok(()) => error,
        Err(failed) => Error::NotUndone { failed: failed.to_string(), cause: Box::new(error) },
    })
}
