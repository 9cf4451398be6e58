//! [`SettingsSnapshot`]: the settings of clients in a project, as they are before a command runs.

mod link_state;
mod loaded_folder;
mod put_back;
#[cfg(test)]
mod tests;

use agent_hooks::{HookClient, HookInstallation};
use core_tools::workspace::{ConfinedPath, Error, Workspace};
use link_state::LinkStates;
use loaded_folder::LoadedFolder;
use put_back::{UndoneChanges, holds, is_there_without_links, put_back, read, remove, without_links};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

impl SettingsSnapshot {
    /// Reads the files. A file that cannot be read is left out, and so are the files and folders that clients load by
    /// themselves and that a person has `opened` for the command. Of a folder in which single paths are opened, the other
    /// paths are read.
    pub fn take(roots: &[PathBuf], opened: &[PathBuf]) -> Self {
        let mut links = LinkStates::default();
        // A workspace of its own: the one of the tools protects these files from being written back, too.
        let Ok(workspace) = Workspace::new(roots) else {
            return Self { links, files: Vec::new(), folders: Vec::new() };
        };
        let opened = opened_places(&workspace, opened);
        let is_opened = |root: &PathBuf, name: &str| {
            let places = [Some(root.join(name)), root.canonicalize().ok().map(|root| root.join(name))];
            places.iter().flatten().any(|place| opened.contains(place))
        };
        let settings: BTreeSet<&str> =
            HookClient::ALL.into_iter().flat_map(HookInstallation::project_settings).copied().collect();
        let names: BTreeSet<&str> =
            settings.iter().chain(HookInstallation::loaded_files()).copied().collect();
        let paths = roots.iter().flat_map(|root| names.iter().map(move |name| (root, *name)));
        let paths = paths.filter(|(root, name)| settings.contains(name) || !is_opened(root, name));
        let paths = paths.map(|(root, name)| root.join(name));
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
        let folders = projects.flat_map(|root| names.iter().map(move |name| (root, *name)));
        let folders = folders.filter(|(root, name)| !is_opened(root, name));
        let folders = folders.map(|(root, name)| root.join(name));
        let mut taken = Vec::new();
        for named in folders.filter_map(|path| workspace.locate(&path).ok()) {
            links.note(&named);
            let Some(real) = without_links(&workspace, &named) else { continue };
            // A link to a whole root would undo all that the command was run for.
            if !real.relative().as_os_str().is_empty() {
                let places = [named.to_absolute(), real.to_absolute()];
                let beneath = |path: &PathBuf| {
                    places.iter().find_map(|place| path.strip_prefix(place).ok()).map(Path::to_owned)
                };
                taken.push(LoadedFolder::take(named, real, opened.iter().filter_map(beneath).collect()));
            }
        }
        Self { links, files, folders: taken }
    }

    /// Undoes every change since, as [`restore`](Self::restore) does, and returns a sentence about each.
    pub fn restore_and_tell(&self) -> Vec<String> {
        let told = self.restore().into_iter().map(|(path, failure)| {
            let undone = match failure {
                None => "it is as it was before".to_owned(),
                Some(error) => format!("it could not be put back: {}", error_causes::chain(&error)),
            };
            format!("the command changed {path}, which decides what this agent may do; {undone}")
        });
        told.collect()
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

/// Returns the paths that are opened, each as it was written and as it is without links in the folders above it.
fn opened_places(workspace: &Workspace, opened: &[PathBuf]) -> BTreeSet<PathBuf> {
    let without_links = |path: &PathBuf| {
        let located = workspace.locate(path).ok()?;
        Some(located.parent()?.without_links().ok()?.join(located.relative().file_name()?))
    };
    opened.iter().cloned().chain(opened.iter().filter_map(without_links)).collect()
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
