//! Finds the git directory of a folder, as git does, but never outside the roots.

use super::error::Error;
use super::path::path_from_bytes;
use super::repository_files::{outside_roots, read_small_file, real_path};
use crate::workspace::{ConfinedPath, PathKind, Workspace, printable};
use std::ffi::OsStr;
use std::path::Path;

/// Returns the git directory that `folder/.git` is or points to.
pub(super) fn find_git_dir(
    workspace: &Workspace,
    folder: &ConfinedPath,
) -> Result<Option<ConfinedPath>, Error> {
    let dot_git = folder.join(".git")?;
    match dot_git.kind().map_err(|error| outside_roots(error, &dot_git))? {
        Some(PathKind::Directory) => {
            let git_dir = real_path(workspace, &dot_git.to_absolute(), || format!("`{dot_git}`"))?;
            Ok(is_git_dir(&git_dir)?.then_some(git_dir))
        }
        // The `.git` file of a linked work tree or a submodule.
        Some(PathKind::File) => {
            let text = read_small_file(&dot_git)?.unwrap_or_default();
            let Some(path) = text.strip_prefix(b"gitdir:") else {
                return Err(Error::UnsupportedLayout(format!(
                    "`{dot_git}` is a file that names no git folder"
                )));
            };
            if let Some(repository) = repository_outside(workspace, folder, path)? {
                return Err(Error::LinkedRepositoryOutsideRoots {
                    folder: folder.display_path(),
                    repository,
                });
            }
            let git_dir = follow_pointer(workspace, folder, path, ".git file")?;
            if !is_git_dir(&git_dir)? {
                return Err(Error::UnsupportedLayout(format!(
                    "the `.git` file `{dot_git}` leads to no repository"
                )));
            }
            Ok(Some(git_dir))
        }
        _ => Ok(None),
    }
}

/// Returns true if `folder` looks like a git directory, by git's own rule: `HEAD`, objects and references.
pub(super) fn is_git_dir(folder: &ConfinedPath) -> Result<bool, Error> {
    // First, as it decides most often: there is no HEAD. The link itself will do, as HEAD may be one to nothing.
    match folder.join("HEAD")?.link_metadata() {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let exists = |name: &str| -> Result<bool, Error> {
        let path = folder.join(name)?;
        Ok(path.kind().map_err(|error| outside_roots(error, &path))?.is_some())
    };
    Ok(exists("commondir")? || (exists("objects")? && exists("refs")?))
}

/// Returns the path that a pointer file's `text` leads to, relative to `folder`.
pub(super) fn follow_pointer(
    workspace: &Workspace,
    folder: &ConfinedPath,
    text: &[u8],
    description: &str,
) -> Result<ConfinedPath, Error> {
    let text = text.trim_ascii();
    if text.is_empty() || text.contains(&0) || text.contains(&b'\n') {
        return Err(Error::UnsupportedLayout(format!("the {description} is damaged")));
    }
    let target = folder.to_absolute().join(path_from_bytes(text)?);
    real_path(workspace, &target, || format!("the {description}"))
}

/// Returns the folder of the repository that a `.git` file leads to, where that exists outside the roots. It comes from
/// the text of the file, which lies beneath a root and may be read.
fn repository_outside(
    workspace: &Workspace,
    folder: &ConfinedPath,
    text: &[u8],
) -> Result<Option<String>, Error> {
    let named = folder.to_absolute().join(path_from_bytes(text.trim_ascii())?);
    let Ok(git_dir) = named.canonicalize() else { return Ok(None) };
    if workspace.locate(&git_dir).is_ok() {
        return Ok(None);
    }
    // `TOP/.git/worktrees/NAME` and `TOP/.git/modules/NAME` belong to TOP, `BARE.git/worktrees/NAME` to BARE.git.
    let is_shared = |name: &OsStr| name == "worktrees" || name == "modules";
    let shared = git_dir.ancestors().find(|above| above.file_name().is_some_and(is_shared));
    let common_dir = shared.and_then(Path::parent).unwrap_or(&git_dir);
    let top = if common_dir.file_name() == Some(OsStr::new(".git")) { common_dir.parent() } else { None };
    Ok(Some(printable(top.unwrap_or(common_dir).as_os_str())))
}
