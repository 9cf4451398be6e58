//! Protects untracked files, which some commands of git overwrite or delete.

use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::path::path_from_bytes;
use super::printed_text::{first_names, nul_fields};
use super::repository::Repository;
use crate::workspace::ConfinedPath;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use tokio_util::sync::CancellationToken;

/// The most obstacles that are looked at.
const MAX_OBSTACLES: usize = 1_000;

/// Returns the paths where git, about to write `paths`, finds another kind of thing: folders where files will be,
/// files and links where folders will be. Paths are relative to `top`.
fn obstacles<'a>(
    top: &ConfinedPath,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<BTreeSet<&'a [u8]>, Error> {
    let mut found = BTreeSet::new();
    let mut folders = HashSet::new();
    'paths: for path in paths {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
        for above in ends.filter_map(|end| path.get(..end)) {
            if folders.contains(above) {
                continue;
            }
            // Each parent has been found to be a folder, so this follows no link.
            match std::fs::symlink_metadata(top.to_absolute().join(path_from_bytes(above)?)) {
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
        if std::fs::symlink_metadata(top.to_absolute().join(path_from_bytes(path)?))
            .is_ok_and(|found| found.is_dir())
        {
            found.insert(path);
        }
    }
    Ok(found)
}

impl Git {
    /// Refuses if git, about to write `paths`, would replace untracked files: in a folder that gives way to a file, or
    /// a file that gives way to a folder.
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
        if obstacles.len() > MAX_OBSTACLES {
            return Err(Error::TooLarge("too many folders and files have taken each other's place to see what would be lost; run git itself for that (run_command)".to_owned()));
        }
        // Without `--exclude-standard` this lists ignored files as well.
        let words = ["ls-files", "--others", "-z", "--full-name", "--"];
        let mut invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        for path in obstacles {
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(&*path_from_bytes(path)?);
            invocation = invocation.arg(pattern);
        }
        let listed = self.run_checked(action, invocation).await?.bytes;
        refuse_paths(repository, action, nul_fields(&listed))
    }
}

/// Refuses if any of `paths`, none of which git tracks, exists.
pub(super) fn refuse_existing<'a>(
    repository: &Repository,
    top: &ConfinedPath,
    paths: impl Iterator<Item = &'a [u8]>,
    action: &'static str,
) -> Result<(), Error> {
    refuse_paths(repository, action, existing(top, paths)?.into_iter())
}

/// Returns those of `paths`, which are relative to `top`, that exist.
pub(super) fn existing<'a>(
    top: &ConfinedPath,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<&'a [u8]>, Error> {
    let mut existing = Vec::new();
    for path in paths {
        if std::fs::symlink_metadata(top.to_absolute().join(path_from_bytes(path)?)).is_ok() {
            existing.push(path);
        }
    }
    Ok(existing)
}

/// Returns an error that names `paths`, which are relative to the top folder, unless there are none.
fn refuse_paths<'a>(
    repository: &Repository,
    action: &'static str,
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Error> {
    let paths = first_names(&repository.prefix, paths);
    if paths.is_empty() { Ok(()) } else { Err(Error::UntrackedInTheWay { action, paths }) }
}
