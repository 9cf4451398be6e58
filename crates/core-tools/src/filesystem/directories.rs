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

#[cfg(test)]
mod tests {
    use super::super::testing::{Project, chain};
    use super::*;

    #[test]
    fn directories_are_created_with_their_parents_once() {
        let project = Project::with(&[("file", "")]);
        let create =
            |path: &str| create_directory(&project.workspace, &CreateDirectory { path: path.into() });
        assert!(create("a/b/c").unwrap().created);
        assert!(!create("a/b/c").unwrap().created);
        assert!(!create(".").unwrap().created);
        assert!(create("a/../d").unwrap().created);
        assert_eq!(project.names(""), ["a", "d", "file"]);
        assert_eq!(chain(&create("file").unwrap_err()), "`file` is a regular file, not a directory");
        assert!(create("file/x").is_err());
        assert!(create("absent/../x").is_err());
        assert_eq!(project.names(""), ["a", "d", "file"]);
    }
}
