//! The project that a path belongs to, and its ecosystem.

use super::error::BuildError;
use crate::ci::ecosystem::Ecosystem;
use crate::ci::project::Project;
use crate::workspace::{PathKind, Workspace};

/// A project to build or restore.
pub(super) struct BuildTarget {
    pub(super) ecosystem: Ecosystem,
    pub(super) project: Project,
    /// The project file in the folder that the caller named.
    pub(super) project_file: Option<String>,
    /// The other ecosystems that the folder is a project of, unless the caller named one.
    pub(super) other_ecosystems: Vec<Ecosystem>,
}

impl BuildTarget {
    /// Finds the nearest project at `path` or above it, never above the root.
    pub(super) fn find(
        workspace: &Workspace,
        path: Option<&str>,
        ecosystem: Option<&str>,
    ) -> Result<Self, BuildError> {
        let located = workspace.locate(path.unwrap_or("."))?;
        let is_folder = located.metadata()?.kind == PathKind::Directory;
        let shown = located.display_path();
        let file = located
            .relative()
            .file_name()
            .filter(|_| !is_folder)
            .map(|name| name.to_string_lossy().into_owned());
        let start = if is_folder { located } else { located.parent().unwrap_or(located) };
        let requested = match ecosystem {
            Some(name) => Some(
                Ecosystem::from_name(name)
                    .ok_or_else(|| BuildError::UnknownEcosystem { name: name.to_owned() })?,
            ),
            None => None,
        };
        // A caller that names a project file means its ecosystem, whatever else the folder is a project of.
        let by_file = file
            .as_deref()
            .and_then(|file| Ecosystem::ALL.into_iter().find(|ecosystem| ecosystem.has_project_file(file)));
        let mut found = Vec::new();
        for project in Project::new(start).ancestors() {
            let mut ecosystems = ecosystems_of(&project);
            let chosen = match requested.or(by_file).filter(|ecosystem| ecosystems.contains(ecosystem)) {
                Some(ecosystem) => Some(ecosystem),
                None if requested.is_none() => ecosystems.first().copied(),
                None => None,
            };
            if let Some(ecosystem) = chosen {
                ecosystems.retain(|other| *other != ecosystem);
                return Ok(Self {
                    ecosystem,
                    project,
                    project_file: file.filter(|_| by_file == Some(ecosystem)),
                    other_ecosystems: if requested.is_some() { Vec::new() } else { ecosystems },
                });
            }
            found.extend(ecosystems);
        }
        Err(match requested {
            Some(ecosystem) => BuildError::NotOfEcosystem { ecosystem, path: shown, found },
            None => BuildError::NoProject { path: shown },
        })
    }
}

/// Returns the ecosystems that a folder is a project of, the preferred one first.
fn ecosystems_of(project: &Project) -> Vec<Ecosystem> {
    let names = project.entry_names(".");
    Ecosystem::ALL
        .into_iter()
        .filter(|ecosystem| names.iter().any(|name| ecosystem.has_project_file(name)))
        .collect()
}
