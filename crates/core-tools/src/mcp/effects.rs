//! Where the arguments of calls lead, for a policy to judge.

use crate::workspace::{Limit, Workspace};
#[cfg(not(feature = "ci"))]
use role_policy::Lexical;
use role_policy::{Access, Effects, Scope};
use std::ffi::OsString;
use std::sync::Arc;

/// Resolves paths in a workspace, and programs as the runner will.
#[derive(Clone, Debug)]
pub struct WorkspaceEffects {
    workspace: Arc<Workspace>,
    #[cfg_attr(not(feature = "ci"), allow(dead_code, reason = "only commands look for programs"))]
    path: Option<OsString>,
}

impl WorkspaceEffects {
    /// `path` is where programs are searched: the value of `PATH` that commands get.
    pub fn new(workspace: Arc<Workspace>, path: Option<OsString>) -> Self {
        Self { workspace, path }
    }
}

impl Effects for WorkspaceEffects {
    fn resolve_path(&self, path: &str) -> Result<String, String> {
        let located = self.workspace.locate(path).map_err(|error| error.to_string())?;
        located.resolved().map_err(|error| error.to_string())
    }

    fn resolve_name(&self, path: &str) -> Result<String, String> {
        let located = self.workspace.locate(path).map_err(|error| error.to_string())?;
        located.resolved_name().map_err(|error| error.to_string())
    }

    /// The path of the program as it is found, its folder free of links: two names of one file are two
    /// programs, as those of rustup and busybox are. One that is given as a path must be absolute: what a
    /// relative one starts depends on the folder it runs in. One in a root is none that could be allowed by name:
    /// whoever may write there decides what it is.
    #[cfg(feature = "ci")]
    fn resolve_program(&self, word: &str) -> Result<String, String> {
        use std::path::Path;
        let found = if Path::new(word).is_absolute() {
            Path::new(word).to_owned()
        } else if word.contains(std::path::is_separator) {
            return Err(format!("`{word}` is a relative path; name the program alone"));
        } else {
            let path = self.path.as_deref().unwrap_or_default();
            if std::env::split_paths(path).any(|folder| !folder.is_absolute()) {
                return Err("PATH has a relative folder, so what a name starts depends on where".to_owned());
            }
            which::which_in_global(word, Some(path))
                .ok()
                .and_then(|mut found| found.next())
                .ok_or_else(|| format!("there is no program `{word}`"))?
        };
        let resolved = found
            .parent()
            .and_then(|folder| folder.canonicalize().ok())
            .zip(found.file_name())
            .map(|(folder, name)| folder.join(name));
        match resolved.as_ref().and_then(|path| path.to_str()) {
            Some(path) if self.workspace.roots().any(|root| Path::new(path).starts_with(root)) => {
                Err(format!("`{word}` is a program in a root, which tools may have written"))
            }
            Some(path) => Ok(path.to_owned()),
            None => Err(format!("`{word}` is no program that can be told from others")),
        }
    }

    #[cfg(not(feature = "ci"))]
    fn resolve_program(&self, word: &str) -> Result<String, String> {
        Lexical.resolve_program(word)
    }

    #[cfg(feature = "ci")]
    fn split_command(&self, line: &str) -> Result<Vec<String>, String> {
        let parsed = process_runner::CommandLine::parse(line).map_err(|error| error.to_string())?;
        Ok(std::iter::once(parsed.program).chain(parsed.args).collect())
    }

    #[cfg(not(feature = "ci"))]
    fn split_command(&self, line: &str) -> Result<Vec<String>, String> {
        Lexical.split_command(line)
    }
}

/// What a policy lets one call reach, held up against what it opens.
#[derive(Debug)]
pub(super) struct ScopeLimit(pub(super) Scope);

impl Limit for ScopeLimit {
    fn read(&self, path: &str) -> Result<(), String> {
        self.0.check_path(Access::Read, path)
    }

    fn write(&self, path: &str) -> Result<(), String> {
        self.0.check_path(Access::Write, path)
    }

    fn move_folder(&self, path: &str) -> Result<(), String> {
        self.0.check_folder(Access::Write, path)
    }
}
