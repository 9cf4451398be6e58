//! The tools that start sessions.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::supervisor::{AnyObject, decode, sessions_of_caller};
use crate::ci::{CommandText, Commands};
use crate::mcp::answer::Answer;
use crate::mcp::call_context::CallContext;
use crate::mcp::ci::command_scope;
use crate::mcp::host::resource_limits;
use crate::mcp::tool::Tool;
use crate::mcp::tool_error::ToolError;
use crate::sessions::{NewSession, SessionService, SessionStarted, SupervisorRequest};
use process_runner::{Confinement, ResourceLimits};
use role_policy::{Caller, Effect, Policy, ToolFacts};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A session to start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartSession {
    /// The task of the agent, in words. By default it starts without one.
    prompt: Option<String>,
    /// The program and arguments of the agent, such as `["claude"]`. The one of the server's settings by default.
    command: Option<CommandText>,
    /// The role of the agent's session. It can do what both this role and yours can. Your own role by default.
    role: Option<String>,
    /// The folder in which the agent runs. The first root by default.
    #[schemars(extend("alias" = "cwd"))]
    working_directory: Option<String>,
    /// True sends messages to the agent through its standard input. By default the kind of agent decides.
    input: Option<bool>,
    /// True gives the agent a terminal, into which messages are typed. By default the kind of agent decides.
    pty: Option<bool>,
}

/// A command for an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunAgentCommand {
    /// The slash command, one word, such as `/next-build`.
    command: String,
    /// The rest of the line after the command, such as `12`.
    args: Option<String>,
    /// The role of the agent's session. It can do what this role, yours and that of the command all can.
    role: Option<String>,
    /// The kind of agent, such as `claude` or `codex`. The one of the server's settings by default.
    agent: Option<String>,
    /// The folder in which the agent runs. The first root by default.
    #[schemars(extend("alias" = "cwd"))]
    working_directory: Option<String>,
}

pub(super) fn new_session(commands: &Commands, sessions: &SessionService) -> Tool {
    let (commands, sessions, released) = (commands.clone(), sessions.clone(), sessions.clone());
    let tool = Tool::new(
        "new_session",
        "New session",
        "Starts another agent, such as Claude Code or Codex, on a task of its own, and answers once its process runs. Use it \
         for work that goes on beside yours; it does not wait for the agent to finish. The agent gets no more rights than \
         you have. Returns the id of its session, by which the other tools for sessions know it.",
        move |input: StartSession, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            let commands = commands.clone();
            let folder = SessionFolder::new(&commands, &context, input.working_directory.as_deref());
            async move {
                let roles = SessionRoles::new(&context, input.role.as_deref(), None)?;
                let folder = folder?;
                let command =
                    input.command.map(|command| commands.words_without_shell(&command, &folder.cwd));
                let command = command.transpose()?;
                let mut new = roles.session(folder);
                (new.prompt, new.command) = (input.prompt, command);
                (new.input, new.pty) = (input.input, input.pty);
                start(&sessions, new).await
            }
        },
    );
    let effects: &'static [Effect] = &[
        Effect::Runs { command: "command", environment: "" },
        Effect::Reads("working_directory"),
        Effect::Role("role"),
    ];
    tool.adds().open_world().effects(effects).answers::<AnyObject>().on_release_caller(move |principal| {
        let sessions = released.for_principal(Some(principal));
        // A task of its own, since a release must not wait.
        tokio::spawn(async move { sessions.end_all(RELEASE_GRACE).await });
    })
}

/// The time that the sessions of a released caller have to end by themselves.
const RELEASE_GRACE: Duration = Duration::from_millis(250);

pub(super) fn run_agent_command(commands: &Commands, sessions: &SessionService) -> Tool {
    let (commands, sessions) = (commands.clone(), sessions.clone());
    let tool = Tool::new(
        "run_agent_command",
        "Agent command",
        "Starts another agent with a slash command as its first message, such as `/next-build 12`, in the role that the \
         policy gives to that command. Use it where work is done by commands; a task in words is a session of its own. \
         Returns the id of the session once its process runs.",
        move |input: RunAgentCommand, context: CallContext| {
            let sessions = sessions_of_caller(&sessions, &context);
            let folder = SessionFolder::new(&commands, &context, input.working_directory.as_deref());
            async move {
                let command = input.command.trim();
                if command.is_empty() || command.contains(char::is_whitespace) {
                    return Err(ToolError::new(
                        "`command` is one word, such as /next-build; the rest goes in `args`",
                    ));
                }
                let roles = SessionRoles::new(&context, input.role.as_deref(), Some(command))?;
                // The command may be given with or without its slash, and the agent needs the slash.
                let slash = format!("/{}", command.trim_start_matches('/'));
                let arguments = input.args.as_deref().map(str::trim).filter(|args| !args.is_empty());
                let prompt = match arguments {
                    Some(arguments) => format!("{slash} {arguments}"),
                    None => slash.clone(),
                };
                let mut new = roles.session(folder?).prompt(prompt);
                new.agent = input.agent;
                new.agent_command = Some(slash);
                start(&sessions, new).await
            }
        },
    );
    tool.adds()
        .open_world()
        .effects(&[Effect::Reads("working_directory"), Effect::Role("role")])
        .answers::<AnyObject>()
}

async fn start(sessions: &SessionService, new: NewSession) -> Result<Answer, ToolError> {
    let started: SessionStarted = decode(sessions.ask(SupervisorRequest::New(Box::new(new))).await?)?;
    Answer::structured(&started)
}

/// The folder that a session runs in and what it may reach there: no more than a command of its caller.
struct SessionFolder {
    cwd: PathBuf,
    confinement: Option<Confinement>,
    inherited_variables: Option<Vec<String>>,
    roots: Vec<PathBuf>,
}

impl SessionFolder {
    fn new(commands: &Commands, context: &CallContext, cwd: Option<&str>) -> Result<Self, ToolError> {
        let commands = commands.narrowed(&command_scope(commands, context)?);
        let workspace = commands.workspace();
        let folder = workspace.locate(cwd.unwrap_or(".")).map_err(|error| ToolError::from_error(&error))?;
        // Opened only to check that it is a folder and may be used; the process is started by its path.
        folder.folder_handle().map_err(|error| ToolError::from_error(&error))?;
        // The one user that a server runs for may give its agents other roots than its own.
        let is_one_of_many = context.caller.principal().is_some();
        let roots = workspace.roots().filter(|_| is_one_of_many).map(Path::to_owned).collect();
        Ok(Self {
            cwd: folder.to_absolute(),
            confinement: commands.session_confinement().map_err(|error| ToolError::from_error(&error))?,
            inherited_variables: commands.environment_policy().inheritable(),
            roots,
        })
    }
}

/// The roles of a session: all of its caller's, the one that was asked for, and the one that its command implies.
struct SessionRoles {
    /// The narrowest of them.
    role: String,
    roles: Vec<String>,
    /// True if it may steer other sessions.
    orchestrates: bool,
    parent: Option<String>,
    /// The resources that the processes of the session may use together: no more than each of its roles allows.
    resource_limits: ResourceLimits,
}

/// The tool that a session must see to steer others.
const STEERING_TOOL: ToolFacts<'static> = ToolFacts::new("run_agent_command", "sessions").destructive(false);

impl SessionRoles {
    fn new(context: &CallContext, requested: Option<&str>, command: Option<&str>) -> Result<Self, ToolError> {
        let policy = context
            .policy
            .as_deref()
            .ok_or_else(|| ToolError::new("there is no policy to start sessions by"))?;
        if let Some(role) = requested.filter(|role| !policy.declares(role)) {
            let declared: Vec<_> = policy.roles().collect();
            return Err(ToolError::new(format!(
                "no role is called `{role}`; there are {}",
                declared.join(", ")
            )));
        }
        let derived = command.and_then(|command| policy.role_of_command(command));
        let narrowing = requested.into_iter().chain(derived);
        // Roles are only added, and each one narrows, so that no session has more rights than its caller.
        let caller = narrowing.fold(context.caller.clone(), Caller::narrowed_by);
        let roles: Vec<String> = caller.roles().map(str::to_owned).collect();
        Ok(Self {
            role: narrowest(policy, &caller),
            orchestrates: policy.sees(&caller, &STEERING_TOOL),
            parent: context.caller.session().map(str::to_owned),
            resource_limits: resource_limits(policy.limits(&caller)),
            roles,
        })
    }

    fn session(self, folder: SessionFolder) -> NewSession {
        let Self { role, roles, orchestrates, parent, resource_limits } = self;
        let SessionFolder { cwd, confinement, inherited_variables, roots } = folder;
        let mut new = NewSession::new(cwd, role);
        (new.roles, new.orchestrates, new.parent) = (roles, orchestrates, parent);
        new.resource_limits = resource_limits;
        (new.confinement, new.inherited_variables, new.roots) = (confinement, inherited_variables, roots);
        new
    }
}

/// Returns the role that excludes most tools, for a marker that holds only one; of several the last that was named.
fn narrowest(policy: &Policy, caller: &Caller) -> String {
    let excluded = |role: &str| policy.excluded_tools(role).len();
    caller
        .roles()
        .max_by_key(|role| excluded(role))
        .map_or_else(|| policy.minimal_role().to_owned(), str::to_owned)
}
