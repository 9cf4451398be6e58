//! Finds the logs of a project that neither a query nor the settings name.

use crate::env_file::read_env_files;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::Path;
use workspace::{ConfinedPath, PathKind, Workspace};

/// The folders in which frameworks put their logs, beneath each root.
const USUAL_FOLDERS: [&str; 8] = ["logs", "log", "storage/logs", "var/log", "tmp/logs", "data", "tmp", "."];
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

/// Returns the logs of the project in the roots of `workspace`: `default_file` where it exists, the one that a `.env` file
/// names, or those of the first usual folder that has any. `None` where there are none.
pub(super) fn discover(workspace: &Workspace, default_file: &str) -> Option<DiscoveredSource> {
    if is_file(workspace, Path::new(default_file)) {
        return Some(DiscoveredSource { source: default_file.to_owned(), origin: String::new() });
    }
    let named = read_env_files(workspace).into_iter().find_map(|variable| {
        // It is looked for as a path, so it must not be read as a glob.
        let may_name =
            VARIABLES.contains(&variable.name.as_str()) && !variable.value.contains(['*', '?', '[', '{']);
        let path = variable.root.join(&variable.value);
        let located = if may_name && is_file(workspace, &path) { workspace.locate(&path).ok() } else { None };
        let origin = format!("{} in {}", variable.name, variable.file);
        Some(DiscoveredSource { source: located?.display_path(), origin })
    });
    named.or_else(|| {
        let mut folders = folders_with_logs(workspace).into_iter();
        let source = format!("{}*.log", folders.next()?);
        let others: Vec<String> = folders.map(|folder| format!("{folder}*.log")).collect();
        let mut origin = "the usual folders".to_owned();
        if !others.is_empty() {
            let _ = write!(origin, "; there are also {}", others.join(", "));
        }
        Some(DiscoveredSource { source, origin })
    })
}

/// Returns the usual folders of all roots that have logs, as a source begins with them.
fn folders_with_logs(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for root in workspace.roots() {
        for folder in USUAL_FOLDERS {
            let Ok(located) = workspace.locate(&root.join(folder)) else { continue };
            // A folder that cannot be read has no logs for the caller, so that the search goes on.
            if log_names(&located).is_empty() {
                continue;
            }
            let name = located.display_path();
            found.push(
                match name.strip_suffix('.').filter(|before| before.is_empty() || before.ends_with(':')) {
                    Some(root_name) => root_name.to_owned(),
                    None => format!("{name}/"),
                },
            );
        }
    }
    found
}

/// Returns the names of the logs in a folder.
fn log_names(folder: &ConfinedPath) -> Vec<OsString> {
    let Ok(opened) = folder.open_folder() else { return Vec::new() };
    let entries = opened.entries().into_iter().flatten().flatten().take(MAX_ENTRIES);
    let logs = entries.filter(|entry| {
        entry.kind == PathKind::File && Path::new(&entry.name).extension() == Some(OsStr::new("log"))
    });
    logs.map(|entry| entry.name).collect()
}

/// Returns the logs that a missing file may stand for: those of its name in the usual folders of all roots, else all logs
/// there.
pub(super) fn similar(workspace: &Workspace, missing: &str) -> SimilarLogs {
    let wanted = missing.rsplit('/').next().unwrap_or(missing);
    let (mut same_name, mut all) = (Vec::new(), Vec::new());
    for root in workspace.roots() {
        for folder in USUAL_FOLDERS {
            let Ok(located) = workspace.locate(&root.join(folder)) else { continue };
            let mut names = log_names(&located);
            names.sort();
            for name in names {
                let Ok(path) = located.join(&name) else { continue };
                if name == *wanted {
                    same_name.push(path.display_path());
                }
                all.push(path.display_path());
            }
        }
    }
    SimilarLogs { same_name, all }
}

/// The logs of a project that a missing file may stand for.
pub(super) struct SimilarLogs {
    /// Those of the same name in another folder.
    pub(super) same_name: Vec<String>,
    pub(super) all: Vec<String>,
}

fn is_file(workspace: &Workspace, path: &Path) -> bool {
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
            (
                vec![("log/development.log", ""), ("x.log", "")],
                "log/*.log",
                "the usual folders; there are also *.log",
            ),
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

    #[test]
    fn all_roots_are_searched_and_further_logs_are_named() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(second.path().join("logs")).unwrap();
        std::fs::write(second.path().join("logs/api.log"), "").unwrap();
        std::fs::write(second.path().join("x.log"), "").unwrap();
        let workspace = Workspace::new([first.path(), second.path()]).unwrap();
        let name = second.path().file_name().unwrap().to_str().unwrap();
        let found = discover(&workspace, "app.log").unwrap();
        assert_eq!(found.source, format!("{name}:logs/*.log"));
        assert_eq!(found.origin, format!("the usual folders; there are also {name}:*.log"));
        let similar = similar(&workspace, "api.log");
        assert_eq!(similar.same_name, [format!("{name}:logs/api.log")]);
        assert_eq!(similar.all.len(), 2);
        std::fs::write(second.path().join(".env"), "LOG_PATH=out.txt\n").unwrap();
        std::fs::write(second.path().join("out.txt"), "").unwrap();
        assert_eq!(discover(&workspace, "app.log").unwrap().source, format!("{name}:out.txt"));
    }
}
