//! Checks on the files of a repository that git would follow, read or wait for.

use super::error::Error;
use super::path::path_from_bytes;
use super::repository_files::{outside_roots, read_small_file, read_up_to, real_path};
use crate::workspace::{ConfinedPath, DirEntry, PathKind, Workspace};
use std::path::PathBuf;

/// The longest configuration file that is read. A longer one is assumed to configure programs.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// The deepest nesting of alternates, the same as git's own.
const MAX_ALTERNATES_DEPTH: usize = 5;

/// Returns true if a configuration file may name filters or merge drivers, or include another that does.
// A search for words instead of a parser: git alone knows its format, and is asked where this says yes. Most
// repositories thus save a run of git.
pub(super) fn may_configure_programs(path: &ConfinedPath) -> Result<bool, Error> {
    match path.kind().map_err(|error| outside_roots(error, path))? {
        None => return Ok(false),
        Some(PathKind::File) if path.metadata()?.size <= MAX_CONFIG_BYTES => {}
        _ => return Ok(true),
    }
    let text = read_up_to(path, MAX_CONFIG_BYTES)?.unwrap_or_default().to_ascii_lowercase();
    // The format has no escapes in the names of sections and keys.
    Ok([&b"filter"[..], b"include", b"driver"].iter().any(|word| memchr::memmem::find(&text, word).is_some()))
}

/// Calls `visit` with each entry of `folder`.
pub(super) fn for_each_entry(
    folder: &ConfinedPath,
    mut visit: impl FnMut(DirEntry) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |_| Error::UnsupportedLayout(format!("`{folder}` cannot be listed"));
    for entry in folder.open_folder()?.entries().map_err(failed)? {
        visit(entry.map_err(failed)?)?;
    }
    Ok(())
}

/// Refuses links in `folder` that lead outside, and files that git would wait for.
pub(super) fn check_links_in(folder: &ConfinedPath) -> Result<(), Error> {
    for_each_entry(folder, |entry| {
        // Not entered: the objects alone are hundreds of folders.
        if matches!(entry.kind, PathKind::Directory | PathKind::File) {
            return Ok(());
        }
        let path = folder.join(&entry.name)?;
        if entry.kind == PathKind::Symlink {
            check_link(&path)?;
        }
        check_kind(&path, entry.kind)
    })
}

/// Refuses links that lead outside in `folder` and everything below it. Each entry takes one of `remaining`.
pub(super) fn check_links_below(folder: &ConfinedPath, remaining: &mut usize) -> Result<(), Error> {
    for_each_entry(folder, |entry| {
        *remaining = remaining
            .checked_sub(1)
            .ok_or_else(|| Error::TooLarge("there are too many references".to_owned()))?;
        match entry.kind {
            PathKind::Symlink => check_link(&folder.join(&entry.name)?),
            PathKind::Directory => check_links_below(&folder.join(&entry.name)?, remaining),
            _ => Ok(()),
        }
    })
}

fn check_link(link: &ConfinedPath) -> Result<(), Error> {
    match link.metadata() {
        Err(error) if error.is_outside() => Err(Error::OutsideRoots(format!("the link `{link}`"))),
        _ => Ok(()),
    }
}

/// Refuses what git would wait for where it expects a file. A socket is fine: git itself has one, of `fsmonitor`.
pub(super) fn check_kind(path: &ConfinedPath, kind: PathKind) -> Result<(), Error> {
    match kind {
        PathKind::Fifo | PathKind::Device => {
            Err(Error::UnsupportedLayout(format!("`{path}` is {}", kind.noun())))
        }
        _ => Ok(()),
    }
}

/// Refuses an objects folder, or an alternate that it borrows from, that lies outside.
pub(super) fn check_objects(
    workspace: &Workspace,
    objects: &ConfinedPath,
    depth: usize,
) -> Result<(), Error> {
    if objects.kind().map_err(|error| outside_roots(error, objects))? != Some(PathKind::Directory) {
        return Ok(());
    }
    let objects = real_path(workspace, &objects.to_absolute(), || "the objects folder".to_owned())?;
    check_links_in(&objects)?;
    for name in ["info", "pack"] {
        let part = objects.join(name)?;
        if part.kind().map_err(|error| outside_roots(error, &part))? == Some(PathKind::Directory) {
            check_links_in(&part)?;
        }
    }
    let Some(text) = read_small_file(&objects.join("info/alternates")?)? else { return Ok(()) };
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        if line.starts_with(b"\"") {
            return Err(Error::UnsupportedLayout("its alternates have a quoted path".to_owned()));
        }
        let path: PathBuf = objects.to_absolute().join(path_from_bytes(line)?);
        // git skips an alternate that does not exist.
        if !path.exists() {
            continue;
        }
        if depth >= MAX_ALTERNATES_DEPTH {
            return Err(Error::UnsupportedLayout("its alternates are nested too deeply".to_owned()));
        }
        let alternate = real_path(workspace, &path, || "an alternate objects folder".to_owned())?;
        check_objects(workspace, &alternate, depth + 1)?;
    }
    Ok(())
}

/// Returns true if another user owns `path`, as git judges it (git-config(1), `safe.directory`).
#[cfg(unix)]
pub(super) fn has_other_owner(path: &ConfinedPath) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    path.to_absolute().symlink_metadata().is_ok_and(|metadata| metadata.uid() != user)
}

#[cfg(not(unix))]
pub(super) fn has_other_owner(_path: &ConfinedPath) -> bool {
    false
}
