//! Writes a configuration into a client's file, and keeps a copy of the file as it was.
#![allow(clippy::disallowed_methods, reason = "the file is the user's, who runs the command")]

use crate::atomic_file;
use crate::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The size up to which a file is taken for a configuration.
const MAX_BYTES: u64 = 64 << 20;

/// The number of copies that are kept of one file.
const MAX_COPIES: u32 = 99;

/// The result of writing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfigWriteOutcome {
    /// The file was there already, with the entry in it.
    Unchanged,
    /// The file is new.
    Created,
    /// The file was changed; this is the copy of it.
    Changed { copy: PathBuf },
}

/// Replaces the content of `path` by what `merge` makes of it. Links are followed: the file that they lead to is replaced.
///
/// # Errors
///
/// The error of `merge`, after which the file is as it was, or that the file could not be read or written.
pub(crate) fn merge_into(
    path: &Path,
    merge: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<ConfigWriteOutcome, Error> {
    let shown = path.display();
    let (path, old) = match path.canonicalize() {
        Ok(real) => {
            let text = read(&real).map_err(Error::system(format!("cannot read {shown}")))?;
            (real, Some(text))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            (path.to_owned(), None)
        }
        Err(error) => return Err(Error::system(format!("cannot use {shown}"))(error)),
    };
    let new = merge(old.as_deref().unwrap_or_default())?;
    let Some(old) = old else {
        let failed = Error::system(format!("cannot write {shown}"));
        return atomic_file::replace(&path, &new, None).map(|()| ConfigWriteOutcome::Created).map_err(failed);
    };
    if new == old {
        return Ok(ConfigWriteOutcome::Unchanged);
    }
    let copy = copy(&path, &old).map_err(Error::system(format!("cannot keep a copy of {shown}")))?;
    let permissions = std::fs::metadata(&path).map(|metadata| metadata.permissions()).ok();
    atomic_file::replace(&path, &new, permissions).map_err(Error::system(format!("cannot write {shown}")))?;
    Ok(ConfigWriteOutcome::Changed { copy })
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is too large for a configuration")),
        false => Ok(text),
    }
}

/// Writes a copy beside the file, under a name that none has yet, readable for whoever may read the file.
fn copy(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..=MAX_COPIES {
        let end = if number == 1 { String::new() } else { format!(".{number}") };
        let copy = path.with_file_name(format!("{name}.bak{end}"));
        match File::options().write(true).create_new(true).open(&copy) {
            Ok(mut file) => {
                file.set_permissions(std::fs::metadata(path)?.permissions())?;
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                return Ok(copy);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!(
        "there are {MAX_COPIES} copies, {name}.bak to {name}.bak.{MAX_COPIES}; remove them"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_created_changed_with_a_copy_or_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/settings.json");
        let write = |text: &'static str| merge_into(&path, |_| Ok(text.to_owned())).unwrap();
        assert_eq!(write("one"), ConfigWriteOutcome::Created);
        assert_eq!(write("one"), ConfigWriteOutcome::Unchanged);
        for (text, before, name) in
            [("two", "one", "settings.json.bak"), ("three", "two", "settings.json.bak.2")]
        {
            let copy = path.canonicalize().unwrap().with_file_name(name);
            assert_eq!(write(text), ConfigWriteOutcome::Changed { copy: copy.clone() });
            assert_eq!(std::fs::read_to_string(copy).unwrap(), before);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 3, "nothing else is left");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_permissions_too_and_an_error_changes_nothing() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        assert!(merge_into(&link, |_| Err(Error::Argument("no".to_owned()))).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        merge_into(&link, |_| Ok("new".to_owned())).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        for path in [file.clone(), folder.path().join("real.json.bak")] {
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
        }
        let dangling = folder.path().join("dangling");
        symlink("nowhere", &dangling).unwrap();
        assert!(merge_into(&dangling, |_| Ok(String::new())).is_err());
    }
}
