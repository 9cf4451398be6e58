//! [`NewProjectFolder`]: the folder of a new project, which is written whole or not at all.
#![allow(
    clippy::disallowed_methods,
    reason = "the user names the folder of the new project, where there is no workspace yet"
)]

use crate::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a new project.
pub(super) struct NewProjectFolder {
    pub(super) folder: PathBuf,
    /// True if it exists already; then it is empty.
    exists: bool,
}

impl NewProjectFolder {
    pub(super) fn find(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let failed = || Error::system(format!("cannot use {shown}"));
        let exists = match std::fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                None => true,
                Some(_) => {
                    return Err(Error::Argument(format!(
                        "{shown} is not empty; name a folder that is not there"
                    )));
                }
            },
            // A link to nothing is not found either, and is no place for a project.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                false
            }
            Err(_) if path.is_file() => {
                return Err(Error::Argument(format!("{shown} is a file; name a folder that is not there")));
            }
            Err(error) => return Err(failed()(error)),
        };
        let folder = if exists { path.canonicalize() } else { std::path::absolute(path) };
        Ok(Self { folder: folder.map_err(failed())?, exists })
    }

    /// Writes all the files or none.
    pub(super) fn write(&self, files: &[(&str, String)]) -> io::Result<()> {
        let parent = self.folder.parent().unwrap_or(&self.folder);
        // Folders above it that are not there yet. The outermost is last, so each is empty when it is removed.
        let missing: Vec<&Path> = parent.ancestors().take_while(|folder| !folder.exists()).collect();
        std::fs::create_dir_all(parent)?;
        let written = self.write_in(parent, files);
        if written.is_err() {
            for folder in missing {
                let _ = std::fs::remove_dir(folder);
            }
        }
        written
    }

    /// Writes the files to a folder beside the destination, and moves them there.
    fn write_in(&self, parent: &Path, files: &[(&str, String)]) -> io::Result<()> {
        let folder_name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        // Beside the destination, so on the same file system: only there is a rename atomic.
        let staging = parent.join(format!(".{folder_name}.{}.new", std::process::id()));
        std::fs::create_dir(&staging)?;
        let written = write_all(&staging, files).and_then(|()| self.move_from(&staging));
        if written.is_err() || self.exists {
            let _ = std::fs::remove_dir_all(&staging);
        }
        written
    }

    /// Moves what was written to the destination: at once where that is new, else one by one, and all or none.
    fn move_from(&self, staging: &Path) -> io::Result<()> {
        if !self.exists {
            return std::fs::rename(staging, &self.folder);
        }
        let mut moved = Vec::new();
        let result = std::fs::read_dir(staging)?.try_for_each(|entry| {
            let entry = entry?;
            let destination = self.folder.join(entry.file_name());
            std::fs::rename(entry.path(), &destination)?;
            moved.push(destination);
            Ok(())
        });
        if result.is_err() {
            for path in moved {
                let _ =
                    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            }
        }
        result
    }
}

fn write_all(folder: &Path, files: &[(&str, String)]) -> io::Result<()> {
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}
