//! [`SettingsSnapshot`]: the settings of clients in a project, as they are before a command runs.

use agent_hooks::{HookClient, HookInstallation};
use core_tools::workspace::{ConfinedPath, Workspace};
use std::io::Read;
use std::path::PathBuf;

/// The size up to which a file is taken for settings.
const MAX_BYTES: u64 = 1 << 20;

/// The settings of clients in the roots: existing files with their content, and the paths of missing files.
///
/// A confined command may write everywhere in a root, so it can write these files. When the command has ended, its
/// changes of these files are undone.
#[derive(Debug)]
pub struct SettingsSnapshot {
    files: Vec<(ConfinedPath, Option<Vec<u8>>)>,
}

impl SettingsSnapshot {
    /// Reads the files. A file that cannot be read is left out.
    pub fn take(roots: &[PathBuf]) -> Self {
        // A workspace of its own: the one of the tools protects these files from being written back, too.
        let Ok(workspace) = Workspace::new(roots) else { return Self { files: Vec::new() } };
        let names = HookClient::ALL.into_iter().flat_map(HookInstallation::project_settings);
        let paths = roots.iter().flat_map(|root| names.clone().map(move |name| root.join(name)));
        let located = paths.filter_map(|path| workspace.locate(&path).ok());
        let files = located.filter_map(|path| match path.is_there() {
            false => Some((path, None)),
            true => {
                let content = read(&path)?;
                Some((path, Some(content)))
            }
        });
        Self { files: files.collect() }
    }

    /// Undoes every change since. Returns the files that were changed, and if they could not be put back, the reason.
    pub fn restore(&self) -> Vec<(String, Option<core_tools::workspace::Error>)> {
        let mut changed = Vec::new();
        for (path, content) in &self.files {
            let undone = match content {
                None if path.is_there() => path.remove_file(),
                Some(content) if read(path).as_ref() != Some(content) => {
                    // A link in its place would have the content written elsewhere.
                    if path.read_link().is_ok_and(|link| link.is_some()) {
                        let _ = path.remove_file();
                    }
                    path.write(content)
                }
                _ => continue,
            };
            changed.push((path.display_path(), undone.err()));
        }
        changed
    }
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
