//! The test command of a project with environments of tox: all of them.

use super::command::ProjectCommand;
use crate::ci::project::Project;

/// The variables that an environment needs for our reporters: tox gives it only those that it knows.
const VARIABLES: &str = "PYTHONPATH,PYTEST_PLUGINS,NODE_OPTIONS";

/// Returns the command that runs tox, which is `program`.
pub(super) fn test_command(project: &Project, program: &str) -> ProjectCommand {
    let text = project.read("tox.ini").unwrap_or_default();
    let sections = ["testenv", "env_run_base"].into_iter().chain(sections_with_variables(&text));
    let options: Vec<_> = sections.map(|section| format!("{section}.pass_env+={VARIABLES}")).collect();
    let pass_on = Some(("TOX_OVERRIDE", options.join(";")));
    ProjectCommand { pass_on, ..ProjectCommand::new(program, &[], Vec::new()) }
}

/// Returns the sections of single environments that have variables of their own, and none of those of all.
fn sections_with_variables(text: &str) -> Vec<&str> {
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.trim_end().strip_suffix(']')) {
            section = name;
        }
        let is_own = line.starts_with("pass_env") || line.starts_with("passenv");
        if is_own && section.starts_with("testenv:") && !found.contains(&section) {
            found.push(section);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_with_variables_of_their_own_are_found() {
        let text = "[tox]\n[testenv]\npass_env = A\n[testenv:b]\npassenv =\n  B\n[testenv:c]\ncommands = c\n";
        assert_eq!(sections_with_variables(text), ["testenv:b"]);
    }
}
