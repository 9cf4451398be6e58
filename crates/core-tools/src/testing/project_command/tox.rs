//! The test command of a project with environments of tox: all of them.

use super::command::ProjectCommand;
use crate::ci::project::Project;

/// The variables that an environment needs for our reporters: tox gives it only those that it knows.
const VARIABLES: &str = "PYTHONPATH,NODE_OPTIONS";

/// Returns the command that runs tox, which is `program`.
pub(super) fn test_command(project: &Project, program: &str) -> ProjectCommand {
    let text = project.read("tox.ini").unwrap_or_default();
    // An environment with a `pass_env` of its own does not inherit that of the base, so each needs the addition.
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
        // Version 4 of tox renamed the key, and still reads the older name.
        let is_own = line.starts_with("pass_env") || line.starts_with("passenv");
        if is_own && section.starts_with("testenv:") && !found.contains(&section) {
            found.push(section);
        }
    }
    found
}

/// The options of pytest that select tests, and mean the same without tox.
const SELECTING_OPTIONS: [&str; 5] =
    ["--doctest-modules", "--doctest-glob=", "--ignore=", "--ignore-glob=", "--import-mode="];
/// Options without a value, which are not needed.
const SWITCHES: [&str; 12] = [
    "-q",
    "-v",
    "-vv",
    "-x",
    "-s",
    "-l",
    "-ra",
    "-rA",
    "--quiet",
    "--verbose",
    "--strict-markers",
    "--strict-config",
];

/// Returns the options and paths with which tox runs pytest, where they add the tests in documentation: those of the
/// project are then more than pytest finds by itself. Nothing if the command cannot be understood whole.
pub(crate) fn pytest_words_of_tox(project: &Project) -> Vec<String> {
    let text = project.read("tox.ini").unwrap_or_default();
    let arguments = commands_of_testenv(&text).into_iter().find_map(arguments_of_pytest);
    let words = arguments.and_then(|arguments| words_without_tox(&arguments, project)).unwrap_or_default();
    let has_doctests = words.iter().any(|word| word.starts_with("--doctest"));
    if has_doctests { words } else { Vec::new() }
}

/// Returns the lines of `commands` in the section of all environments.
fn commands_of_testenv(text: &str) -> Vec<&str> {
    let (mut is_testenv, mut in_commands) = (false, false);
    let mut commands = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            (is_testenv, in_commands) = (line.trim_end() == "[testenv]", false);
        } else if let Some(value) = line.strip_prefix("commands").map(str::trim_start).filter(|_| is_testenv)
        {
            in_commands = value.starts_with('=');
            commands.extend(value.strip_prefix('=').map(str::trim).filter(|command| !command.is_empty()));
        } else if in_commands && line.starts_with([' ', '\t']) {
            commands.extend(Some(line.trim()).filter(|command| !command.is_empty()));
        } else {
            in_commands = false;
        }
    }
    commands
}

/// Returns the words after `pytest` in a command that runs it: `pytest …`, `python -m pytest …`, `coverage run -m pytest …`.
fn arguments_of_pytest(command: &str) -> Option<Vec<&str>> {
    let words: Vec<_> = command.split_whitespace().collect();
    let at = words.iter().position(|word| matches!(*word, "pytest" | "py.test"))?;
    let is_run = at == 0 || words.get(at - 1) == Some(&"-m");
    is_run.then(|| words.into_iter().skip(at + 1).collect())
}

/// Returns the words of pytest's that select tests, as they are without tox. `None` for a path that is not found.
fn words_without_tox(arguments: &[&str], project: &Project) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut arguments = arguments.iter().peekable();
    while let Some(word) = arguments.next() {
        if word.starts_with('-') {
            let selects = SELECTING_OPTIONS
                .iter()
                .any(|option| if option.ends_with('=') { word.starts_with(option) } else { word == option });
            if selects {
                words.push((*word).to_owned());
            } else if !word.contains('=') && !SWITCHES.contains(word) {
                // The next word is its value, unless it is an option itself.
                arguments.next_if(|next| !next.starts_with('-'));
            }
        } else if *word != "{posargs}" && *word != "[]" {
            words.push(path_without_tox(word, project)?);
        }
    }
    Some(words)
}

/// Returns a path of a command of tox as a path of the project.
fn path_without_tox(word: &str, project: &Project) -> Option<String> {
    let word = word.strip_prefix("{posargs:").and_then(|rest| rest.strip_suffix('}')).unwrap_or(word);
    let folders = ["{toxinidir}/", "{envsitepackagesdir}/", "{tox_root}/", "./"];
    let path = folders.iter().find_map(|folder| word.strip_prefix(folder)).unwrap_or(word);
    let mut candidates = [path.to_owned(), format!("src/{path}")].into_iter();
    candidates.find(|path| !path.contains('{') && project.contains(path))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its files itself")]
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn the_doctests_that_tox_runs_are_found_without_tox() {
        for (commands, expected) in [
            (
                "commands = pytest --doctest-modules {envsitepackagesdir}/shop {toxinidir}/tests {posargs}\n",
                "--doctest-modules shop tests",
            ),
            (
                "deps = x\ncommands =\n  pip check\n  coverage run -m pytest -n 2 --cov=shop --doctest-glob=*.md {posargs:tests}\n",
                "--doctest-glob=*.md tests",
            ),
            (
                "commands = pytest -v --doctest-modules {envsitepackagesdir}/inner tests\n",
                "--doctest-modules src/inner tests",
            ),
            ("commands = pytest --doctest-modules {envsitepackagesdir}/gone tests\n", ""),
            ("commands = pytest tests\n", ""),
            ("commands = echo pytest --doctest-modules\n", ""),
            ("commands_pre = pytest --doctest-modules\n", ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("shop")).unwrap();
            std::fs::create_dir_all(folder.path().join("src/inner")).unwrap();
            std::fs::create_dir(folder.path().join("tests")).unwrap();
            std::fs::write(
                folder.path().join("tox.ini"),
                format!("[tox]\n[testenv]\n{commands}[testenv:x]\ncommands = pytest --doctest-modules\n"),
            )
            .unwrap();
            let workspace = Workspace::new([folder.path()]).unwrap();
            let project = Project::new(workspace.locate(".").unwrap());
            assert_eq!(pytest_words_of_tox(&project).join(" "), expected, "{commands}");
        }
    }

    #[test]
    fn environments_with_variables_of_their_own_are_found() {
        let text = "[tox]\n[testenv]\npass_env = A\n[testenv:b]\npassenv =\n  B\n[testenv:c]\ncommands = c\n";
        assert_eq!(sections_with_variables(text), ["testenv:b"]);
    }
}
