//! `move_file`: moves or renames a file, a directory or a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::Workspace;

/// A move from one path to another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MoveFile {
    /// Path of the file, folder or link to move, relative to the first root or absolute.
    pub source: String,
    /// Its new path in full, with its new name. Missing folders are created.
    pub destination: String,
    /// Replaces a file at the new path; never a folder. Default false.
    #[serde(default)]
    pub overwrite: bool,
}

impl MoveFile {
    /// An input that moves `source` to `destination` and replaces nothing there.
    pub fn new(source: impl Into<String>, destination: impl Into<String>) -> Self {
        Self { source: source.into(), destination: destination.into(), overwrite: false }
    }
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MoveResult {
    /// The old path, relative to its root.
    pub source: String,
    /// The new path, relative to its root.
    pub destination: String,
}

/// Moves or renames a file, a directory or a link (the link itself). A file at the destination is replaced only
/// if `overwrite` is set; a directory there is neither replaced nor moved into.
///
/// # Errors
/// Either path, an existing destination, a directory moved into itself or to another file system.
pub fn move_file(workspace: &Workspace, input: &MoveFile) -> Result<MoveResult, Error> {
    let source = workspace.locate(&input.source)?;
    let destination = workspace.locate(&input.destination)?;
    source.rename_to(&destination, input.overwrite)?;
    Ok(MoveResult { source: source.display_path(), destination: destination.display_path() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the tests set up files from outside")]

    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    fn rename(
        project: &ProjectFixture,
        source: &str,
        destination: &str,
        overwrite: bool,
    ) -> Result<MoveResult, String> {
        let input = MoveFile { source: source.into(), destination: destination.into(), overwrite };
        move_file(&project.workspace, &input).map_err(|error| chain(&error))
    }

    #[test]
    fn files_and_directories_move_and_missing_folders_are_created() {
        let project = ProjectFixture::with(&[("a", "A"), ("folder/f", "F")]);
        rename(&project, "a", "new/place/b", false).unwrap();
        assert_eq!(project.text("new/place/b"), "A");
        rename(&project, "folder", "new/folder", false).unwrap();
        assert_eq!(project.text("new/folder/f"), "F");
        assert_eq!(project.names(""), ["new"]);
    }

    #[test]
    fn nothing_is_replaced_unless_asked_and_a_directory_never() {
        let project = ProjectFixture::with(&[("a", "A"), ("b", "B"), ("folder/f", "F"), ("empty/x", "")]);
        std::fs::remove_file(project.at("empty/x")).unwrap();
        for (destination, overwrite) in [("b", false), ("folder", false), ("folder", true), ("empty", true)] {
            let error = rename(&project, "a", destination, overwrite).unwrap_err();
            assert!(
                error.starts_with(&format!("`{destination}` already exists; nothing was changed")),
                "{error}"
            );
        }
        for overwrite in [false, true] {
            rename(&project, "folder", "empty", overwrite).unwrap_err();
        }
        assert_eq!((project.text("a"), project.text("b")), ("A".into(), "B".into()));
        rename(&project, "a", "b", true).unwrap();
        assert_eq!(project.text("b"), "A");
        // Onto itself is not a move either.
        rename(&project, "b", "b", false).unwrap_err();
        assert_eq!(project.text("b"), "A");
    }

    #[test]
    fn a_missing_source_leaves_no_folders_behind_and_names_the_nearest() {
        let project = ProjectFixture::with(&[("main.rs", "")]);
        let error = rename(&project, "mian.rs", "new/main.rs", false).unwrap_err();
        assert_eq!(error, "`mian.rs` does not exist; did you mean `main.rs`?");
        assert_eq!(project.names(""), ["main.rs"]);
    }

    #[test]
    fn a_directory_does_not_move_into_itself() {
        let project = ProjectFixture::with(&[("folder/f", "F"), ("folder/deep/g", ""), ("folder2/f", "")]);
        for destination in ["folder/new", "folder/sub/folder", "folder/deep/new", "folder/deep/../new"] {
            for overwrite in [false, true] {
                let error = rename(&project, "folder", destination, overwrite).unwrap_err();
                assert_eq!(error, "the folder `folder` cannot be moved into itself; nothing was changed");
            }
        }
        assert_eq!(project.text("folder/f"), "F");
        assert_eq!(project.names("folder"), ["deep", "f"], "no folder was created on the way");
        // The beginning of a name is not a folder.
        rename(&project, "folder", "folder2/folder", false).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_into_a_directory_is_no_way_to_move_the_directory_into_itself() {
        let project = ProjectFixture::with(&[("folder/f", "F")]);
        std::os::unix::fs::symlink("folder", project.at("link")).unwrap();
        let error = rename(&project, "folder", "link/new/folder", false).unwrap_err();
        assert_eq!(error, "the folder `folder` cannot be moved into itself; nothing was changed");
        assert_eq!(project.names("folder"), ["f"]);
        // The link itself is no directory, and may.
        rename(&project, "link", "folder/link", false).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_moved_itself() {
        let project = ProjectFixture::with(&[("folder/f", "F")]);
        std::os::unix::fs::symlink("folder", project.at("link")).unwrap();
        rename(&project, "link", "other", false).unwrap();
        assert_eq!(project.text("folder/f"), "F");
        assert_eq!(project.names(""), ["folder", "other"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn between_file_systems_a_file_is_copied_whole_and_then_removed() {
        use std::os::unix::fs::MetadataExt;
        let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else { return };
        let here = tempfile::tempdir().unwrap();
        let device = |path: &std::path::Path| std::fs::metadata(path).unwrap().dev();
        if device(here.path()) == device(elsewhere.path()) {
            return; // One file system; nothing to prove.
        }
        let workspace = Workspace::new([here.path(), elsewhere.path()]).unwrap();
        let content = vec![b'x'; 300_000];
        workspace.locate("f").unwrap().write(&content).unwrap();
        let destination = elsewhere.path().join("sub/g");
        let input = MoveFile {
            source: "f".into(),
            destination: destination.to_str().unwrap().into(),
            overwrite: false,
        };
        move_file(&workspace, &input).unwrap();
        assert!(!here.path().join("f").exists());
        assert_eq!(workspace.locate(&destination).unwrap().metadata().unwrap().size, 300_000);
        workspace.locate("f").unwrap().write(b"again").unwrap();
        let error = move_file(&workspace, &input).unwrap_err();
        assert!(chain(&error).contains(":sub/g` already exists; nothing was changed"), "{error}");
        move_file(&workspace, &MoveFile { overwrite: true, ..input }).unwrap();
        assert_eq!(workspace.locate(&destination).unwrap().metadata().unwrap().size, 5);
    }
}
