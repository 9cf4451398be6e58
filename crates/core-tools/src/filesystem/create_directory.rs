//! `create_directory`: creates a directory and its parents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::Workspace;

/// A directory to create.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CreateDirectory {
    /// Path of the folder, relative to the first root or absolute.
    pub path: String,
}

impl CreateDirectory {
    /// An input that creates a directory at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// A directory that was created, or existed already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CreateDirectoryResult {
    /// The directory, relative to its root.
    pub path: String,
    /// False if it existed already.
    pub created: bool,
}

/// Creates a directory and its missing parents. An existing directory is no error.
///
/// # Errors
/// The path, or a file in the way.
pub fn create_directory(
    workspace: &Workspace,
    input: &CreateDirectory,
) -> Result<CreateDirectoryResult, Error> {
    let path = workspace.locate(&input.path)?;
    let created = path.create_folder_all()?;
    Ok(CreateDirectoryResult { path: path.display_path(), created })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    #[test]
    fn directories_are_created_with_their_parents_once() {
        let project = ProjectFixture::with(&[("file", "")]);
        let create = |path: &str| create_directory(&project.workspace, &CreateDirectory::new(path));
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
