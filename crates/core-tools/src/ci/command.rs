//! The way from a requested command to a process that is ready to start.

use super::confinement::{CommandScope, ConfinementPolicy};
use super::environment::{EnvironmentPolicy, terminal_environment};
use super::error::CommandError;
use crate::redact::Redactor;
use crate::workspace::{ConfinedPath, Workspace};
use process_runner::{Command, CommandLine, Confinement, Runner, ShellSyntax, ShellSyntaxKind};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

/// A command: an array of program and arguments, or one line that is split as a shell splits words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandText {
    /// One line.
    Line(String),
    /// Program and arguments.
    Vector(#[schemars(length(min = 1))] Vec<String>),
}

/// Prepares and runs commands: in which folders, with which environment, and behind which confinement.
///
/// A clone shares the runner, the workspace and the temporary folder.
#[derive(Clone, Debug)]
pub struct Commands {
    pub(crate) runner: Runner,
    pub(super) workspace: Arc<Workspace>,
    pub(crate) redactor: Redactor,
    environment: EnvironmentPolicy,
    confinement: ConfinementPolicy,
}

/// A command that is ready to start.
pub(super) struct PreparedCommand {
    pub(super) command: Command,
    /// Shell syntax in the command line that was passed on literally. Worth a note if the command fails.
    pub(super) literal_syntax: Option<ShellSyntax>,
}

impl Commands {
    /// Creates commands that `runner` runs in folders of `workspace`, with the server's own environment and
    /// without confinement.
    ///
    /// `redactor` masks what they print before any of it is cut, because half a secret is not recognised. Known
    /// values are better given to the runner, which masks them wherever the output is cut.
    pub fn new(runner: Runner, workspace: Arc<Workspace>, redactor: Redactor) -> Self {
        let confinement = ConfinementPolicy::off("the server was started without");
        Self { runner, workspace, redactor, environment: EnvironmentPolicy::default(), confinement }
    }

    /// Sets which part of the server's own environment a command inherits. All of it by default.
    #[must_use]
    pub fn environment(mut self, policy: EnvironmentPolicy) -> Self {
        self.environment = policy;
        self
    }

    /// Sets how commands are confined. They are not by default.
    #[must_use]
    pub fn confined(mut self, policy: ConfinementPolicy) -> Self {
        self.confinement = policy;
        self
    }

    /// Returns the commands of a caller who may reach less. Where confinement is off, the scope limits the
    /// folder that a command runs in, and not what the command does there.
    #[must_use]
    pub fn narrowed(&self, scope: &CommandScope) -> Self {
        let mut commands = self.clone();
        if let Some(workspace) = &scope.workspace {
            commands.workspace = Arc::clone(workspace);
        }
        commands.confinement = commands.confinement.narrowed(scope);
        commands
    }

    /// Returns the workspace whose folders commands run in.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Describes in one line how commands are confined; see [`ConfinementPolicy`].
    pub fn confinement_summary(&self) -> String {
        self.confinement.to_string()
    }

    /// Returns the confinement of every command, or `None` where it is off.
    #[cfg_attr(
        not(all(feature = "sessions", feature = "mcp")),
        allow(dead_code, reason = "agent sessions run behind the same confinement")
    )]
    pub(crate) fn confinement(&self) -> Option<Confinement> {
        self.confinement.confinement()
    }

    /// Returns `command` behind the confinement of every command, with its own environment.
    #[cfg_attr(not(feature = "git"), allow(dead_code, reason = "git chooses its environment itself"))]
    pub(crate) fn confine(&self, command: Command) -> Command {
        self.confinement.apply(command)
    }

    /// Returns the runner of the commands.
    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Masks the secrets in `text`.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// Prepares the command that a caller requested.
    pub(super) fn prepare(
        &self,
        text: &CommandText,
        folder: Option<&str>,
        env: Option<&BTreeMap<String, String>>,
    ) -> Result<PreparedCommand, CommandError> {
        let (program, arguments, literal_syntax) = match text {
            CommandText::Line(line) => {
                let line = CommandLine::parse(line)?;
                let syntax = line.shell_syntax().cloned();
                if let Some(syntax) = syntax.clone().filter(is_surely_for_a_shell) {
                    return Err(CommandError::NeedsShell(syntax));
                }
                (line.program, line.args, syntax)
            }
            CommandText::Vector(words) => match words.split_first() {
                Some((program, arguments)) if !program.is_empty() => {
                    (program.clone(), arguments.to_vec(), None)
                }
                _ => return Err(CommandError::Empty),
            },
        };
        let folder = self.workspace.locate(folder.unwrap_or("."))?;
        // An editor without a terminal does not end by itself: it would be waited for until the time limit. Tests do not get
        // these variables, because they may look at them.
        let editors = [("GIT_EDITOR", "true"), ("GIT_SEQUENCE_EDITOR", "true")];
        let mut command = self.command_in(program, &folder)?.args(arguments).envs(editors);
        // Set after the policies, so that the variables of the call take precedence.
        if let Some(env) = env {
            command = command.envs(env.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        }
        Ok(PreparedCommand { command, literal_syntax })
    }

    /// Returns a command that runs in `folder`, with the environment and the confinement of every command. Tests get
    /// the same.
    pub(crate) fn command_in(
        &self,
        program: impl Into<OsString>,
        folder: &ConfinedPath,
    ) -> Result<Command, CommandError> {
        // The handle leads to the folder that was checked, even if somebody renames it or puts a link in its
        // place before the program starts. The path is for messages only.
        #[cfg(unix)]
        let command = Command::new(program, folder.display_path()).folder_handle(folder.folder_handle()?);
        #[cfg(not(unix))]
        let command = Command::new(program, folder.to_absolute());
        Ok(self.apply_policies(command))
    }

    /// Returns the value of a variable that every command inherits, if it does and the server has it.
    #[cfg(feature = "testing")]
    pub(crate) fn inherited_variable(&self, name: &str) -> Option<&str> {
        let value = self.environment.allows(name).then(|| self.runner.environment_value(name))?;
        value?.to_str()
    }

    /// Returns `command` with the environment and the confinement of every command.
    pub(super) fn apply_policies(&self, command: Command) -> Command {
        let command = self.environment.apply(self.confinement.apply(command));
        terminal_environment(command, &self.runner)
    }

    /// Creates a folder outside the project for a program's report. Confined programs can write it.
    #[cfg(feature = "testing")]
    pub(crate) fn report_folder(&self) -> std::io::Result<tempfile::TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("report-");
        match self.confinement.temp_folder() {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        }
    }

    /// Returns a command as a person would type it, masked and then shortened.
    pub(super) fn display_line(&self, command: &CommandText) -> String {
        const MAX_CHARS: usize = 200;
        let line = match command {
            CommandText::Line(line) => line.clone(),
            CommandText::Vector(words) => words.join(" "),
        };
        let line = self.redactor.redact(&line);
        if line.chars().count() <= MAX_CHARS {
            line.into_owned()
        } else {
            line.chars().take(MAX_CHARS).chain("…".chars()).collect()
        }
    }
}

/// Returns true for syntax that nobody means literally: an operator, a redirection, an assignment.
fn is_surely_for_a_shell(syntax: &ShellSyntax) -> bool {
    matches!(
        syntax.kind,
        ShellSyntaxKind::Operator | ShellSyntaxKind::Redirection | ShellSyntaxKind::Assignment
    )
}
