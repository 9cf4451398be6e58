//! What git does not track, and what some of its commands would overwrite or delete all the same.

use super::error::Error;
use super::repository::{Repository, name};
use super::run::{Access, Call, Git};
use super::text::{fields, seen_from};
use crate::workspace::ConfinedPath;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use tokio_util::sync::CancellationToken;

/// Places where something stands in the way that are looked at.
const MOST_OBSTACLES: usize = 1_000;
/// Paths that an error names.
const MOST_NAMED: usize = 10;

/// What stands where git is about to write `paths`, and is another kind of thing: folders where files will be,
/// files and links where folders will be. Paths are beneath `top`.
fn obstacles<'a>(
    top: &ConfinedPath,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<&'a [u8]>, Error> {
    let mut found = BTreeSet::new();
    let mut folders = HashSet::new();
    'paths: for path in paths {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for above in ends.filter_map(|end| path.get(..end)) {
            if folders.contains(above) {
                continue;
            }
            // Each part before it is a folder: this follows no link.
            match std::fs::symlink_metadata(top.to_absolute().join(name(above)?)) {
                Ok(metadata) if metadata.is_dir() => {
                    folders.insert(above);
                }
                Ok(_) => {
                    found.insert(above);
                    continue 'paths;
                }
                Err(_) => continue 'paths,
            }
        }
        if std::fs::symlink_metadata(top.to_absolute().join(name(path)?)).is_ok_and(|found| found.is_dir()) {
            found.insert(path);
        }
    }
    Ok(found)
}

impl Git {
    /// Refuses where git, about to write `paths`, would put one in place of what it does not track: a folder
    /// with such files, or a file where a folder must be.
    pub(super) async fn refuse_untracked<'a>(
        &self,
        repository: &Repository,
        top: &ConfinedPath,
        paths: impl Iterator<Item = &'a [u8]>,
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let obstacles = obstacles(top, paths)?;
        if obstacles.is_empty() {
            return Ok(());
        }
        if obstacles.len() > MOST_OBSTACLES {
            return Err(Error::Odd("too many folders and files have taken each other's place to see what would be lost; run git itself for that (run_command)".to_owned()));
        }
        // Without an exclusion this lists ignored files as well.
        let words = ["ls-files", "--others", "-z", "--full-name", "--"];
        let mut call = Call::new(repository, Access::Reads, cancel, &words);
        for path in obstacles {
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(&*name(path)?);
            call = call.arg(pattern);
        }
        let (listed, _) = self.ask(action, call).await?;
        untracked(repository, action, fields(&listed))
    }
}

/// Refuses where any of `paths`, none of which git tracks, exists.
pub(super) fn refuse_existing<'a>(
    repository: &Repository,
    top: &ConfinedPath,
    paths: impl Iterator<Item = &'a [u8]>,
    action: &'static str,
) -> Result<(), Error> {
    let mut existing = Vec::new();
    for path in paths {
        if std::fs::symlink_metadata(top.to_absolute().join(name(path)?)).is_ok() {
            existing.push(path);
        }
    }
    untracked(repository, action, existing.into_iter())
}

/// An error that names `paths`, which are beneath the top folder, if there are any.
fn untracked<'a>(
    repository: &Repository,
    action: &'static str,
    mut paths: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Error> {
    let mut named: Vec<_> =
        paths.by_ref().take(MOST_NAMED).map(|path| seen_from(&repository.prefix, path)).collect();
    if named.is_empty() {
        return Ok(());
    }
    if paths.next().is_some() {
        named.push("...".to_owned());
    }
    Err(Error::Untracked { action, paths: named })
}
