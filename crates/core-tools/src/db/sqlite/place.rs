//! The file, held where it lies.

use super::super::{Action, Databases, DbBridge, Error};
use std::path::{Path, PathBuf};

/// A file that SQLite may open, as long as this lives.
pub(super) struct Held {
    path: PathBuf,
    shown: String,
    /// Where `path` leads through it.
    #[cfg(target_os = "linux")]
    _folder: std::os::fd::OwnedFd,
}

impl Held {
    /// What SQLite is to open.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What messages call it.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}

/// Finds the file beneath a root: a regular file that is there, and that the call may read, or change if it seeds.
pub(super) fn hold(databases: &Databases, path: &str, request: &DbBridge) -> Result<Held, Error> {
    let failed = |source: crate::workspace::Error| {
        if source.is_not_found() {
            let hint = databases.hint(request.database.as_deref());
            return Error::NotFound { path: path.to_owned(), hint };
        }
        // An absolute path would say where a root lies.
        let path =
            if Path::new(path).is_absolute() { "that the settings name".to_owned() } else { path.to_owned() };
        Error::File { path, source }
    };
    let located = databases.workspace.locate(path).map_err(failed)?;
    // Says which name is near, where there is no such file.
    located.metadata().map_err(failed)?;
    let target = located.target().map_err(failed)?;
    let changes = request.action == Action::Seed && !request.dry_run;
    let shown = located.shown();
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let (folder, name) = target.into_place(changes).map_err(failed)?;
        // Through the handle: the kernel goes to the folder itself, wherever its path leads by now.
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Held { path, shown, _folder: folder })
    }
    #[cfg(not(target_os = "linux"))]
    {
        target.check_place(changes).map_err(failed)?;
        Ok(Held { path: located.to_absolute(), shown })
    }
}
