//! The changes of a patch, computed in memory: what each file would be, and every reason why one cannot be.

use std::collections::HashMap;
use std::io::Read;

use super::file_patch::{FilePatch, Hunk};
use super::fit::{PatchedText, apply_hunks};
use super::misfit::{HunkProblem, PatchProblem};
use super::request::{PatchAction, PatchedFile};
use crate::filesystem::edit::MAX_BYTES;
use crate::filesystem::error::Error;
use crate::filesystem::mask;
use crate::filesystem::signature::{HEAD_BYTES, binary_kind};
use crate::workspace::{self, ConfinedPath, Metadata, TargetFile, Workspace};
use error_causes::chain;

/// The most problems that are named: a patch for another version of a project fits nowhere.
const MAX_PROBLEMS: usize = 5;

/// The changes of all files.
pub(super) struct PatchPlan<'a> {
    workspace: &'a Workspace,
    pub(super) files: Vec<PlannedPatchFile>,
    /// The index in `files`, by where the path leads.
    by_place: HashMap<String, usize>,
    /// The report on each part of the patch.
    pub(super) report: Vec<PatchedFile>,
    problems: Vec<PatchProblem>,
    pub(super) notes: Vec<String>,
    /// The bytes that files in memory may still have.
    free_bytes: u64,
}

/// A file that a patch changes.
pub(super) struct PlannedPatchFile {
    pub(super) path: ConfinedPath,
    /// The file as it is, if it exists.
    pub(super) existing: Option<ExistingPatchFile>,
    pub(super) state: PatchedFileState,
}

/// A file before a patch.
pub(super) struct ExistingPatchFile {
    pub(super) target: TargetFile,
    pub(super) metadata: Metadata,
    /// The content, where it was needed.
    pub(super) content: Option<Vec<u8>>,
}

/// The state of a file after the parts of a patch so far.
pub(super) enum PatchedFileState {
    AsItIs,
    /// It has this content, and as a new file the permissions of this one.
    Written {
        content: Vec<u8>,
        model: Option<Metadata>,
    },
    Removed,
}

/// The treatment of a link: it is followed to its file, or is itself what changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchLinkTreatment {
    Follow,
    OwnName,
}

impl<'a> PatchPlan<'a> {
    /// Computes the changes.
    ///
    /// # Errors
    /// [`Error::Patch`] with everything that does not fit.
    pub(super) fn new(workspace: &'a Workspace, patches: &[FilePatch]) -> Result<Self, Error> {
        let mut plan = Self {
            workspace,
            files: Vec::new(),
            by_place: HashMap::new(),
            report: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
            free_bytes: MAX_BYTES,
        };
        for patch in patches {
            let planned = match patch {
                FilePatch::Add { path, content, overwrite } => plan.add(path, content, *overwrite),
                FilePatch::Delete { path, hunks } => plan.delete(path, hunks),
                FilePatch::Update { path, move_to, hunks } => plan.update(path, move_to.as_deref(), hunks),
            };
            // The other files are tried all the same, so that the error names everything that does not fit.
            if let Err(error) = planned {
                let path = path_of(patch).to_owned();
                plan.problems.push(PatchProblem {
                    path,
                    hunk: None,
                    problem: HunkProblem::File(chain(&error)),
                });
            }
        }
        if plan.problems.is_empty() {
            return Ok(plan);
        }
        let total = plan.problems.len();
        plan.problems.truncate(MAX_PROBLEMS);
        Err(Error::Patch { problems: plan.problems, total })
    }

    fn add(&mut self, path: &str, content: &str, overwrite: bool) -> Result<(), Error> {
        let index = self.open(path, PatchLinkTreatment::Follow)?;
        let before = self.content(index)?;
        let shown = self.files[index].path.display_path();
        if before.is_some() && !overwrite {
            return Err(Error::Path(workspace::Error::AlreadyExists { path: shown }));
        }
        match (&before, mask::contains(content.as_bytes())) {
            (Some(before), true) => refuse_new_masks(content, before, &shown)?,
            (None, true) => {
                self.notes.push(format!("{shown} has [redacted:…] in it: the mask itself, not the secret"));
            }
            _ => {}
        }
        let lines = content.lines().count() as u64;
        let (action, removed) = match &before {
            Some(before) => {
                self.notes.push(format!("{shown} existed, and was replaced"));
                (PatchAction::Modified, before.split_inclusive(|byte| *byte == b'\n').count() as u64)
            }
            None => (PatchAction::Added, 0),
        };
        self.write(index, content.as_bytes().to_vec(), None);
        self.report.push(PatchedFile { path: shown, action, moved_from: None, added: lines, removed });
        Ok(())
    }

    fn delete(&mut self, path: &str, hunks: &[Hunk]) -> Result<(), Error> {
        if !hunks.is_empty() {
            let index = self.open(path, PatchLinkTreatment::Follow)?;
            let Some(content) = self.content(index)? else { return self.missing(path) };
            match self.apply(path, &content, hunks) {
                None => return Ok(()),
                Some(left) if !left.is_empty() => {
                    let problem = HunkProblem::LeavesText;
                    self.problems.push(PatchProblem { path: path.to_owned(), hunk: None, problem });
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        let index = self.remove(path)?;
        let path = self.files[index].path.display_path();
        let removed = hunks.iter().map(|hunk| hunk.changed_lines().1).sum();
        self.report.push(PatchedFile {
            path,
            action: PatchAction::Deleted,
            moved_from: None,
            added: 0,
            removed,
        });
        Ok(())
    }

    fn update(&mut self, path: &str, move_to: Option<&str>, hunks: &[Hunk]) -> Result<(), Error> {
        let index = self.open(path, PatchLinkTreatment::Follow)?;
        let Some(content) = self.content(index)? else { return self.missing(path) };
        let Some(patched) = self.apply(path, &content, hunks) else { return Ok(()) };
        let model = self.files[index].existing.as_ref().map(|existing| existing.metadata.clone());
        let changed = hunks.iter().map(Hunk::changed_lines);
        let (added, removed) = changed.fold((0, 0), |sum, hunk| (sum.0 + hunk.0, sum.1 + hunk.1));
        let mut report = PatchedFile {
            path: self.files[index].path.display_path(),
            action: PatchAction::Modified,
            moved_from: None,
            added,
            removed,
        };
        match move_to {
            None => self.write(index, patched, model),
            Some(destination) => {
                let source = self.remove(path)?;
                let target = self.open(destination, PatchLinkTreatment::Follow)?;
                self.check_not_same_file(source, target)?;
                if let Some(replaced) = self.content(target)? {
                    let shown = self.files[target].path.display_path();
                    self.notes.push(format!("{shown} existed ({} bytes), and was replaced", replaced.len()));
                }
                self.write(target, patched, model);
                report.action = PatchAction::Renamed;
                report.moved_from =
                    Some(std::mem::replace(&mut report.path, self.files[target].path.display_path()));
            }
        }
        self.report.push(report);
        Ok(())
    }

    /// Gives the file at `path` the content that `rewrite` makes of its own, if it makes any.
    pub(super) fn rewrite(
        &mut self,
        path: &str,
        rewrite: &mut impl FnMut(&str, &[u8]) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<(), Error> {
        let index = self.open(path, PatchLinkTreatment::Follow)?;
        let Some(content) = self.content(index)? else { return self.missing(path) };
        let shown = self.files[index].path.display_path();
        if let Some(rewritten) = rewrite(&shown, &content)? {
            let model = self.files[index].existing.as_ref().map(|existing| existing.metadata.clone());
            self.write(index, rewritten, model);
        }
        Ok(())
    }

    /// Applies the hunks of one file. Returns nothing if they do not fit, which is then among the problems.
    fn apply(&mut self, path: &str, content: &[u8], hunks: &[Hunk]) -> Option<Vec<u8>> {
        let mut problem = |hunk: Option<usize>, problem: HunkProblem| {
            let hunk = hunk.map(|number| (number, hunks.len()));
            self.problems.push(PatchProblem { path: path.to_owned(), hunk, problem });
        };
        match apply_hunks(content, hunks) {
            Ok(PatchedText { content: patched, notes }) => {
                let new: String =
                    hunks.iter().flat_map(Hunk::new_lines).flat_map(|line| [line, "\n"]).collect();
                if let Err(error) = refuse_new_masks(&new, content, path) {
                    problem(None, HunkProblem::File(error.to_string()));
                    return None;
                }
                for (number, note) in notes {
                    self.notes.push(format!("{path}: hunk {number} {note}"));
                }
                Some(patched)
            }
            Err(problems) => {
                problems.into_iter().for_each(|(number, found)| problem(Some(number), found));
                None
            }
        }
    }

    /// Returns the index of the file at `path`, which need not exist.
    fn open(&mut self, path: &str, links: PatchLinkTreatment) -> Result<usize, Error> {
        if path.ends_with('/') {
            return Err(Error::Parameters(
                "a path of the patch ends in `/`, which names a folder; name the file in it",
            ));
        }
        let path = self.workspace.locate(path)?;
        let place = match links {
            PatchLinkTreatment::Follow => path.resolved()?,
            PatchLinkTreatment::OwnName => path.resolved_name()?,
        };
        // Two spellings of one file are one entry. Otherwise the second part of a patch would undo the first.
        if let Some(index) = self.by_place.get(&place) {
            return Ok(*index);
        }
        let exists = match links {
            PatchLinkTreatment::Follow => path.kind()?.is_some(),
            PatchLinkTreatment::OwnName => path.is_there(),
        };
        let existing = if exists {
            let target = match links {
                PatchLinkTreatment::Follow => path.target()?,
                PatchLinkTreatment::OwnName => path.own_target()?,
            };
            target.check_changeable()?;
            target.metadata()?.map(|metadata| ExistingPatchFile { target, metadata, content: None })
        } else {
            path.check_changeable()?;
            None
        };
        self.files.push(PlannedPatchFile { path, existing, state: PatchedFileState::AsItIs });
        self.by_place.insert(place, self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    /// Returns the content that the file has after the parts so far, or nothing if there is none.
    fn content(&mut self, index: usize) -> Result<Option<Vec<u8>>, Error> {
        let file = &mut self.files[index];
        match (&file.state, &mut file.existing) {
            (PatchedFileState::Written { content, .. }, _) => Ok(Some(content.clone())),
            (PatchedFileState::Removed, _) | (PatchedFileState::AsItIs, None) => Ok(None),
            (PatchedFileState::AsItIs, Some(existing)) => {
                if existing.content.is_none() {
                    let content = read_text(existing, self.free_bytes)?;
                    self.free_bytes = self.free_bytes.saturating_sub(content.len() as u64);
                    existing.content = Some(content);
                }
                Ok(existing.content.clone())
            }
        }
    }

    fn write(&mut self, index: usize, content: Vec<u8>, model: Option<Metadata>) {
        self.files[index].state = PatchedFileState::Written { content, model };
    }

    fn remove(&mut self, path: &str) -> Result<usize, Error> {
        let index = self.open(path, PatchLinkTreatment::OwnName)?;
        let file = &mut self.files[index];
        match (&file.state, &file.existing) {
            (PatchedFileState::AsItIs, Some(existing)) => existing.target.check_removable()?,
            (PatchedFileState::Written { .. }, _) => {}
            _ => return self.missing(path),
        }
        file.state = PatchedFileState::Removed;
        Ok(index)
    }

    /// Refuses a move to another spelling of the same name, where the file system ignores case: to write the one and then
    /// remove the other would lose the file.
    fn check_not_same_file(&self, source: usize, destination: usize) -> Result<(), Error> {
        let existing = |index: usize| self.files[index].existing.as_ref().map(|existing| &existing.metadata);
        match (existing(source), existing(destination)) {
            (Some(one), Some(other)) if source == destination || one.stamp().same_file(other.stamp()) => {
                let path = self.files[destination].path.display_path();
                Err(Error::Path(workspace::Error::AlreadyExists { path }))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a file that does not exist, with the nearest name.
    fn missing<T>(&self, path: &str) -> Result<T, Error> {
        let path = self.workspace.locate(path)?;
        path.metadata()?;
        // It exists, and an earlier part of the patch removed it.
        Err(Error::Path(workspace::Error::NotFound { path: path.display_path(), hint: None }))
    }
}

fn path_of(patch: &FilePatch) -> &str {
    match patch {
        FilePatch::Add { path, .. } | FilePatch::Delete { path, .. } | FilePatch::Update { path, .. } => path,
    }
}

fn refuse_new_masks(new: &str, original: &[u8], path: &str) -> Result<(), Error> {
    match mask::first_new(new.as_bytes(), original) {
        Some(mask) => Err(Error::Masked { path: path.to_owned(), mask }),
        None => Ok(()),
    }
}

/// Reads a text file of at most `limit` bytes.
fn read_text(existing: &mut ExistingPatchFile, limit: u64) -> Result<Vec<u8>, Error> {
    let path = existing.target.display_path().to_owned();
    let (file, metadata) = existing.target.open_read()?;
    if metadata.size > limit {
        return Err(Error::TooLarge { path, size: metadata.size, limit });
    }
    let mut content = Vec::new();
    // Bounded again: the file may have grown since its size was read.
    file.take(limit + 1).read_to_end(&mut content).map_err(|source| Error::read(&path, source))?;
    if let Some(kind) = binary_kind(&content[..content.len().min(HEAD_BYTES)]) {
        let advice = "; a patch changes text";
        return Err(Error::Binary { path, kind, size: metadata.size, advice });
    }
    // Of the file that was read: the patch is written only if the file is still the same.
    existing.metadata = metadata;
    Ok(content)
}
