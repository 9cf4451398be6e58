//! The start of a session's process: folder, markers, arguments, environment, and where its output goes.

use super::recorder::SessionOutputSource;
use crate::catalog::{AgentArgumentPlaceholders, AgentCatalog};
use crate::clock;
use crate::directory::{SessionDirectory, SessionMarkers};
use crate::error::Error;
use crate::random::SessionCredential;
use crate::record::SessionRecord;
use crate::supervisor_context::SupervisorContext;
use crate::variables::{AGENT_COMMAND_VARIABLE, CREDENTIAL_VARIABLE, SESSION_VARIABLE, STATE_VARIABLE};
use error_causes::chain;
use process_runner::{
    Command, Confinement, EnvPolicy, LeftoverDecision, LeftoverPolicy, LeftoverTree, Limits, PseudoTerminal,
    RunOwner, Running, Stdin, TerminalDevice, TerminalSize, owned_by,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The longest time for which a signed marker is valid.
const MAX_MARKER_LIFETIME: Duration = Duration::from_secs(86_400);
/// The bytes of output that the runner itself keeps. The output goes elsewhere, so it is next to nothing.
const CAPTURE_BYTES: usize = 4096;
/// The size of a session's terminal.
const TERMINAL_SIZE: TerminalSize = TerminalSize { columns: 120, rows: 40 };

/// The arguments with which a process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionLaunchMode {
    /// Those for a new conversation.
    Fresh,
    /// Those that continue the agent's conversation.
    Resume,
}

/// The reason why the process of a session could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionLaunchError {
    #[error("cannot use the session's folder")]
    Folder(#[source] io::Error),
    #[error("cannot make a terminal")]
    Terminal(#[source] io::Error),
    #[error("no random numbers")]
    Random(#[source] getrandom::Error),
    #[error("the session has no command")]
    NoCommand,
    #[error("it was cancelled before it could start")]
    Cancelled,
    #[error(transparent)]
    Runner(#[from] process_runner::Error),
    /// The session that continues the work could not be started.
    #[error(transparent)]
    Successor(#[from] Error),
}

impl SessionLaunchError {
    /// Returns the whole explanation: the chain of causes, and what to do about it.
    pub(super) fn explanation(&self) -> String {
        let hint = match self {
            Self::Runner(error) => error.hint().map(|hint| format!(". {hint}")).unwrap_or_default(),
            _ => String::new(),
        };
        format!("{}{hint}", chain(self))
    }
}

/// A process that is ready to be started.
pub(super) struct PreparedSessionLaunch {
    /// The id of the session.
    session: String,
    command: Command,
    source: SessionOutputSource,
    /// The credential that the process will have.
    pub(super) credential: SessionCredential,
}

/// The owner of the programs of a session.
#[derive(Debug)]
struct SessionRunOwner(String);

impl RunOwner for SessionRunOwner {
    fn name(&self) -> &str {
        &self.0
    }

    fn take_leftovers(&self, _: LeftoverTree) -> LeftoverDecision {
        LeftoverDecision::End { reason: "the process of the session has ended".to_owned() }
    }
}

/// A process that was started.
pub(super) struct LaunchedSessionProcess {
    pub(super) running: Running,
    pub(super) pid: u32,
    /// The source of its output.
    pub(super) source: SessionOutputSource,
    /// The secret that must not appear in its log.
    pub(super) secret: String,
}

impl PreparedSessionLaunch {
    /// Prepares the process of a session. `message` takes the place of its prompt.
    pub(super) fn new(
        context: &SupervisorContext,
        record: &SessionRecord,
        message: Option<&str>,
        agent_command: Option<&str>,
        mode: SessionLaunchMode,
    ) -> Result<Self, SessionLaunchError> {
        let options = &context.options;
        let state = context.lock.folder();
        let folder = state.existing(&record.id).map_err(SessionLaunchError::Folder)?;
        let lifetime = options.credential_lifetime.min(MAX_MARKER_LIFETIME);
        let key = options.marker_key.as_deref().map(|key| (key, lifetime));
        let markers = SessionMarkers { session: &record.id, role: &record.role, key };
        // Written anew for each process: the one before may have changed them.
        folder.write_markers(&markers).map_err(SessionLaunchError::Folder)?;
        let credential = SessionCredential::generate().map_err(SessionLaunchError::Random)?;
        let (program, arguments) = command_line(&context.settings().agents, record, message, mode)?;
        let mut command = Command::new(program, &record.cwd)
            .args(arguments)
            .env("TMPDIR", folder.temporary())
            .env(SESSION_VARIABLE, &record.id)
            .env(CREDENTIAL_VARIABLE, &credential.secret)
            .env(STATE_VARIABLE, state.path())
            .label(format!("session {}", record.id))
            // What the process leaves behind would have no owner.
            .limits(Limits::unlimited().leftovers(LeftoverPolicy::KillAll).capture(CAPTURE_BYTES))
            .resource_limits(record.resource_limits)
            // One stream keeps the order in which the agent printed, which the diagnosis goes by.
            .merge_stderr();
        if let Some(names) = &record.inherited_variables {
            let inherited = options.runner.environment_names().filter(|name| is_named(names, name));
            command = command.env_policy(EnvPolicy::Allow(inherited.map(OsString::from).collect()));
        }
        command = match agent_command {
            Some(agent_command) => command.env(AGENT_COMMAND_VARIABLE, agent_command),
            // The supervisor may itself run in a session that has one.
            None => command.env_remove(AGENT_COMMAND_VARIABLE),
        };
        let (command, source) = match record.pty {
            true => with_terminal(command, &folder, record)?,
            false => with_pipes(command, &folder, record)?,
        };
        Ok(Self { session: record.id.clone(), command, source, credential })
    }

    /// Starts the process.
    pub(super) async fn start(
        self,
        context: &SupervisorContext,
    ) -> Result<LaunchedSessionProcess, SessionLaunchError> {
        // The limits are for the programs of one session together.
        let owner = Arc::new(SessionRunOwner(self.session));
        let running = owned_by(owner, context.options.runner.start(self.command)).await?;
        let pid = running.pid().ok_or(SessionLaunchError::Cancelled)?;
        Ok(LaunchedSessionProcess { running, pid, source: self.source, secret: self.credential.secret })
    }
}

/// Connects a command to named pipes, which outlive the supervisor: the next one goes on reading where it was.
fn with_pipes(
    command: Command,
    folder: &SessionDirectory,
    record: &SessionRecord,
) -> Result<(Command, SessionOutputSource), SessionLaunchError> {
    let output = folder.create_pipe("out").map_err(SessionLaunchError::Folder)?;
    let source = SessionOutputSource::open_pipe(folder).map_err(SessionLaunchError::Folder)?;
    let mut command = confined(command.stdout(output), folder, record, None);
    if record.input {
        let input = folder.create_pipe("in").map_err(SessionLaunchError::Folder)?;
        command = command.stdin(Stdin::File(Arc::new(input)));
    }
    Ok((command, source))
}

/// Connects a command to a terminal of its own.
fn with_terminal(
    command: Command,
    folder: &SessionDirectory,
    record: &SessionRecord,
) -> Result<(Command, SessionOutputSource), SessionLaunchError> {
    let (terminal, TerminalDevice { path, file }) =
        PseudoTerminal::open(TERMINAL_SIZE).map_err(SessionLaunchError::Terminal)?;
    let command = confined(command.stdout(file), folder, record, Some(&path));
    Ok((
        command.env("TERM", "xterm-256color").stdin(Stdin::Terminal(path)),
        SessionOutputSource::Terminal(terminal),
    ))
}

/// Returns true if one of `patterns` is `name`, or begins it and ends in a `*`.
fn is_named(patterns: &[String], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.as_encoded_bytes().starts_with(beginning.as_bytes()),
        None => name == pattern.as_str(),
    })
}

/// Applies the confinement of a session, if it has one, and lets it write its temporary folder and its terminal.
fn confined(
    command: Command,
    folder: &SessionDirectory,
    record: &SessionRecord,
    terminal: Option<&std::path::PathBuf>,
) -> Command {
    let Some(confinement) = &record.confinement else { return command };
    let temporary = folder.temporary();
    // A session goes on when its supervisor ends, and talks to the next one through a socket.
    let confinement = confinement.clone().outliving().write(&temporary);
    let confinement = terminal.into_iter().fold(confinement, Confinement::write);
    // After `confined`, which sets the temporary folder of the confinement itself.
    command.confined(confinement).env("TMPDIR", temporary)
}

/// Returns the program and its arguments, those for the prompt or the message included.
fn command_line(
    agents: &AgentCatalog,
    record: &SessionRecord,
    message: Option<&str>,
    mode: SessionLaunchMode,
) -> Result<(String, Vec<String>), SessionLaunchError> {
    let (program, base_arguments) = record.command.split_first().ok_or(SessionLaunchError::NoCommand)?;
    let agent = record.agent.as_deref().and_then(|name| agents.by_name(name));
    let resumed = agent.filter(|agent| mode == SessionLaunchMode::Resume && !agent.resume.is_empty());
    let prompt = message.or(record.prompt.as_deref());
    let (template, prompt) = match (resumed, agent) {
        (Some(agent), _) => {
            let needs_id = agent.resume.iter().any(|argument| argument.contains("{agent_session}"));
            let by_id = record.agent_session.is_some() || !needs_id;
            let template = if by_id { &agent.resume } else { &agent.resume_last };
            (template.clone(), Some(message.unwrap_or(&agent.resume_prompt)))
        }
        (None, Some(agent)) => (agent.start.clone(), prompt),
        // A program that is no known agent gets its prompt as the last argument, each time again.
        (None, None) => (vec!["{prompt}".to_owned()], prompt),
    };
    let mut arguments = base_arguments.to_vec();
    if let Some(prompt) = prompt {
        let agent_session = record.agent_session.as_deref().unwrap_or_default();
        let placeholders = AgentArgumentPlaceholders { prompt, session: &record.id, agent_session };
        arguments.extend(placeholders.expand(&template));
    }
    Ok((program.clone(), arguments))
}

/// Returns the time until which a credential is valid that is issued now, in milliseconds since 1970.
pub(super) fn credential_expiry(context: &SupervisorContext) -> u64 {
    clock::now_ms() + clock::as_millis(context.options.credential_lifetime)
}
