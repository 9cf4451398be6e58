//! The test command of a Django project: `manage.py test`.

use super::command::{CommandPart, ProjectCommand};
use super::python_program::installed;
use super::shell::ShellOptions;
use crate::ci::project::Project;

/// Returns the command that runs the tests of a Django project, or those at `path` whose names match `pattern`.
pub(crate) fn django(project: &Project, path: Option<&str>, pattern: Option<&str>) -> ProjectCommand {
    const OWN: &str = ".venv/bin/python";
    let python = if project.contains(OWN) { OWN.to_owned() } else { installed(project, "python3") };
    let mut arguments = vec!["manage.py".to_owned(), "test".to_owned()];
    // A file is named as the module that it is; a folder may be a path.
    arguments.extend(path.map(|path| match path.strip_suffix(".py") {
        Some(module) => module.replace('/', "."),
        None => path.to_owned(),
    }));
    if let Some(pattern) = pattern {
        arguments.extend(["-k".to_owned(), pattern.to_owned()]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let parts = CommandPart::of_text("test", "python manage.py test", ShellOptions::default());
    ProjectCommand::new(&python, &arguments, parts)
}
