//! A folder to serve.

use crate::{Era, Wire};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of its own for one test, with the files the test puts there.
#[derive(Debug)]
pub struct Project {
    path: PathBuf,
    /// Its folder goes with it, where it was made for it.
    _folder: Option<tempfile::TempDir>,
    state: tempfile::TempDir,
}

impl Project {
    /// An empty one.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { path: folder.path().to_owned(), _folder: Some(folder), state: state() }
    }

    /// A folder that is another's.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), _folder: None, state: state() }
    }

    /// One with these files.
    pub fn with<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let project = Self::empty();
        for (path, content) in files {
            project.write(path, content);
        }
        project
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its servers keep what is to survive them (`XDG_STATE_HOME`).
    pub fn state(&self) -> &Path {
        self.state.path()
    }

    /// A path in it.
    pub fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file and the folders above it.
    pub fn write(&self, path: &str, content: &str) {
        let path = self.join(path);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("folders can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    /// Returns the content of a file.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.join(path)).expect("the file is there")
    }

    /// Runs git here, which must succeed, without the developer's configuration. What it prints.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(".", arguments)
    }

    /// The same in a folder of it.
    pub fn git_in(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let output = command
            .args(arguments)
            .current_dir(self.join(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git can be run");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The server, to be started in this folder, in an environment without what the developer's own says of servers and
    /// of applications to look into.
    pub fn server(&self) -> Command {
        self.server_as(crate::server())
    }

    /// The same of another program.
    pub fn server_as(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path());
        for name in ["FILESYSTEM_TOOLS_BASE_PATH", "NODE_OPTIONS", "NODE_INSPECT_PORT", "INSPECT_TARGET"] {
            command.env_remove(name);
        }
        for name in ["STATE_PATH", "STATE_URL", "LOG_PATH", "DB_PATH", "DB_URL"] {
            command.env_remove(name);
        }
        // Not the developer's. Runs share it, as servers do.
        command.env("XDG_CACHE_HOME", std::env::temp_dir().join("coretools-tests-cache"));
        command.env("XDG_STATE_HOME", self.state());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CORETOOLS_") {
                command.env_remove(name);
            }
        }
        // Also what the default leaves out of the list.
        command.env("CORETOOLS_TOOLSETS", "all");
        command
    }
}

/// A server for a project with these files, ready to call its tools.
pub fn serve<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>, era: Era) -> (Project, Wire) {
    let project = Project::with(files);
    let wire = Wire::connect(project.server(), era);
    (project, wire)
}

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
