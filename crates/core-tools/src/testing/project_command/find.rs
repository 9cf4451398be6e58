//! The choice of a project's test command, by its ecosystem.

use super::command::ProjectCommand;
use super::node;
use super::runner_flags::{RunnerFlags, runner_flags};
use crate::ci::project::Project;
use crate::testing::runner::TestRunner;

/// Returns the command that a project runs its tests with, where its ecosystem has one and it is known.
pub(crate) fn project_command(project: &Project, runner: TestRunner) -> Option<ProjectCommand> {
    // The files of Deno may be there beside a script of Node, which is what the project runs.
    let may_have_script = runner.runs_any_node_project() || runner == TestRunner::Deno;
    if may_have_script { node::test_command(project) } else { None }
}

/// Returns the options and variables that the project's test command gives a runner, for a run of a part.
pub(crate) fn flags_of_runner(project: &Project, runner: TestRunner) -> RunnerFlags {
    let parts = project_command(project, runner).map(|command| command.parts).unwrap_or_default();
    runner_flags(parts.iter().filter(|part| part.folder.is_empty()).map(|part| &part.command), runner)
        .unwrap_or_default()
}
