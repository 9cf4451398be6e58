//! Limits on what one call may reach beneath the roots, held up against what is opened.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The refusal of an [`AccessLimit`]. Its message says what is allowed, in words for the caller.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AccessDenied(Box<dyn std::error::Error + Send + Sync>);

impl AccessDenied {
    /// Wraps the reason, whose message and source it has.
    pub fn new(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// A judge of where paths lead, for one call. A path is free of links and in the form of
/// [`ConfinedPath::display_path`]: `.` is the primary root, `name:.` is another root. If a path in the primary root
/// looks like `name:.`, `./` stands before it.
///
/// [`ConfinedPath::display_path`]: crate::ConfinedPath::display_path
pub trait AccessLimit: Debug + Send + Sync {
    /// Allows or refuses reading, listing and looking at what is at `path`.
    ///
    /// # Errors
    /// The reason why it may not.
    fn read(&self, path: &str) -> Result<(), AccessDenied>;

    /// Allows or refuses creating, changing and removing what is at `path`.
    ///
    /// # Errors
    /// The reason why it may not.
    fn write(&self, path: &str) -> Result<(), AccessDenied>;

    /// Allows or refuses moving the folder at `path` away, with everything in it.
    ///
    /// # Errors
    /// The reason why it, or something in it, may not.
    fn move_folder(&self, path: &str) -> Result<(), AccessDenied>;
}

/// The location of a folder that was reached under an [`AccessLimit`].
#[derive(Clone, Debug)]
pub(crate) struct LimitedLocation {
    limit: Arc<dyn AccessLimit>,
    /// The prefix of displayed paths: empty for the primary root, `name:` for another.
    root_prefix: Arc<str>,
    /// The path beneath the root, free of links.
    path: PathBuf,
}

impl LimitedLocation {
    pub(crate) fn root(limit: Arc<dyn AccessLimit>, root_prefix: Arc<str>) -> Self {
        Self { limit, root_prefix, path: PathBuf::new() }
    }

    pub(crate) fn child(&self, name: &OsStr) -> Self {
        Self { path: self.path.join(name), ..self.clone() }
    }

    /// Refuses to list this folder itself if it may not be read.
    pub(crate) fn check_list(&self) -> io::Result<()> {
        self.limit.read(&self.display_path(&self.path)).map_err(denied)
    }

    pub(crate) fn check_read(&self, name: &OsStr) -> io::Result<()> {
        self.limit.read(&self.child_display_path(name)).map_err(denied)
    }

    /// Refuses to look at `name` if it may be neither read nor written: to write well a caller must see what is there.
    pub(crate) fn check_metadata(&self, name: &OsStr) -> io::Result<()> {
        let path = self.child_display_path(name);
        self.limit.read(&path).or_else(|error| self.limit.write(&path).map_err(|_| error)).map_err(denied)
    }

    pub(crate) fn check_write(&self, name: &OsStr) -> io::Result<()> {
        self.limit.write(&self.child_display_path(name)).map_err(denied)
    }

    pub(crate) fn check_move(&self, name: &OsStr) -> io::Result<()> {
        self.limit.move_folder(&self.child_display_path(name)).map_err(denied)
    }

    fn child_display_path(&self, name: &OsStr) -> String {
        self.display_path(&self.path.join(name))
    }

    fn display_path(&self, path: &Path) -> String {
        let path = if path.as_os_str().is_empty() { ".".into() } else { path.to_string_lossy() };
        // `name:path` is the form of the other roots.
        let dot = if self.root_prefix.is_empty()
            && path.split('/').next().is_some_and(|first| first.contains(':'))
        {
            "./"
        } else {
            ""
        };
        format!("{}{dot}{path}", self.root_prefix)
    }
}

fn denied(reason: AccessDenied) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}
