//! `create_directory`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::Workspace;

/// What to create.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDirectory {
    /// Directory to create, with its parents
    pub path: String,
}

/// What was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CreatedDirectory {
    /// The directory, relative to its root.
    pub path: String,
    /// False if it existed already.
    pub created: bool,
}

/// Creates a directory and those it lies in. One that exists is fine.
///
/// # Errors
/// The path, or a file in the way.
pub fn create_directory(workspace: &Workspace, input: &CreateDirectory) -> Result<CreatedDirectory, Error> {
    let path = workspace.locate(&input.path)?;
    let created = path.create_folder_all()?;
    Ok(CreatedDirectory { path: path.shown(), created })
}
