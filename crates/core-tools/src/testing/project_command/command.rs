//! The command with which a project runs its own tests, and the commands that it consists of.

use super::script::ScriptCommand;

/// The command with which a project runs its own tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// The commands that it consists of, as far as the project's files say.
    pub(crate) parts: Vec<CommandPart>,
    pub(crate) loading: ReporterLoading,
    /// The facts about the choice of the command that the report notes.
    pub(crate) notes: Vec<String>,
}

/// One command of a project's test command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandPart {
    /// The script that it is part of.
    pub(crate) script: String,
    /// The folder of the package, relative to the project's; empty for the project itself.
    pub(crate) folder: String,
    pub(crate) command: ScriptCommand,
}

/// The way in which the processes of a command load a reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReporterLoading {
    /// Each Node process loads a module that `NODE_OPTIONS` names.
    NodeOptions,
}
