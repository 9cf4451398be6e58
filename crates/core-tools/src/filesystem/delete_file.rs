//! `delete_file`: deletes a file or a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::Workspace;

/// A file or link to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DeleteFile {
    /// Path of the file or link, relative to the first root or absolute.
    pub path: String,
}

impl DeleteFile {
    /// An input that deletes the file at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// A file that was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct DeleteResult {
    /// The file, relative to its root.
    pub path: String,
}

/// Deletes a file or a link; the target of a link stays. Directories are refused.
///
/// # Errors
/// The path.
pub fn delete_file(workspace: &Workspace, input: &DeleteFile) -> Result<DeleteResult, Error> {
    let path = workspace.locate(&input.path)?;
    path.remove_file()?;
    Ok(DeleteResult { path: path.display_path() })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    fn delete(project: &ProjectFixture, path: &str) -> Result<DeleteResult, String> {
        delete_file(&project.workspace, &DeleteFile::new(path)).map_err(|error| chain(&error))
    }

    #[test]
    fn only_files_are_deleted() {
        let project = ProjectFixture::with(&[("a", ""), ("folder/f", "")]);
        assert_eq!(delete(&project, "a").unwrap().path, "a");
        assert_eq!(
            delete(&project, "folder").unwrap_err(),
            "`folder` is a directory, not a file or symbolic link"
        );
        assert_eq!(delete(&project, ".").unwrap_err(), "`.` is a directory, not a file");
        assert_eq!(delete(&project, "absent").unwrap_err(), "`absent` does not exist");
        assert_eq!(project.names(""), ["folder"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_deleted_itself() {
        let project = ProjectFixture::with(&[("folder/f", "F")]);
        std::os::unix::fs::symlink("folder", project.at("link")).unwrap();
        delete(&project, "link").unwrap();
        assert_eq!(project.text("folder/f"), "F");
        assert_eq!(project.names(""), ["folder"]);
    }
}
