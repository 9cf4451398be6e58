//! Finds the logs of a project that neither a query nor the settings name.

use crate::env_file::read_env_files;
use std::ffi::OsStr;
use std::path::Path;
use workspace::{PathKind, Workspace};

/// The folders in which frameworks put their logs, beneath the first root.
const USUAL_FOLDERS: [&str; 6] = ["logs", "log", "storage/logs", "var/log", "tmp/logs", "."];
/// The variables of a `.env` file that name a log.
const VARIABLES: [&str; 5] = ["LOG_PATH", "LOG_FILE", "LOGFILE", "LOG_FILE_PATH", "LOG_FILENAME"];
/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1000;

/// A source that was found, and the setting that led to it, if one did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DiscoveredSource {
    /// A path or a glob.
    pub(super) source: String,
    pub(super) origin: String,
}

/// Returns the logs of the project in the first root of `workspace`: `default_file` where it exists, the one that a
/// `.env` file names, or those of the first usual folder that has any. `None` where there are none.
pub(super) fn discover(workspace: &Workspace, default_file: &str) -> Option<DiscoveredSource> {
    if is_file(workspace, default_file) {
        return Some(DiscoveredSource { source: default_file.to_owned(), origin: String::new() });
    }
    let named = read_env_files(workspace).into_iter().find(|variable| {
        VARIABLES.contains(&variable.name.as_str())
            // It is looked for as a path, so it must not be read as a glob.
            && !variable.value.contains(['*', '?', '[', '{'])
            && is_file(workspace, &variable.value)
    });
    if let Some(variable) = named {
        let origin = format!("{} in {}", variable.name, variable.file);
        let source = workspace.locate(&variable.value).ok()?.display_path();
        return Some(DiscoveredSource { source, origin });
    }
    USUAL_FOLDERS.iter().find_map(|folder| {
        let opened = workspace.locate(folder).ok()?.open_folder().ok()?;
        let entries = opened.entries().ok()?.flatten().take(MAX_ENTRIES);
        let mut logs = entries.filter(|entry| {
            entry.kind == PathKind::File && Path::new(&entry.name).extension() == Some(OsStr::new("log"))
        });
        logs.next()?;
        let prefix = if *folder == "." { String::new() } else { format!("{folder}/") };
        Some(DiscoveredSource { source: format!("{prefix}*.log"), origin: "the usual folders".to_owned() })
    })
}

fn is_file(workspace: &Workspace, path: &str) -> bool {
    let metadata = workspace.locate(path).and_then(|path| path.metadata());
    metadata.is_ok_and(|metadata| metadata.kind == PathKind::File)
}

/// Returns the places that were looked at in vain, for a message.
pub(super) fn places() -> String {
    format!("no .env file names a log, and there is no *.log in {}", USUAL_FOLDERS.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its files itself")]
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let workspace = Workspace::new([folder.path()]).unwrap();
        discover(&workspace, "app.log").map(|found| (found.source, found.origin))
    }

    #[test]
    fn the_logs_of_a_project_are_found_where_frameworks_write_them() {
        for (files, source, origin) in [
            (vec![("app.log", ""), ("logs/a.log", "")], "app.log", ""),
            (vec![("log/development.log", ""), ("x.log", "")], "log/*.log", "the usual folders"),
            (vec![("server.log", "")], "*.log", "the usual folders"),
            (
                vec![(".env", "LOG_FILE=out/x.txt"), ("out/x.txt", ""), ("a.log", "")],
                "out/x.txt",
                "LOG_FILE in .env",
            ),
            (vec![(".env", "LOG_FILE=gone.txt"), ("a.log", "")], "*.log", "the usual folders"),
        ] {
            assert_eq!(found(&files), Some((source.to_owned(), origin.to_owned())), "{files:?}");
        }
        assert_eq!(found(&[("README.md", "")]), None);
    }
}
