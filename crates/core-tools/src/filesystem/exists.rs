//! `file_exists` and `directory_exists`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::workspace::{ConfinedPath, Kind, Workspace};

/// What to look for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exists {
    /// Path to look for
    pub path: String,
}

/// Whether it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Existence {
    /// The path, relative to its root.
    pub path: String,
    /// Whether it exists and is of the kind asked for.
    pub exists: bool,
    /// What is there, links followed; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
}

/// Whether `path` is a regular file, or a link to one. A dangling link is no file.
///
/// # Errors
/// A path that leads outside the roots is an error, not absent.
pub fn file_exists(workspace: &Workspace, input: &Exists) -> Result<Existence, Error> {
    exists(workspace, input, Kind::File)
}

/// Whether `path` is a directory, or a link to one.
///
/// # Errors
/// A path that leads outside the roots is an error, not absent.
pub fn directory_exists(workspace: &Workspace, input: &Exists) -> Result<Existence, Error> {
    exists(workspace, input, Kind::Directory)
}

/// [`file_exists`] for a [`Kind::File`], [`directory_exists`] for a [`Kind::Directory`], if the answer needs no waiting;
/// see [`ConfinedPath::kind_at_hand`](crate::workspace::ConfinedPath::kind_at_hand).
pub fn exists_at_hand(
    workspace: &Workspace,
    input: &Exists,
    wanted: Kind,
) -> Option<Result<Existence, Error>> {
    let path = workspace.locate(&input.path).ok()?;
    Some(path.kind_at_hand()?.map_err(Error::from).map(|kind| existence(&path, kind, wanted)))
}

fn exists(workspace: &Workspace, input: &Exists, wanted: Kind) -> Result<Existence, Error> {
    let path = workspace.locate(&input.path)?;
    let kind = path.kind()?;
    Ok(existence(&path, kind, wanted))
}

fn existence(path: &ConfinedPath, kind: Option<Kind>, wanted: Kind) -> Existence {
    Existence { path: path.shown(), exists: kind == Some(wanted), kind }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Project;
    use super::*;

    #[test]
    fn existence_depends_on_the_kind_and_outside_is_an_error() {
        let project = Project::with(&[("folder/f", "")]);
        let ask = |path: &str| {
            let input = Exists { path: path.into() };
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
        for path in ["..", "/etc/passwd", "folder/../../x", ""] {
            assert_eq!(ask(path), (None, None), "{path}");
        }
    }
}
