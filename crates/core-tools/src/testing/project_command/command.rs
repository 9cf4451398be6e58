//! The command with which a project runs its own tests, and the commands that it consists of.

use super::script::ScriptCommand;
use super::shell::{ShellOptions, commands_of_shell};
use crate::testing::runner::TestRunner;

/// The command with which a project runs its own tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// The commands that it consists of, as far as the project's files say.
    pub(crate) parts: Vec<CommandPart>,
    pub(crate) loading: ReporterLoading,
    /// The report that the last program of the command writes, where an argument asks for one.
    pub(crate) own_report: Option<RunnerOwnReport>,
    /// The variable, with its words, that makes the command pass our variables on to what it starts.
    pub(crate) pass_on: Option<(&'static str, String)>,
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
    Node,
    /// Each Node process does, and so do pytest, unittest, `RSpec` and minitest, by variables of theirs.
    EveryLanguage,
}

/// A report in `JUnit`'s XML that a runner writes where an argument at the end of a command asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunnerOwnReport {
    pub(crate) runner: TestRunner,
    /// The words before the argument itself: package managers want `--` before what is not theirs.
    pub(crate) separator: Option<&'static str>,
    /// The option, with `=` at its end where the path is a part of it.
    pub(crate) option: &'static str,
}

impl ProjectCommand {
    /// Creates a command of these words, in which any runner may be.
    pub(crate) fn new(program: &str, arguments: &[&str], parts: Vec<CommandPart>) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            parts,
            loading: ReporterLoading::EveryLanguage,
            own_report: None,
            pass_on: None,
            notes: Vec::new(),
        }
    }
}

impl CommandPart {
    /// Creates the parts that the commands of one text in a file of the project are.
    pub(crate) fn of_text(script: &str, text: &str, options: ShellOptions) -> Vec<Self> {
        let parts = commands_of_shell(text, options).into_iter();
        parts.map(|command| Self { script: script.to_owned(), folder: String::new(), command }).collect()
    }
}
