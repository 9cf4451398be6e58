//! [`SettingsSnapshot`]: the settings of clients in a project, as they are before a command runs.

use agent_hooks::{HookClient, HookInstallation};
use core_tools::workspace::{ConfinedPath, PathKind, Workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The size up to which a file is taken for settings.
const MAX_BYTES: u64 = 1 << 20;

/// The most files whose content is kept, in all folders together.
const MAX_FILES: usize = 4000;
/// The most bytes of content that are kept, in all folders together.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// The deepest folder that is looked into.
const MAX_DEPTH: usize = 16;

/// The settings of clients in the roots, and the files that clients load by themselves: existing files with their content,
/// and the paths of missing files.
///
/// A confined command may write everywhere in a root, so it can write these files. When the command has ended, its
/// changes of these files are undone.
#[derive(Debug)]
pub struct SettingsSnapshot {
    files: Vec<(ConfinedPath, Option<Vec<u8>>)>,
    folders: Vec<LoadedFolder>,
}

/// A folder from which clients load what they run.
#[derive(Debug)]
struct LoadedFolder {
    path: ConfinedPath,
    /// The names in it that are no folders, by path.
    entries: BTreeMap<PathBuf, LoadedEntry>,
    /// False if it has more than can be kept: then nothing in it is undone.
    is_complete: bool,
}

/// A name in such a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LoadedEntry {
    File(Vec<u8>),
    /// A link, or a file that is too large to be kept: what it holds is not undone.
    Other,
}

/// The files and bytes that may still be kept.
struct SnapshotBudget {
    files: usize,
    bytes: u64,
}

impl SettingsSnapshot {
    /// Reads the files. A file that cannot be read is left out.
    pub fn take(roots: &[PathBuf]) -> Self {
        // A workspace of its own: the one of the tools protects these files from being written back, too.
        let Ok(workspace) = Workspace::new(roots) else {
            return Self { files: Vec::new(), folders: Vec::new() };
        };
        let settings = HookClient::ALL.into_iter().flat_map(HookInstallation::project_settings);
        let names: BTreeSet<&str> = settings.chain(HookInstallation::loaded_files()).copied().collect();
        let paths = roots.iter().flat_map(|root| names.iter().map(move |name| root.join(name)));
        let located = paths.filter_map(|path| workspace.locate(&path).ok());
        let files = located.filter_map(|path| match path.is_there() {
            false => Some((path, None)),
            true => {
                let content = read(&path)?;
                Some((path, Some(content)))
            }
        });
        let mut budget = SnapshotBudget { files: MAX_FILES, bytes: MAX_TOTAL_BYTES };
        let names = HookInstallation::loaded_folders();
        // In a home folder clients keep their own state in the same place, and write it all the time.
        let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
        let projects = roots.iter().filter(|root| home.is_none() || root.canonicalize().ok() != home);
        let folders = projects.flat_map(|root| names.iter().map(move |name| root.join(name)));
        let folders = folders
            .filter_map(|path| workspace.locate(&path).ok())
            .map(|path| LoadedFolder::read(path, &mut budget))
            .collect();
        Self { files: files.collect(), folders }
    }

    /// Undoes every change since. Returns the files that were changed, and if they could not be put back, the reason.
    pub fn restore(&self) -> Vec<(String, Option<core_tools::workspace::Error>)> {
        let mut changed = Vec::new();
        for (path, content) in &self.files {
            let undone = match content {
                None if path.is_there() => path.remove_file(),
                Some(content) if read(path).as_ref() != Some(content) => put_back(path, content),
                _ => continue,
            };
            changed.push((path.display_path(), undone.err()));
        }
        for folder in &self.folders {
            folder.restore(&mut changed);
        }
        changed
    }
}

impl LoadedFolder {
    fn read(path: ConfinedPath, budget: &mut SnapshotBudget) -> Self {
        let mut entries = BTreeMap::new();
        let is_complete = collect(&path, MAX_DEPTH, budget, &mut entries);
        Self { path, entries, is_complete }
    }

    fn restore(&self, changed: &mut Vec<(String, Option<core_tools::workspace::Error>)>) {
        if !self.is_complete {
            return;
        }
        // A link in the place of the folder leads elsewhere: everything behind it would be taken for what the command wrote.
        if self.path.read_link().is_ok_and(|link| link.is_some()) && !self.entries.is_empty() {
            changed.push((self.path.display_path(), self.path.remove_file().err()));
        }
        let mut budget = SnapshotBudget { files: usize::MAX, bytes: u64::MAX };
        let mut found = BTreeMap::new();
        collect(&self.path, MAX_DEPTH, &mut budget, &mut found);
        for name in found.keys().filter(|name| !self.entries.contains_key(*name)) {
            self.undo(name, changed, ConfinedPath::remove_file);
        }
        for (name, entry) in &self.entries {
            match entry {
                LoadedEntry::File(content) if found.get(name) != Some(entry) => {
                    self.undo(name, changed, |path| put_back(path, content));
                }
                _ => {}
            }
        }
    }

    fn undo(
        &self,
        name: &Path,
        changed: &mut Vec<(String, Option<core_tools::workspace::Error>)>,
        undo: impl FnOnce(&ConfinedPath) -> Result<(), core_tools::workspace::Error>,
    ) {
        let undone = self.path.join(name.as_os_str()).and_then(|path| {
            undo(&path)?;
            Ok(path.display_path())
        });
        match undone {
            Ok(shown) => changed.push((shown, None)),
            Err(error) => {
                changed.push((format!("{}/{}", self.path.display_path(), name.display()), Some(error)));
            }
        }
    }
}

/// Adds what is beneath `folder`. Returns false if there is more than can be kept.
fn collect(
    folder: &ConfinedPath,
    depth: usize,
    budget: &mut SnapshotBudget,
    entries: &mut BTreeMap<PathBuf, LoadedEntry>,
) -> bool {
    let mut pending = vec![(folder.clone(), PathBuf::new(), depth)];
    let mut is_complete = true;
    while let Some((folder, relative, depth)) = pending.pop() {
        let Ok(opened) = folder.open_folder() else { continue };
        let Ok(listed) = opened.entries() else { continue };
        for entry in listed.filter_map(Result::ok) {
            let Ok(path) = folder.join(entry.name.as_os_str()) else { continue };
            let name = relative.join(&entry.name);
            if entry.kind == PathKind::Directory {
                match depth {
                    0 => is_complete = false,
                    depth => pending.push((path, name, depth - 1)),
                }
                continue;
            }
            if budget.files == 0 {
                return false;
            }
            budget.files -= 1;
            let kept = if entry.kind == PathKind::File { read(&path) } else { None };
            let kept = kept.filter(|content| content.len() as u64 <= budget.bytes);
            budget.bytes -= kept.as_ref().map_or(0, |content| content.len() as u64);
            entries.insert(name, kept.map_or(LoadedEntry::Other, LoadedEntry::File));
        }
    }
    is_complete
}

fn put_back(path: &ConfinedPath, content: &[u8]) -> Result<(), core_tools::workspace::Error> {
    // A link in its place would have the content written elsewhere.
    if path.read_link().is_ok_and(|link| link.is_some()) {
        path.remove_file()?;
    }
    path.write(content)
}

fn read(path: &ConfinedPath) -> Option<Vec<u8>> {
    let (file, metadata) = path.open_read().ok()?;
    if metadata.size > MAX_BYTES {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}
