//! The choice of a project's test command, by its ecosystem.

use super::command::{CommandPart, ProjectCommand};
use super::django::django;
use super::python_program::installed;
use super::runner_flags::{RunnerFlags, runner_flags};
use super::script::ScriptCommand;
use super::script_files::ScriptFiles;
use super::shell::ShellOptions;
use super::{cargo, composer, deno, node, rake, recipe, tox};
use crate::ci::project::Project;
use crate::testing::detect::{is_django, test_program};
use crate::testing::error::TestError;
use crate::testing::runner::TestRunner;

/// Returns the command that a project runs its tests with, where its ecosystem has one and it is known.
///
/// # Errors
///
/// The project's file names a test command that cannot be read.
pub(crate) fn project_command(
    project: &Project,
    runner: TestRunner,
) -> Result<Option<ProjectCommand>, TestError> {
    let command = match runner {
        // The files of Deno may be there beside a script of Node, which is what the project runs.
        TestRunner::Deno => match node::test_command(project)? {
            None => deno::test_command(project),
            found => found,
        },
        runner if runner.runs_any_node_project() => node::test_command(project)?,
        TestRunner::Phpunit => composer::test_command(project),
        TestRunner::Unittest if is_django(project) => Some(django(project, None, None)),
        TestRunner::Rake => Some(rake::test_command(project)),
        TestRunner::Make => Some(recipe::make(project)),
        TestRunner::Just => Some(recipe::just(project)),
        TestRunner::Tox => Some(tox::test_command(project, &installed(project, "tox"))),
        TestRunner::Nox => Some(ProjectCommand::new(&installed(project, "nox"), &[], Vec::new())),
        TestRunner::Zig => Some(ProjectCommand::new("zig", &["build", "test"], Vec::new())),
        TestRunner::Swift => Some(ProjectCommand::new("swift", &["test"], Vec::new())),
        TestRunner::Script => test_program(project).map(|path| program(project, path)),
        _ => None,
    };
    let Some(mut command) = command else { return Ok(None) };
    let mut files = ScriptFiles::default();
    for part in &mut command.parts {
        let folder = project.folder().join(if part.folder.is_empty() { "." } else { &part.folder });
        // A folder outside the roots cannot be read. Its part then stays known by its words alone.
        if let Ok(folder) = folder {
            files.read_into(&mut part.command, &Project::new(folder));
        }
    }
    if files.is_cut {
        let note = "the test command runs more scripts than were read: the answer may miss that one hides the failure of a command";
        command.notes.push(note.to_owned());
    }
    command.notes.extend(unread_note(&command.parts));
    Ok(Some(command))
}

/// Returns the command that runs a program of the project. If a shell runs it, its commands are known.
fn program(project: &Project, path: &str) -> ProjectCommand {
    let text = project.read(path).unwrap_or_default();
    let parts = ShellOptions::of_shebang(&text).map(|options| CommandPart::of_text(path, &text, options));
    ProjectCommand::new(&format!("./{path}"), &[], parts.unwrap_or_default())
}

/// Returns the note that a text of shell was not understood, if its commands name tests.
fn unread_note(parts: &[CommandPart]) -> Option<String> {
    let part = parts.iter().find(|part| {
        let is_unread = |command: &ScriptCommand| command.is_unread && command.names_tests();
        part.command.any(&is_unread)
    })?;
    let place = if part.command.is_unread { &part.script } else { &part.command.text };
    Some(format!(
        "the shell text of `{place}` was not understood whole: the answer may miss that it hides the failure of a command"
    ))
}

/// Returns the options and variables that the project's test command gives a runner, for a run of a part.
pub(crate) fn flags_of_runner(project: &Project, runner: TestRunner) -> RunnerFlags {
    if runner.reports_only_exit_code() {
        return RunnerFlags::default();
    }
    let parts =
        project_command(project, runner).ok().flatten().map(|command| command.parts).unwrap_or_default();
    runner_flags(parts.iter().filter(|part| part.folder.is_empty()).map(|part| &part.command), runner)
        .unwrap_or_default()
}

/// Returns the test commands of a project beside its runners, which no run starts: a note names them.
pub(crate) fn commands_not_run(project: &Project, runner: TestRunner) -> Vec<String> {
    match runner {
        TestRunner::Cargo | TestRunner::Nextest => cargo::test_aliases(project),
        _ => Vec::new(),
    }
}
