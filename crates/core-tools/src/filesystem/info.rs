//! `get_file_info`: describes a file without reading it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::time::rfc3339;
use crate::workspace::{ConfinedPath, PathKind, Workspace, printable};

/// A path to describe.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GetFileInfo {
    /// File, folder or link, relative to the first root or absolute.
    pub path: String,
}

impl GetFileInfo {
    /// An input that describes what is at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// The metadata of a file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FileInfo {
    /// The path, relative to its root.
    pub path: String,
    /// The kind of file; links are not followed.
    pub kind: PathKind,
    /// Length in bytes.
    pub size: u64,
    /// Permissions in octal, as for chmod: `0644`.
    pub permissions: String,
    /// The time at which its content last changed (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The number of names that the file has.
    pub hard_links: u64,
    /// The target of the link, if that is inside the roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_target: Option<String>,
    /// The kind of the link's target; absent if there is none, or it is outside the roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_kind: Option<PathKind>,
    /// Remarks on peculiarities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Describes a file, directory or link. A link is described itself; its target is named only if that is
/// inside the roots.
///
/// # Errors
/// The path.
pub fn get_file_info(workspace: &Workspace, input: &GetFileInfo) -> Result<FileInfo, Error> {
    let path = workspace.locate(&input.path)?;
    let metadata = path.link_metadata()?;
    let mut info = FileInfo {
        path: path.display_path(),
        kind: metadata.kind,
        size: metadata.size,
        permissions: format!("{:04o}", metadata.mode),
        modified: metadata.modified.map(rfc3339),
        hard_links: metadata.links,
        link_target: None,
        target_kind: None,
        notes: Vec::new(),
    };
    if metadata.kind == PathKind::Symlink {
        match path.kind() {
            Ok(kind) => {
                info.target_kind = kind;
                info.link_target = target_inside_roots(workspace, &path)?;
                if kind.is_none() {
                    info.notes.push("the link leads to nothing that exists".to_owned());
                }
            }
            Err(error) => info.notes.push(error.to_string()),
        }
    }
    Ok(info)
}

/// Returns the target of a link as it is written, or relative to its root if it is absolute.
fn target_inside_roots(workspace: &Workspace, path: &ConfinedPath) -> Result<Option<String>, Error> {
    let Some(target) = path.read_link()? else { return Ok(None) };
    if target.has_root() {
        // A target that reaches the root through a link elsewhere is not recognized as inside. It is then left
        // out: a path outside the roots must not be told.
        return Ok(workspace.locate(&target).ok().map(|target| target.display_path()));
    }
    Ok(Some(printable(target.as_os_str())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    fn info(project: &ProjectFixture, path: &str) -> Result<FileInfo, String> {
        get_file_info(&project.workspace, &GetFileInfo::new(path)).map_err(|error| chain(&error))
    }

    #[cfg(unix)]
    #[test]
    fn a_file_a_directory_and_links_are_described() {
        use std::os::unix::fs::symlink;
        let project = ProjectFixture::with(&[("folder/f", "12345")]);
        std::fs::set_permissions(project.at("folder/f"), std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .unwrap();
        let file = info(&project, "folder/f").unwrap();
        assert_eq!((file.kind, file.size, file.permissions.as_str()), (PathKind::File, 5, "0640"));
        assert_eq!(file.modified.map(|time| time.len()), Some(20));
        assert_eq!(info(&project, "folder").unwrap().kind, PathKind::Directory);

        symlink("folder/f", project.at("inside")).unwrap();
        let inside = info(&project, "inside").unwrap();
        assert_eq!((inside.kind, inside.target_kind), (PathKind::Symlink, Some(PathKind::File)));
        assert_eq!(inside.link_target.as_deref(), Some("folder/f"));
        symlink(project.at("folder").canonicalize().unwrap(), project.at("absolute")).unwrap();
        assert_eq!(info(&project, "absolute").unwrap().link_target.as_deref(), Some("folder"));

        symlink("/etc/passwd", project.at("outside")).unwrap();
        let outside = info(&project, "outside").unwrap();
        assert_eq!((outside.link_target, outside.target_kind), (None, None));
        assert_eq!(
            outside.notes,
            [
                "`outside` is a symbolic link that leads outside the allowed roots; the user can allow that place with --root"
            ]
        );
        symlink("nothing", project.at("dangling")).unwrap();
        assert_eq!(info(&project, "dangling").unwrap().notes, ["the link leads to nothing that exists"]);
        assert_eq!(info(&project, "foldr").unwrap_err(), "`foldr` does not exist; did you mean `folder`?");
    }
}
