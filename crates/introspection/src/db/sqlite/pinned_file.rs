//! The database file, in a folder that is held open.

use super::super::{Databases, DbAction, DbBridge, Error};
use std::path::{Path, PathBuf};

/// A file that SQLite may open as long as this value lives.
pub(super) struct PinnedFile {
    path: PathBuf,
    display_name: String,
    /// The folder that `path` leads through, by this handle.
    #[cfg(target_os = "linux")]
    _folder: std::os::fd::OwnedFd,
}

impl PinnedFile {
    /// The path for SQLite.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the file in messages.
    pub(super) fn display_name(&self) -> &str {
        &self.display_name
    }

    /// Returns true if a rollback journal lies beside the file: a program ended amid a transaction, or is in one.
    pub(super) fn has_journal(&self) -> bool {
        let mut journal = self.path.clone().into_os_string();
        journal.push("-journal");
        std::fs::symlink_metadata(journal).is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Finds an existing regular file beneath a root, which the call may read, or change if the request is a seed.
    pub(super) fn open(databases: &Databases, path: &str, request: &DbBridge) -> Result<Self, Error> {
        let failed = |source: workspace::Error| {
            if source.is_not_found() {
                let hint = databases.not_found_hint(request.database.as_deref());
                return Error::NotFound { path: path.to_owned(), hint };
            }
            // An absolute path comes from the settings, and would show where a root lies.
            let path = if Path::new(path).is_absolute() {
                "that the settings name".to_owned()
            } else {
                path.to_owned()
            };
            Error::OpenFile { path, source }
        };
        let located = databases.workspace.locate(path).map_err(failed)?;
        // `locate` accepts a path that does not exist; this fails for it, with a hint at a similar name.
        located.metadata().map_err(failed)?;
        let target = located.target().map_err(failed)?;
        let changes = request.action == DbAction::Seed && !request.dry_run;
        let display_name = located.display_path();
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let (folder, name) = target.into_folder_and_name(changes).map_err(failed)?;
            // The kernel follows the handle to the folder itself, even if its path has been replaced meanwhile.
            let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
            Ok(Self { path, display_name, _folder: folder })
        }
        #[cfg(not(target_os = "linux"))]
        {
            target.check_file_access(changes).map_err(failed)?;
            Ok(Self { path: located.to_absolute(), display_name })
        }
    }
}
