//! A temporary project that the tests of the tools work on.

#![allow(clippy::disallowed_methods, reason = "the tests set up and look at the file system from outside")]

pub(super) use error_causes::chain;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::workspace::Workspace;

/// A temporary project and a workspace over it; dropping it removes the files.
pub(super) struct ProjectFixture {
    folder: TempDir,
    pub(super) workspace: Workspace,
    pub(super) cancel: CancellationToken,
}

impl ProjectFixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::new([folder.path()]).unwrap();
        Self { folder, workspace, cancel: CancellationToken::new() }
    }

    /// A project with `files`, by path and content.
    pub(super) fn with<C: AsRef<[u8]>>(files: &[(&str, C)]) -> Self {
        let project = Self::new();
        for (path, content) in files {
            project.put(path, content);
        }
        project
    }

    pub(super) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn get(&self, path: &str) -> Vec<u8> {
        fs::read(self.at(path)).unwrap()
    }

    pub(super) fn text(&self, path: &str) -> String {
        String::from_utf8(self.get(path)).unwrap()
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Returns the names in a folder, sorted.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
