//! [`LoadedFolder`]: a folder from which clients load what they run, as it is before a command runs.

use super::put_back::{
    UndoneChanges, holds, is_free_of_links, is_link, is_there_without_links, not_put_back, put_back, read,
    remove,
};
use core_tools::workspace::{ConfinedPath, Folder, PathKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The most names that are kept of a folder.
const MAX_NAMES: usize = 20_000;
/// The most bytes of content that are kept of a folder. A limit of each folder: what a command writes into one takes no
/// protection from another.
const MAX_TOTAL_BYTES: u64 = 8 << 20;
/// The deepest folder that is looked into.
const MAX_DEPTH: usize = 64;
/// The most folders that wait to be looked into.
const MAX_PENDING: usize = 50_000;
/// The files that are removed before the folder is listed again.
const BATCH: usize = 1000;

/// A folder from which clients load what they run.
#[derive(Debug)]
pub(super) struct LoadedFolder {
    /// The path by which clients load the folder.
    named: ConfinedPath,
    /// The path of the same folder without links.
    real: ConfinedPath,
    /// The names in it that are no folders, by path.
    entries: BTreeMap<PathBuf, LoadedEntry>,
    /// False if it has more names than can be kept: then only what was kept is put back, and nothing is removed.
    has_all_names: bool,
    /// The paths beneath it that a person has opened for the command. These and everything beneath them stay as they are.
    opened: Vec<PathBuf>,
}

/// A name in such a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LoadedEntry {
    File(Vec<u8>),
    Link(PathBuf),
    /// A file that is too large to be kept: what it holds is not undone.
    Other,
}

impl LoadedFolder {
    pub(super) fn take(named: ConfinedPath, real: ConfinedPath, opened: Vec<PathBuf>) -> Self {
        let mut folder = Self { named, real, entries: BTreeMap::new(), has_all_names: true, opened };
        folder.read_entries();
        if !folder.has_all_names {
            tracing::warn!(
                "{} has more than {MAX_NAMES} files: what a command adds there is not removed",
                folder.named.display_path()
            );
        }
        folder
    }

    fn read_entries(&mut self) {
        let (mut free_bytes, mut left_out) = (MAX_TOTAL_BYTES, 0_u64);
        let mut pending = vec![PathBuf::new()];
        while let Some(relative) = pending.pop() {
            let Some(opened) = open(&self.real, &relative) else { continue };
            let Ok(listed) = opened.entries() else { continue };
            for entry in listed.filter_map(Result::ok) {
                let name = relative.join(&entry.name);
                if entry.kind == PathKind::Directory {
                    pending.push(name);
                    self.has_all_names &= pending.len() < MAX_NAMES;
                } else {
                    let Ok(path) = self.real.join(name.as_os_str()) else { continue };
                    let kept = LoadedEntry::of(&path, entry.kind, &mut free_bytes);
                    left_out += u64::from(kept == LoadedEntry::Other);
                    self.entries.insert(name, kept);
                    self.has_all_names &= self.entries.len() < MAX_NAMES;
                }
                if !self.has_all_names {
                    return;
                }
            }
        }
        if left_out > 0 {
            tracing::warn!(
                "{left_out} files in {} are too large to be put back if a command changes them",
                self.named.display_path()
            );
        }
    }

    pub(super) fn restore(&self, changes: &mut UndoneChanges) {
        if self.named.relative() != self.real.relative() && is_there_without_links(&self.named) {
            // It stands where a link of the user was.
            remove_new(&self.named, |_| false, changes);
        }
        if is_link(&self.real) {
            // It led nowhere before, or it would have been followed.
            if matches!(self.real.kind(), Ok(Some(_))) {
                changes.push(&self.real, remove(&self.real));
            }
            return;
        }
        if self.has_all_names {
            remove_new(&self.real, |name| self.entries.contains_key(name) || self.is_opened(name), changes);
        }
        for (name, entry) in self.entries.iter().filter(|(name, _)| !self.is_opened(name)) {
            let Ok(path) = self.real.join(name.as_os_str()) else { continue };
            entry.restore(&path, changes);
        }
    }

    fn is_opened(&self, name: &Path) -> bool {
        self.opened.iter().any(|opened| name.starts_with(opened))
    }
}

impl LoadedEntry {
    fn of(path: &ConfinedPath, kind: PathKind, free_bytes: &mut u64) -> Self {
        match kind {
            PathKind::Symlink => match path.read_link() {
                Ok(Some(target)) => Self::Link(target),
                _ => Self::Other,
            },
            PathKind::File => {
                let fits = path.link_metadata().is_ok_and(|metadata| metadata.size <= *free_bytes);
                match fits.then(|| read(path)).flatten() {
                    Some(content) => {
                        *free_bytes = free_bytes.saturating_sub(content.len() as u64);
                        Self::File(content)
                    }
                    None => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }

    fn restore(&self, path: &ConfinedPath, changes: &mut UndoneChanges) {
        match self {
            Self::File(content) if !holds(path, content) => changes.push(path, put_back(path, content)),
            // A missing link has clients load less, and not what the command wants.
            Self::Link(target) if path.is_there() => {
                let now = path.read_link().ok().flatten();
                if now.as_ref() != Some(target) {
                    let problem = format!("it was a link to {}, and was removed", target.display());
                    changes.push(path, remove(path).and(Err(not_put_back(path, problem))));
                }
            }
            _ => {}
        }
    }
}

/// Removes what is in `top` and does not stay, by its path beneath `top`. No link is followed, and only a limited number of names is in memory.
fn remove_new(top: &ConfinedPath, stays: impl Fn(&Path) -> bool, changes: &mut UndoneChanges) {
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        loop {
            let Some(opened) = open(top, &relative) else { break };
            let Ok(listed) = opened.entries() else { break };
            let (mut new, mut folders): (Vec<OsString>, Vec<PathBuf>) = Default::default();
            for entry in listed.filter_map(Result::ok) {
                let name = relative.join(&entry.name);
                if entry.kind == PathKind::Directory {
                    folders.push(name);
                } else if !stays(&name) {
                    new.push(entry.name);
                }
                if new.len() == BATCH || folders.len() == MAX_PENDING {
                    break;
                }
            }
            let mut removed = 0_usize;
            for name in &new {
                let Ok(path) = top.join(relative.join(name).as_os_str()) else { continue };
                let undone = remove(&path);
                removed += usize::from(undone.is_ok());
                changes.push(&path, undone);
            }
            if new.len() == BATCH && removed > 0 {
                continue;
            }
            let is_deep = relative.components().count() >= MAX_DEPTH && !folders.is_empty();
            if new.len() == BATCH || is_deep || pending.len() + folders.len() >= MAX_PENDING {
                changes
                    .push(top, Err(not_put_back(top, "the command wrote more into it than can be removed")));
                return;
            }
            pending.extend(folders);
            break;
        }
    }
}

/// Opens the folder at `relative` beneath `top`. No link is followed.
fn open(top: &ConfinedPath, relative: &Path) -> Option<Folder> {
    if !top.is_there() || !is_free_of_links(top) {
        return None;
    }
    let mut folder = top.open_folder().ok()?;
    for name in relative {
        folder = folder.child(name).ok()?;
    }
    Some(folder)
}
