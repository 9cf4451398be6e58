//! Files that are replaced as a whole, or not at all.
#![allow(clippy::disallowed_methods, reason = "the files are the user's, who runs the command")]

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `text` to `path`, and makes the folders above it. A reader finds the old or the new content, also after a crash.
/// The file gets `permissions`, or else those of any new file.
pub(crate) fn replace(path: &Path, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new: PathBuf = folder.join(name);
    let written = write_new(&new, text, permissions).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

fn write_new(path: &Path, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    // Synchronized before it takes the place of the old one: after a power loss one of the two is there.
    file.sync_all()
}
