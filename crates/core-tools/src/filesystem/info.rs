//! `get_file_info`: what is known about a file without reading it.

use crate::time::rfc3339;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::{ConfinedPath, Kind, Workspace, printable};

/// What to describe.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetFileInfo {
    /// What to describe
    pub path: String,
}

/// What is known about a file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileInfo {
    /// The path, relative to its root.
    pub path: String,
    /// What it is; a link is a link.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Permissions in octal, as for chmod: `0644`.
    pub permissions: String,
    /// When its content last changed (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// How many names the file has.
    pub hard_links: u64,
    /// Where the link leads, if that is inside the roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_target: Option<String>,
    /// What the link leads to; absent if nothing, or outside the roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_kind: Option<Kind>,
    /// What is odd about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Describes a file, directory or link. A link is described itself; where it leads is said only if that is
/// inside the roots.
///
/// # Errors
/// The path.
pub fn get_file_info(workspace: &Workspace, input: &GetFileInfo) -> Result<FileInfo, Error> {
    let path = workspace.locate(&input.path)?;
    let metadata = path.link_metadata()?;
    let mut info = FileInfo {
        path: path.shown(),
        kind: metadata.kind,
        size: metadata.size,
        permissions: format!("{:04o}", metadata.mode),
        modified: metadata.modified.map(rfc3339),
        hard_links: metadata.links,
        link_target: None,
        target_kind: None,
        notes: Vec::new(),
    };
    if metadata.kind == Kind::Symlink {
        match path.kind() {
            Ok(kind) => {
                info.target_kind = kind;
                info.link_target = inside_target(workspace, &path)?;
                if kind.is_none() {
                    info.notes.push("the link leads to nothing that exists".to_owned());
                }
            }
            Err(error) => info.notes.push(error.to_string()),
        }
    }
    Ok(info)
}

/// Where the link leads as it is written, or relative to its root if it is absolute.
fn inside_target(workspace: &Workspace, path: &ConfinedPath) -> Result<Option<String>, Error> {
    let Some(target) = path.read_link()? else { return Ok(None) };
    if target.has_root() {
        // Written through a link to the root it would not be recognised: then nothing is said.
        return Ok(workspace.locate(&target).ok().map(|target| target.shown()));
    }
    Ok(Some(printable(target.as_os_str())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Project, chain};
    use super::*;

    fn info(project: &Project, path: &str) -> Result<FileInfo, String> {
        get_file_info(&project.workspace, &GetFileInfo { path: path.into() }).map_err(|error| chain(&error))
    }

    #[cfg(unix)]
    #[test]
    fn a_file_a_directory_and_links_are_described() {
        use std::os::unix::fs::symlink;
        let project = Project::with(&[("folder/f", "12345")]);
        std::fs::set_permissions(project.at("folder/f"), std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .unwrap();
        let file = info(&project, "folder/f").unwrap();
        assert_eq!((file.kind, file.size, file.permissions.as_str()), (Kind::File, 5, "0640"));
        assert_eq!(file.modified.map(|time| time.len()), Some(20));
        assert_eq!(info(&project, "folder").unwrap().kind, Kind::Directory);

        symlink("folder/f", project.at("inside")).unwrap();
        let inside = info(&project, "inside").unwrap();
        assert_eq!((inside.kind, inside.target_kind), (Kind::Symlink, Some(Kind::File)));
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
