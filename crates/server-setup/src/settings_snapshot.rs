//! [`SettingsSnapshot`]: the settings of clients in a project, as they are before a command runs.

mod link_state;
mod loaded_folder;
#[cfg(test)]
mod tests;

use agent_hooks::{HookClient, HookInstallation};
use core_tools::workspace::{ConfinedPath, Error, PathKind, Workspace};
use link_state::{LinkStates, is_free_of_links, without_links};
use loaded_folder::LoadedFolder;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The size up to which a file is taken for settings.
const MAX_BYTES: u64 = 1 << 20;

/// The most changes that are told one by one.
const MAX_TOLD: usize = 100;

/// The settings of clients in the roots, and the files that clients load by themselves: existing files with their content,
/// and the paths of missing files.
///
/// A confined command may write everywhere in a root, so it can write these files. When the command has ended, its
/// changes of these files are undone. A link of the user on the way to them stays, and what it leads to is put back. A
/// link that the command made is removed, and nothing behind that link is touched.
#[derive(Debug)]
pub struct SettingsSnapshot {
    links: LinkStates,
    files: Vec<SettingsFile>,
    folders: Vec<LoadedFolder>,
}

/// A file that clients read.
#[derive(Debug)]
struct SettingsFile {
    /// The path by which clients read the file.
    named: ConfinedPath,
    /// The path of the same file without links.
    real: ConfinedPath,
    content: Option<Vec<u8>>,
}

/// The changes that were undone, and those that could not be.
#[derive(Debug, Default)]
struct UndoneChanges {
    told: Vec<(String, Option<Error>)>,
    /// The number of undone changes that are not told one by one.
    further_undone: usize,
    /// The number of changes that could not be undone and are not told one by one.
    further_failed: usize,
}

impl SettingsSnapshot {
    /// Reads the files. A file that cannot be read is left out.
    pub fn take(roots: &[PathBuf]) -> Self {
        let mut links = LinkStates::default();
        // A workspace of its own: the one of the tools protects these files from being written back, too.
        let Ok(workspace) = Workspace::new(roots) else {
            return Self { links, files: Vec::new(), folders: Vec::new() };
        };
        let settings = HookClient::ALL.into_iter().flat_map(HookInstallation::project_settings);
        let names: BTreeSet<&str> = settings.chain(HookInstallation::loaded_files()).copied().collect();
        let paths = roots.iter().flat_map(|root| names.iter().map(move |name| root.join(name)));
        let mut files = Vec::new();
        for named in paths.filter_map(|path| workspace.locate(&path).ok()) {
            links.note(&named);
            let Some(real) = without_links(&workspace, &named) else { continue };
            let content = match real.kind() {
                Ok(None) => None,
                _ => match read(&real) {
                    Some(content) => Some(content),
                    None => continue,
                },
            };
            files.push(SettingsFile { named, real, content });
        }
        let names = HookInstallation::loaded_folders();
        // In a home folder clients keep their own state in the same place, and write it all the time.
        let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
        let projects = roots.iter().filter(|root| home.is_none() || root.canonicalize().ok() != home);
        let folders = projects.flat_map(|root| names.iter().map(move |name| root.join(name)));
        let mut taken = Vec::new();
        for named in folders.filter_map(|path| workspace.locate(&path).ok()) {
            links.note(&named);
            let Some(real) = without_links(&workspace, &named) else { continue };
            // A link to a whole root would undo all that the command was run for.
            if !real.relative().as_os_str().is_empty() {
                taken.push(LoadedFolder::take(named, real));
            }
        }
        Self { links, files, folders: taken }
    }

    /// Undoes every change since. Returns the files that were changed, and if they could not be put back, the reason.
    pub fn restore(&self) -> Vec<(String, Option<Error>)> {
        let mut changes = UndoneChanges::default();
        // First of all: behind a link that the command made lies what the command was run for.
        self.links.restore(&mut changes);
        for file in &self.files {
            file.restore(&mut changes);
        }
        for folder in &self.folders {
            folder.restore(&mut changes);
        }
        changes.into_list()
    }
}

impl SettingsFile {
    fn restore(&self, changes: &mut UndoneChanges) {
        if self.named.relative() != self.real.relative() && is_there_without_links(&self.named) {
            // It stands where a link of the user was.
            changes.push(&self.named, self.named.remove_file());
        }
        match &self.content {
            // A link that leads nowhere was there before, or was removed just now.
            None if matches!(self.real.kind(), Ok(Some(_))) => {
                changes.push(&self.real, remove(&self.real));
            }
            Some(content) if !holds(&self.real, content) => {
                changes.push(&self.real, put_back(&self.real, content));
            }
            _ => {}
        }
    }
}

impl UndoneChanges {
    fn push(&mut self, path: &ConfinedPath, undone: Result<(), Error>) {
        match undone {
            undone if self.told.len() < MAX_TOLD => self.told.push((path.display_path(), undone.err())),
            Ok(()) => self.further_undone += 1,
            Err(_) => self.further_failed += 1,
        }
    }

    fn into_list(mut self) -> Vec<(String, Option<Error>)> {
        let files = |count| format!("{count} further files of clients");
        if self.further_undone > 0 {
            self.told.push((files(self.further_undone), None));
        }
        if self.further_failed > 0 {
            let path = files(self.further_failed);
            let source = io::Error::other("their errors are as those before");
            self.told.push((path.clone(), Some(Error::Io { action: "put back", path, source })));
        }
        self.told
    }
}

/// Returns true if something has this path, and no part of the path is a link.
fn is_there_without_links(path: &ConfinedPath) -> bool {
    is_free_of_links(path) && path.is_there() && !is_link(path)
}

fn is_link(path: &ConfinedPath) -> bool {
    path.is_there() && path.read_link().is_ok_and(|link| link.is_some())
}

/// Returns true if the path is a regular file with this content.
fn holds(path: &ConfinedPath, content: &[u8]) -> bool {
    !is_link(path) && path.is_there() && read(path).is_some_and(|now| now == content)
}

/// Removes a file or link. Refused if a link leads to the folder of the path: the file is another one then.
fn remove(path: &ConfinedPath) -> Result<(), Error> {
    check_way(path)?;
    path.remove_file()
}

fn put_back(path: &ConfinedPath, content: &[u8]) -> Result<(), Error> {
    check_way(path)?;
    // A link in its place would have the content written elsewhere, and a pipe cannot be written.
    let is_other = |kind| !matches!(kind, PathKind::File | PathKind::Directory);
    if path.is_there() && is_other(path.link_metadata()?.kind) {
        path.remove_file()?;
    }
    path.write(content)
}

fn check_way(path: &ConfinedPath) -> Result<(), Error> {
    match path.parent().is_none_or(|folder| is_free_of_links(&folder)) {
        true => Ok(()),
        false => Err(not_put_back(path, "a link leads to its folder by now")),
    }
}

fn not_put_back(path: &ConfinedPath, reason: impl Into<String>) -> Error {
    let source = io::Error::other(reason.into());
    Error::Io { action: "put back", path: path.display_path(), source }
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
