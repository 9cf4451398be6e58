//! Paths and programs in arguments, resolved for a policy to judge.

use super::argument_text;
#[cfg(feature = "ci")]
use crate::ci::command_words::{ProgramLookup, shell_words};
use crate::workspace::{AccessDenied, AccessLimit, Error, Workspace};
#[cfg(not(feature = "ci"))]
use role_policy::LexicalResolver;
#[cfg(feature = "filesystem")]
use role_policy::PatchedPath;
use role_policy::{Access, CallScope, EffectResolver, ResolveError};
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
    /// Resolves paths in `workspace`, and programs in `path`: the value of `PATH` that commands get.
    pub fn new(workspace: Arc<Workspace>, path: Option<OsString>) -> Self {
        Self { workspace, path }
    }

    /// Returns the programs that a word may name. The folder does not matter: a program that is given as a relative path
    /// is refused however its words are read.
    #[cfg(feature = "ci")]
    fn programs(&self) -> ProgramLookup<'_> {
        ProgramLookup::new(self.path.as_deref(), std::path::Path::new("/"))
    }
}

/// The reason why a word names no program that a rule could allow. Each has the word.
#[cfg(feature = "ci")]
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("there is no program `{0}`")]
    Missing(String),
    #[error("`{0}` is a relative path; name the program alone")]
    Relative(String),
    #[error("PATH has a relative folder, so what a name starts depends on the current folder")]
    RelativeSearchPath,
    #[error("`{0}` is a program in a root, which tools may have written")]
    InRoot(String),
    /// Between now and its start the link may lead elsewhere.
    #[error("`{0}` goes through a link; name the program alone")]
    ThroughLink(String),
    #[error("the path of `{0}` is not valid UTF-8, so no rule can name it")]
    NotUtf8(String),
}

impl EffectResolver for WorkspaceEffects {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        let located = self.workspace.locate(path).map_err(ResolveError::other)?;
        located.resolved().map_err(ResolveError::other)
    }

    fn resolve_name(&self, path: &str) -> Result<String, ResolveError> {
        let located = self.workspace.locate(path).map_err(ResolveError::other)?;
        located.resolved_name().map_err(ResolveError::other)
    }

    /// Returns the path of the program, its folder free of links. The file itself may be a link: two names of one file are
    /// two programs, as those of rustup and busybox are.
    ///
    /// A program that is given as a path must be absolute: what a relative one starts depends on the folder it runs in. A
    /// program in a root cannot be allowed by name, since a tool may have written it.
    #[cfg(feature = "ci")]
    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        use std::path::Path;
        let refused = |error: ProgramError| ResolveError::other(error);
        let found = if Path::new(word).is_absolute() {
            Path::new(word).to_owned()
        } else if word.contains(std::path::is_separator) {
            return Err(refused(ProgramError::Relative(word.to_owned())));
        } else {
            let path = self.path.as_deref().unwrap_or_default();
            if std::env::split_paths(path).any(|folder| !folder.is_absolute()) {
                return Err(refused(ProgramError::RelativeSearchPath));
            }
            which::which_in_global(word, Some(path))
                .ok()
                .and_then(|mut found| found.next())
                .ok_or_else(|| refused(ProgramError::Missing(word.to_owned())))?
        };
        // The folder is resolved and the name is not: a link such as `cargo` → `rustup` behaves by the name it was
        // called by.
        let folder = found.parent().and_then(|folder| folder.canonicalize().ok());
        let named = folder.zip(found.file_name()).map(|(folder, name)| folder.join(name));
        // The file that a link in PATH leads to is what runs in the end, so it must not lie in a root either.
        let (Some(named), Ok(real)) = (named, found.canonicalize()) else {
            return Err(refused(ProgramError::Missing(word.to_owned())));
        };
        if self.workspace.roots().any(|root| named.starts_with(root) || real.starts_with(root)) {
            return Err(refused(ProgramError::InRoot(word.to_owned())));
        }
        if Path::new(word).is_absolute() && named != found {
            // Between now and its start the link may lead elsewhere.
            return Err(refused(ProgramError::ThroughLink(word.to_owned())));
        }
        match named.to_str() {
            Some(path) => Ok(path.to_owned()),
            None => Err(refused(ProgramError::NotUtf8(word.to_owned()))),
        }
    }

    #[cfg(not(feature = "ci"))]
    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        LexicalResolver.resolve_program(word)
    }

    #[cfg(feature = "ci")]
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        argument_text::split_command(line, self.programs())
    }

    #[cfg(feature = "ci")]
    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        argument_text::vector_words(words, self.programs())
    }

    #[cfg(feature = "ci")]
    fn shell_words(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        Ok(shell_words(line, self.programs()))
    }

    #[cfg(not(feature = "ci"))]
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        argument_text::split_command(line)
    }

    #[cfg(feature = "filesystem")]
    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        argument_text::patched_paths(patch)
    }
}

/// Returns the part of `workspace` that a call with this scope may reach. Every path is checked again when it is opened.
///
/// # Errors
/// A root can no longer be opened.
pub fn workspace_within(scope: &CallScope, workspace: &Arc<Workspace>) -> Result<Arc<Workspace>, Error> {
    if scope.reaches_all_paths() {
        return Ok(Arc::clone(workspace));
    }
    let limit: Arc<dyn AccessLimit> = Arc::new(CallScopeLimit(scope.clone()));
    Ok(Arc::new(workspace.with_access_limit(&limit)?))
}

/// The scope of one call as a limit of a workspace: it is checked again for each file that the call opens.
#[derive(Debug)]
struct CallScopeLimit(CallScope);

impl AccessLimit for CallScopeLimit {
    fn read(&self, path: &str) -> Result<(), AccessDenied> {
        self.0.check_path(Access::Read, path).map_err(AccessDenied::new)
    }

    fn write(&self, path: &str) -> Result<(), AccessDenied> {
        self.0.check_path(Access::Write, path).map_err(AccessDenied::new)
    }

    fn move_folder(&self, path: &str) -> Result<(), AccessDenied> {
        self.0.check_folder(Access::Write, path).map_err(AccessDenied::new)
    }
}
