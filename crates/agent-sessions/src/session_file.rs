//! Access to session files. Agents write these folders, so no link is followed and only regular files are opened.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The part of a session file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The number of entries of one folder that are looked at.
const MAX_ENTRIES: usize = 1000;
/// The name of the file that names the next step.
pub(crate) const NEXT_STEP_NAME: &str = "Next-step.md";
/// The part of a file name that marks a backup.
pub(crate) const BACKUP_INFIX: &str = "-backup-";

/// Opens a folder.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens a regular file in a folder.
pub(crate) fn open_file(folder: &OwnedFd, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
    // Without NONBLOCK the opening of a named pipe would wait for its other end.
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Opens the folder of a path, and returns it with the name of the file in it.
pub(crate) fn open_parent(path: &Path) -> io::Result<(OwnedFd, &str)> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the path of a file");
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(invalid)?;
    Ok((open_folder(path.parent().ok_or_else(invalid)?)?, name))
}

/// Reads the text of a file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let (folder, name) = open_parent(path)?;
    let file = open_file(&folder, name, OFlags::RDONLY, Mode::empty())?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Lists the Markdown files of a folder, without backups, each with the time of its last change in milliseconds since
/// 1970.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let handle = open_folder(folder)?;
    let mut files = Vec::new();
    for entry in Dir::read_from(&handle)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let is_session = name.ends_with(".md") && name != NEXT_STEP_NAME && !name.contains(BACKUP_INFIX);
        if !is_session {
            continue;
        }
        // A file that is gone since the folder was read is no error.
        let Ok(stat) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
            #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "its type differs by system")]
            let millis = (stat.st_mtime_nsec as u64) / 1_000_000;
            files.push((folder.join(name), seconds * 1000 + millis));
        }
    }
    Ok(files)
}
