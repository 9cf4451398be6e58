//! `file_exists` and `directory_exists`: tell if a path is a file or a directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::{ConfinedPath, PathKind, Workspace};

/// A path to look for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PathExistenceCheck {
    /// Path to look for, relative to the first root or absolute.
    pub path: String,
}

impl PathExistenceCheck {
    /// An input that looks for `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// The existence of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Existence {
    /// The path, relative to its root.
    pub path: String,
    /// True if it exists and is of the kind asked for.
    pub exists: bool,
    /// The kind of what is there, links followed; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<PathKind>,
    /// A remark, if something else has the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Tells if `path` is a regular file, or a link to one. A dangling link is no file.
///
/// # Errors
/// A path that leads outside the roots is an error, not absent.
pub fn file_exists(workspace: &Workspace, input: &PathExistenceCheck) -> Result<Existence, Error> {
    exists(workspace, input, PathKind::File)
}

/// Tells if `path` is a directory, or a link to one.
///
/// # Errors
/// A path that leads outside the roots is an error, not absent.
pub fn directory_exists(workspace: &Workspace, input: &PathExistenceCheck) -> Result<Existence, Error> {
    exists(workspace, input, PathKind::Directory)
}

/// Does what [`file_exists`] does for a [`PathKind::File`], and [`directory_exists`] for a [`PathKind::Directory`], if the
/// kernel has the answer in its caches, so that it need not wait for a disk. Returns `None` otherwise.
// The caches are asked by `ConfinedPath::cached_kind`.
#[cfg(feature = "mcp")]
pub(crate) fn exists_if_cached(
    workspace: &Workspace,
    input: &PathExistenceCheck,
    wanted: PathKind,
) -> Option<Result<Existence, Error>> {
    let path = workspace.locate(&input.path).ok()?;
    Some(path.cached_kind()?.map_err(Error::from).map(|kind| existence(&path, kind, wanted)))
}

fn exists(workspace: &Workspace, input: &PathExistenceCheck, wanted: PathKind) -> Result<Existence, Error> {
    let path = workspace.locate(&input.path)?;
    let kind = path.kind()?;
    Ok(existence(&path, kind, wanted))
}

fn existence(path: &ConfinedPath, kind: Option<PathKind>, wanted: PathKind) -> Existence {
    let path = path.display_path();
    let exists = kind == Some(wanted);
    let other = kind.filter(|_| !exists);
    let note = other.map(|kind| format!("`{path}` is there: it is {}, not {}", kind.noun(), wanted.noun()));
    Existence { path, exists, kind, note }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ProjectFixture;
    use super::*;

    #[test]
    fn existence_depends_on_the_kind_and_outside_is_an_error() {
        let project = ProjectFixture::with(&[("folder/f", "")]);
        let ask = |path: &str| {
            let input = PathExistenceCheck::new(path);
            let answer = |result: Result<Existence, Error>| result.ok().map(|existence| existence.exists);
            (
                answer(file_exists(&project.workspace, &input)),
                answer(directory_exists(&project.workspace, &input)),
            )
        };
        assert_eq!(ask("folder/f"), (Some(true), Some(false)));
        assert_eq!(ask("folder"), (Some(false), Some(true)));
        assert_eq!(ask("absent/f"), (Some(false), Some(false)));
        assert_eq!(ask("folder/f/below"), (Some(false), Some(false)));
        assert_eq!(ask("."), (Some(false), Some(true)));
        let folder = file_exists(&project.workspace, &PathExistenceCheck::new("folder")).unwrap();
        assert_eq!(folder.note.as_deref(), Some("`folder` is there: it is a directory, not a regular file"));
        assert_eq!(
            directory_exists(&project.workspace, &PathExistenceCheck::new("folder")).unwrap().note,
            None
        );
        for path in ["..", "/etc/passwd", "folder/../../x", ""] {
            assert_eq!(ask(path), (None, None), "{path}");
        }
    }
}
