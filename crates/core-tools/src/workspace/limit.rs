//! Limits on what one call may reach beneath the roots, held up against what is opened.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Judges where paths lead. A path is free of links and in the form of [`ConfinedPath::shown`]: `.` is the
/// primary root, `name:.` another one; a path in the primary root that looks like the latter has `./` before it.
///
/// An error says what is allowed, in words for the caller.
///
/// [`ConfinedPath::shown`]: super::ConfinedPath::shown
pub trait Limit: Debug + Send + Sync {
    /// Whether what is at `path` may be read, listed or looked at.
    ///
    /// # Errors
    /// It may not.
    fn read(&self, path: &str) -> Result<(), String>;

    /// Whether what is at `path` may be created, changed or removed.
    ///
    /// # Errors
    /// It may not.
    fn write(&self, path: &str) -> Result<(), String>;

    /// Whether the folder at `path` may be moved away, with everything in it.
    ///
    /// # Errors
    /// It may not, or something in it may not.
    fn move_folder(&self, path: &str) -> Result<(), String>;
}

/// The place of a folder that was reached under a limit.
#[derive(Clone, Debug)]
pub(super) struct Limited {
    limit: Arc<dyn Limit>,
    /// Nothing for the primary root, else `name:`.
    root: Arc<str>,
    /// Beneath the root, free of links.
    path: PathBuf,
}

impl Limited {
    pub(super) fn root(limit: Arc<dyn Limit>, root: Arc<str>) -> Self {
        Self { limit, root, path: PathBuf::new() }
    }

    pub(super) fn child(&self, name: &OsStr) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }

    /// Whether this folder itself may be listed.
    pub(super) fn check_listed(&self) -> io::Result<()> {
        self.limit.read(&self.shown(&self.path)).map_err(denied)
    }

    pub(super) fn check_read(&self, name: &OsStr) -> io::Result<()> {
        self.limit.read(&self.at(name)).map_err(denied)
    }

    /// Whoever may write to something may look at it.
    pub(super) fn check_looked_at(&self, name: &OsStr) -> io::Result<()> {
        let path = self.at(name);
        self.limit.read(&path).or_else(|error| self.limit.write(&path).map_err(|_| error)).map_err(denied)
    }

    pub(super) fn check_written(&self, name: &OsStr) -> io::Result<()> {
        self.limit.write(&self.at(name)).map_err(denied)
    }

    pub(super) fn check_moved(&self, name: &OsStr) -> io::Result<()> {
        self.limit.move_folder(&self.at(name)).map_err(denied)
    }

    fn at(&self, name: &OsStr) -> String {
        self.shown(&self.path.join(name))
    }

    fn shown(&self, path: &Path) -> String {
        let path = if path.as_os_str().is_empty() { ".".into() } else { path.to_string_lossy() };
        // `name:path` is the form of the other roots.
        let dot = if self.root.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
            "./"
        } else {
            ""
        };
        format!("{}{dot}{path}", self.root)
    }
}

fn denied(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}
