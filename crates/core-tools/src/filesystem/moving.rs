//! `move_file` and `delete_file`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::Workspace;

/// What to move where.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// File, directory or link to move
    pub source: String,
    /// Its new path in full; missing folders are created
    pub destination: String,
    /// Replace an existing file
    #[serde(default)]
    pub overwrite: bool,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Moved {
    /// Where it was, relative to its root.
    pub source: String,
    /// Where it is, relative to its root.
    pub destination: String,
}

/// Moves or renames a file, a directory or a link (itself). What exists at the destination is replaced only
/// if it is a file and `overwrite` is set; a directory there is never moved into.
///
/// # Errors
/// Either path, an existing destination, a directory moved into itself or to another file system.
pub fn move_file(workspace: &Workspace, input: &MoveFile) -> Result<Moved, Error> {
    let source = workspace.locate(&input.source)?;
    let destination = workspace.locate(&input.destination)?;
    source.rename_to(&destination, input.overwrite)?;
    Ok(Moved { source: source.shown(), destination: destination.shown() })
}

/// What to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// File or link to delete; not a directory
    pub path: String,
}

/// What was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deleted {
    /// The file, relative to its root.
    pub path: String,
}

/// Deletes a file, or a link itself, never what it leads to. Directories are refused.
///
/// # Errors
/// The path.
pub fn delete_file(workspace: &Workspace, input: &DeleteFile) -> Result<Deleted, Error> {
    let path = workspace.locate(&input.path)?;
    path.remove_file()?;
    Ok(Deleted { path: path.shown() })
}
