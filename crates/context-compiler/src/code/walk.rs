//! A walk over the folders of a project, on several threads.

use super::selection::{SkippedSourcePath, SourceSelectOptions, SourceSkipReason};
use crate::ignore::{UnreadableIgnoreFile, rules_within};
use crate::parallel::run_on_threads;
use crate::sensitive_name::is_sensitive_name;
use crate::source::path::join;
use crate::source::{SourceEntryKind, SourceTree, SourceTreeEntry};
use globset::GlobSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use workspace::ignore_rules::FolderRules;

/// Folders of version control, which are not the content of a project.
const VERSION_CONTROL_FOLDERS: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".bzr"];

/// A walk over the folders of a project.
pub(super) struct SourceFolderWalk<'a> {
    tree: &'a dyn SourceTree,
    included: GlobSet,
    excluded: GlobSet,
    options: &'a SourceSelectOptions,
    state: Mutex<SourceWalkState>,
    /// Notified when a folder is found, and when a worker has finished one.
    changed: Condvar,
}

/// The paths that a walk has met. The order of files and skipped paths is arbitrary.
#[derive(Default)]
pub(super) struct SourceWalkResult {
    pub(super) files: Vec<String>,
    pub(super) skipped: Vec<SkippedSourcePath>,
    pub(super) ignored: usize,
    /// True if the walk was ended because there are too many files.
    pub(super) too_many: bool,
}

#[derive(Default)]
struct SourceWalkState {
    result: SourceWalkResult,
    /// The folders that nobody has listed yet.
    pending: Vec<PendingSourceFolder>,
    /// Workers that are listing a folder, and may find others.
    busy_workers: usize,
}

/// A folder to list, and the rules that count for its entries.
struct PendingSourceFolder {
    path: String,
    /// The rules of the folders above.
    rules: FolderRules,
}

/// Marks a worker as busy. It is dropped even if the worker panics: otherwise the others would wait for it.
struct BusyWalkerGuard<'a, 'b>(&'a SourceFolderWalk<'b>);

impl Drop for BusyWalkerGuard<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().busy_workers -= 1;
        self.0.changed.notify_all();
    }
}

impl<'a> SourceFolderWalk<'a> {
    pub(super) fn new(
        tree: &'a dyn SourceTree,
        included: GlobSet,
        excluded: GlobSet,
        options: &'a SourceSelectOptions,
    ) -> Self {
        Self { tree, included, excluded, options, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Walks everything beneath the bases.
    pub(super) fn run(self) -> SourceWalkResult {
        run_on_threads(self.options.threads.max(1), || self.work());
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).result
    }

    pub(super) fn is_excluded(&self, path: &str) -> bool {
        !self.excluded.is_empty() && self.excluded.is_match(path)
    }

    /// Adds a folder to begin at, with the rules of the folders above it. It is skipped if one of them is ignored.
    pub(super) fn push_base(&self, base: &str) {
        let mut rules = FolderRules::default();
        let mut path = String::new();
        for name in base.split('/').filter(|name| !name.is_empty()) {
            // The folder is not listed here, so its ignore files are tried by name.
            match self.rules_in(&rules, &path, None) {
                Ok(inner) => rules = inner,
                Err(UnreadableIgnoreFile) => return self.skip(path, SourceSkipReason::Unreadable),
            }
            path = join(&path, name);
            if VERSION_CONTROL_FOLDERS.contains(&name)
                || self.is_excluded(&path)
                || rules.is_ignored(path.as_bytes(), true)
            {
                self.lock().result.ignored += 1;
                return;
            }
        }
        self.lock().pending.push(PendingSourceFolder { path, rules });
    }

    /// Lists folders until none is pending and no other worker can find one.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let folder = loop {
                if state.result.too_many {
                    return;
                }
                // Depth first: the newest folder is taken, so that few are pending at a time.
                if let Some(folder) = state.pending.pop() {
                    break folder;
                }
                if state.busy_workers == 0 {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.busy_workers += 1;
            drop(state);
            let busy = BusyWalkerGuard(self);
            self.list(folder);
            drop(busy);
        }
    }

    fn list(&self, folder: PendingSourceFolder) {
        let Ok(entries) = self.tree.list(&folder.path) else {
            return self.skip(folder.path, SourceSkipReason::Unreadable);
        };
        // Without its rules a folder is skipped: they may be what keeps its files private.
        let Ok(rules) = self.rules_in(&folder.rules, &folder.path, Some(&entries)) else {
            return self.skip(folder.path, SourceSkipReason::Unreadable);
        };
        // Collected without the lock, which each folder then takes once.
        let mut found = SourceWalkResult::default();
        let mut folders = Vec::new();
        for entry in entries {
            let path = join(&folder.path, &entry.name);
            let is_folder = entry.kind == SourceEntryKind::Folder;
            // In a linked worktree and in a submodule `.git` is a file.
            let is_version_control = is_folder && VERSION_CONTROL_FOLDERS.contains(&entry.name.as_str());
            if is_version_control || entry.name == ".git" {
                continue;
            }
            // Before the kind is looked at: an ignored path is only counted and never named.
            if self.is_excluded(&path) || rules.is_ignored(path.as_bytes(), is_folder) {
                found.ignored += 1;
            } else if is_folder {
                folders.push(PendingSourceFolder { path, rules: rules.clone() });
            } else if self.included.is_match(&path) {
                match skip_reason(&entry, &path) {
                    None => found.files.push(path),
                    Some(reason) => found.skipped.push(SkippedSourcePath { path, reason }),
                }
            }
        }
        let mut state = self.lock();
        state.pending.append(&mut folders);
        let result = &mut state.result;
        result.files.append(&mut found.files);
        result.skipped.append(&mut found.skipped);
        result.ignored += found.ignored;
        // Skipped paths count against the limit as well: a folder of a million links is no way around it.
        result.too_many |= result.files.len().max(result.skipped.len()) > self.options.max_files;
    }

    /// Returns the rules that count in `folder`.
    fn rules_in(
        &self,
        above: &FolderRules,
        folder: &str,
        entries: Option<&[SourceTreeEntry]>,
    ) -> Result<FolderRules, UnreadableIgnoreFile> {
        match self.options.ignore_files {
            true => rules_within(above, self.tree, folder, entries),
            false => Ok(FolderRules::default()),
        }
    }

    fn skip(&self, path: String, reason: SourceSkipReason) {
        self.lock().result.skipped.push(SkippedSourcePath { path, reason });
    }

    fn lock(&self) -> MutexGuard<'_, SourceWalkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reason why an entry that matches is not selected, if there is one.
fn skip_reason(entry: &SourceTreeEntry, path: &str) -> Option<SourceSkipReason> {
    match entry.kind {
        SourceEntryKind::File if is_sensitive_name(path) => Some(SourceSkipReason::SensitiveName),
        SourceEntryKind::File => None,
        SourceEntryKind::Link => Some(SourceSkipReason::Link),
        SourceEntryKind::Folder | SourceEntryKind::Other => Some(SourceSkipReason::NotRegular),
    }
}
