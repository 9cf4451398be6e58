//! The programs of a project's own environment of Python.

use crate::ci::project::Project;

/// Returns the program of this name in the project's own environment of Python, else the name.
pub(super) fn installed(project: &Project, program: &str) -> String {
    let paths = [".venv", "venv"].map(|folder| format!("{folder}/bin/{program}"));
    let own = project.ancestors().find_map(|folder| {
        let path = paths.iter().find(|path| folder.contains(path))?;
        Some(folder.folder().to_absolute().join(path).to_string_lossy().into_owned())
    });
    own.unwrap_or_else(|| program.to_owned())
}
