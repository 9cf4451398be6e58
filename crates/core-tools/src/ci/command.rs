//! The way from a requested command to a process that is ready to start.

#[cfg(all(feature = "mcp", feature = "sessions", unix))]
use super::command_words::shell_words;
use super::command_words::{CommandText, ProgramLookup};
use super::confinement::{CommandScope, ConfinementPolicy};
use super::egress::EgressError;
use super::environment::{EnvironmentPolicy, terminal_environment};
use super::error::CommandError;
use super::glob_match::matches_a_file;
use super::shell_only::{ShelllessLine, line_advice};
use super::terminal::with_terminal;
use crate::redact::Redactor;
use crate::workspace::{ConfinedPath, Workspace};
use egress_proxy::NetworkAccess;
use process_runner::{
    Command, CommandLine, ConfinementLevel, ResourceControls, ResourceLimits, Runner, ShellSyntax,
    ShellSyntaxKind, TerminalSize,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
#[cfg(any(feature = "git", all(feature = "mcp", feature = "sessions", unix)))]
use std::path::Path;
use std::sync::Arc;

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
    resource_limits: ResourceLimits,
    /// The id of the first background command.
    pub(super) first_background_id: u32,
}

/// A network that a call asks for, which is less than what its caller may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandNetwork {
    /// No host.
    None,
}

/// A command as a caller requested it, in the foreground or the background.
#[derive(Clone, Copy)]
pub(super) struct CommandRequest<'a> {
    pub(super) text: &'a CommandText,
    /// True if the text is one line of a shell.
    pub(super) shell: bool,
    pub(super) working_directory: Option<&'a str>,
    pub(super) env: Option<&'a BTreeMap<String, String>>,
    /// The network, where the caller asks for less than it may have.
    pub(super) network: Option<CommandNetwork>,
    /// The size of the terminal that the program gets, if any.
    pub(super) terminal: Option<TerminalSize>,
}

/// A command that is ready to start.
pub(super) struct PreparedCommand {
    pub(super) command: Command,
    /// The shell that runs it.
    pub(super) shell: Option<&'static str>,
    /// A glob in the command line that was passed on literally. Worth a note if the command fails.
    pub(super) literal_glob: Option<ShellSyntax>,
}

/// Program and arguments, and how they came about.
struct RequestedWords {
    program: String,
    arguments: Vec<String>,
    shell: Option<&'static str>,
    literal_glob: Option<ShellSyntax>,
}

impl RequestedWords {
    fn of_vector(words: &[String]) -> Result<Self, CommandError> {
        match words.split_first() {
            Some((program, arguments)) if !program.is_empty() => Ok(Self {
                program: program.clone(),
                arguments: arguments.to_vec(),
                shell: None,
                literal_glob: None,
            }),
            _ => Err(CommandError::Empty),
        }
    }

    fn of_shell_line(line: &str, shell: &'static str) -> Result<Self, CommandError> {
        if line.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        let arguments = vec!["-c".to_owned(), line.to_owned()];
        Ok(Self { program: shell.to_owned(), arguments, shell: Some(shell), literal_glob: None })
    }

    fn of_line(text: &str, request: CommandRequest<'_>, folder: &ConfinedPath) -> Result<Self, CommandError> {
        let parsed = CommandLine::parse(text)?;
        let line = ShelllessLine { text, parsed: &parsed, working_directory: request.working_directory };
        line.check(|glob| matches_a_file(folder, glob)).map_err(CommandError::NeedsShell)?;
        let literal_glob = parsed.shell_syntax_of(ShellSyntaxKind::Glob).cloned();
        Ok(Self { program: parsed.program, arguments: parsed.args, shell: None, literal_glob })
    }
}

impl Commands {
    /// Creates commands that `runner` runs in folders of `workspace`, with the server's own environment and
    /// without confinement.
    ///
    /// `redactor` masks what they print before any of it is cut, because half a secret is not recognised. Known
    /// values are better given to the runner, which masks them wherever the output is cut.
    pub fn new(runner: Runner, workspace: Arc<Workspace>, redactor: Redactor) -> Self {
        let confinement = ConfinementPolicy::off("the server was started without");
        let (environment, resource_limits) = (EnvironmentPolicy::default(), ResourceLimits::default());
        Self {
            runner,
            workspace,
            redactor,
            environment,
            confinement,
            resource_limits,
            first_background_id: 1,
        }
    }

    /// Sets which part of the server's own environment a command inherits. All of it by default.
    #[must_use]
    pub fn environment(mut self, policy: EnvironmentPolicy) -> Self {
        self.environment = policy;
        self
    }

    /// Sets the id of the first background command, 1 by default, so that the ids of several machines are different.
    #[must_use]
    pub fn first_background_id(mut self, id: u32) -> Self {
        self.first_background_id = id;
        self
    }

    /// Sets how commands are confined. By default, commands are not confined.
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
        commands.resource_limits = scope.resource_limits;
        commands
    }

    /// Returns the same commands without a network.
    fn offline(&self) -> Self {
        let confinement = self.confinement.clone().network(&NetworkAccess::None);
        Self { confinement, ..self.clone() }
    }

    /// Returns the workspace whose folders commands run in.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Returns the part of the server's environment that commands get.
    pub(crate) fn environment_policy(&self) -> &EnvironmentPolicy {
        &self.environment
    }

    /// Describes in one line how commands are confined; see [`ConfinementPolicy`].
    pub fn confinement_summary(&self) -> String {
        self.confinement.to_string()
    }

    /// Returns the confinement of an agent session, which is that of a command, or `None` where it is off.
    ///
    /// # Errors
    /// The network is limited in a way that cannot be kept for what may outlive the server.
    #[cfg(all(feature = "mcp", feature = "sessions", unix))]
    pub(crate) fn session_confinement(&self) -> Result<Option<process_runner::Confinement>, EgressError> {
        self.confinement.foreign_confinement()
    }

    /// Describes in one line the means by which the resources of commands are limited.
    pub fn resource_controls(&self) -> String {
        let in_namespaces = self.confinement.achieved_level() >= ConfinementLevel::Namespaces;
        ResourceControls::available(in_namespaces).to_string()
    }

    /// Returns `command` behind the confinement and the limits of every command, with its own environment.
    pub(crate) fn confine(&self, command: Command) -> Result<Command, EgressError> {
        self.confinement.apply(command.resource_limits(self.resource_limits), &self.runner)
    }

    /// Returns `command` behind the confinement of every command and without a network, for programs of the server's own
    /// that need none. Where confinement is off, it is not confined: it must start nothing that a project names.
    #[cfg(feature = "context")]
    pub(crate) fn confine_offline(&self, command: Command) -> Command {
        let command = command.resource_limits(self.resource_limits);
        match self.confinement.confinement() {
            Some(confinement) => command.confined(confinement.network(false)),
            None => command,
        }
    }

    /// Returns the network that commands may reach.
    #[cfg(feature = "git")]
    pub(crate) fn network(&self) -> NetworkAccess {
        self.confinement.network_access()
    }

    /// Returns `command` as [`confine`](Self::confine) does, and lets it connect to the user's SSH agent.
    ///
    /// Where only what is granted is mounted, the agent's socket would not be there.
    #[cfg(feature = "git")]
    pub(crate) fn confine_with_ssh_agent(&self, command: Command) -> Result<Command, EgressError> {
        let socket = self.runner.environment_value("SSH_AUTH_SOCK").map(Path::new);
        match socket.filter(|path| path.is_absolute()) {
            Some(socket) => self.confinement.clone().write(socket).apply(command, &self.runner),
            None => self.confine(command),
        }
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
    pub(super) fn prepare(&self, request: CommandRequest<'_>) -> Result<PreparedCommand, CommandError> {
        let folder = self.workspace.locate(request.working_directory.unwrap_or("."))?;
        let RequestedWords { program, arguments, shell, literal_glob } = self.words(request, &folder)?;
        let mut command = match request.network {
            None => self.command_in(program, &folder)?,
            Some(CommandNetwork::None) => self.offline().command_in(program, &folder)?,
        };
        command = command.args(arguments);
        command = match request.terminal {
            Some(size) => with_terminal(command, size),
            // An editor without a terminal does not end by itself: it would be waited for until the time limit. Tests do
            // not get these variables, because they may look at them.
            None => command.envs([("GIT_EDITOR", "true"), ("GIT_SEQUENCE_EDITOR", "true")]),
        };
        // Set after the policies, so that the variables of the call take precedence.
        if let Some(env) = request.env {
            command = command.envs(env.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        }
        Ok(PreparedCommand { command, shell, literal_glob })
    }

    fn words(
        &self,
        request: CommandRequest<'_>,
        folder: &ConfinedPath,
    ) -> Result<RequestedWords, CommandError> {
        let absolute = folder.to_absolute();
        let programs = ProgramLookup::new(self.runner.environment_value("PATH"), &absolute);
        match (request.text.understood(programs).as_ref(), request.shell) {
            (CommandText::Line(line), true) => RequestedWords::of_shell_line(line, programs.shell()),
            (CommandText::Line(line), false) => RequestedWords::of_line(line, request, folder),
            (CommandText::Vector(words), false) => RequestedWords::of_vector(words),
            (CommandText::Vector(words), true) => match words.as_slice() {
                [line] => RequestedWords::of_shell_line(line, programs.shell()),
                _ => Err(CommandError::ShellTakesLine { advice: line_advice(words) }),
            },
        }
    }

    /// Returns the words that a command in `folder` runs as, for a program that others start and that has no `shell`:
    /// text is read as [`run`](Self::run) reads it.
    ///
    /// # Errors
    /// It names no program, or only a shell understands it.
    #[cfg(all(feature = "mcp", feature = "sessions", unix))]
    pub(crate) fn words_without_shell(
        &self,
        text: &CommandText,
        folder: &Path,
    ) -> Result<Vec<String>, CommandError> {
        let programs = ProgramLookup::new(self.runner.environment_value("PATH"), folder);
        if let CommandText::Line(line) = text.understood(programs).as_ref()
            && let Some(syntax) = CommandLine::parse(line)?.shell_syntax_but_globs()
        {
            let words = shell_words(line, programs);
            return Err(CommandError::LineOfShell { found: syntax.to_string(), words });
        }
        let words = text.words(programs)?;
        match words.first() {
            Some(program) if !program.is_empty() => Ok(words),
            _ => Err(CommandError::Empty),
        }
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
        Ok(self.apply_policies(command)?)
    }

    /// Returns the command that `words` name, in `folder`, with the environment and the confinement of every command, for a
    /// caller who starts it and follows it.
    ///
    /// # Errors
    /// There is no word, the folder cannot be opened, or the network that the policy allows cannot be kept.
    pub fn command_of_words(&self, words: &[String], folder: &ConfinedPath) -> Result<Command, CommandError> {
        let RequestedWords { program, arguments, .. } = RequestedWords::of_vector(words)?;
        Ok(self.command_in(program, folder)?.args(arguments))
    }

    /// Returns true if commands are confined, if only in part.
    pub fn is_confined(&self) -> bool {
        self.confinement.is_enforced()
    }

    /// Returns the value of a variable that every command inherits, if it does and the server has it.
    #[cfg(feature = "testing")]
    pub(crate) fn inherited_variable(&self, name: &str) -> Option<&str> {
        let value = self.environment.allows(name).then(|| self.runner.environment_value(name))?;
        value?.to_str()
    }

    /// Returns `command` with the environment and the confinement of every command.
    pub(super) fn apply_policies(&self, command: Command) -> Result<Command, EgressError> {
        let command = terminal_environment(self.environment.apply(command), &self.runner);
        // Last: the variables that lead to the proxy take precedence, and it adds to what is there.
        self.confine(command)
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
