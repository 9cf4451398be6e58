//! The tools that start, steer and look at sessions.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::answer::{Answer, ToolError};
use super::ci::reach;
use super::host::Context;
use super::tool::{Tool, Toolset};
use crate::ci::{CommandText, Commands};
use crate::sessions::{
    Error, LogAnswer, LogLevel, LogRequest, NewSession, Request, SessionEnded, Sessions, Started, Status,
    Switched,
};
use process_runner::{CommandLine, Confinement};
use role_policy::{Caller, Effect, Policy, ToolFacts};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::from_error(&error)
    }
}

/// The toolset `sessions`. A session may reach what commands of its caller may that are run by `commands`.
pub fn toolset(commands: &Commands, sessions: &Sessions) -> Toolset {
    Toolset {
        name: "sessions",
        tools: vec![
            status(sessions),
            pause_or_resume(sessions, true),
            pause_or_resume(sessions, false),
            new_session(commands, sessions),
            logs(sessions),
            run_agent_command(commands, sessions),
            send_message(sessions),
            list_sessions(sessions),
            end_session(sessions),
        ],
    }
}

/// What there is for whoever calls: to a caller among others its own sessions.
fn of(sessions: &Sessions, context: &Context) -> Sessions {
    sessions.of(context.owner.as_deref().or(context.caller.principal()))
}

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A session to start.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartSession {
    /// Its task
    prompt: Option<String>,
    /// Default: configured
    command: Option<CommandText>,
    /// At most yours
    role: Option<String>,
    /// Folder; default: the first root
    #[schemars(extend("unlisted" = true))]
    cwd: Option<String>,
    /// It reads send_message from standard input
    #[schemars(extend("unlisted" = true))]
    input: Option<bool>,
    /// It has a terminal, into which send_message types
    #[schemars(extend("unlisted" = true))]
    pty: Option<bool>,
}

/// A command for an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunAgentCommand {
    /// /next-build
    command: String,
    /// Arguments
    args: Option<String>,
    /// At most yours
    role: Option<String>,
    /// e.g. codex
    agent: Option<String>,
    /// Folder; default: the first root
    #[schemars(extend("unlisted" = true))]
    cwd: Option<String>,
}

/// Lines of a log.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadLogs {
    /// Most lines
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "twenty")]
    lines: usize,
    /// 10m, or a time
    since: Option<String>,
    /// At least this; not for a session
    #[schemars(extend("unlisted" = true))]
    level: Option<LogLevel>,
    /// Of its output
    session: Option<String>,
    /// New lines
    #[serde(default)]
    follow: bool,
    /// Go on from the cursor of an earlier answer
    #[schemars(extend("unlisted" = true))]
    cursor: Option<u64>,
}

fn twenty() -> usize {
    20
}

/// A message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendMessage {
    /// Session
    session_id: String,
    /// Message
    text: String,
}

/// Which sessions.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListSessions {
    /// Also those that are over
    #[serde(default)]
    all: bool,
}

/// A session to end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndSession {
    /// Session
    session_id: String,
    /// Seconds before the kill; 5
    #[schemars(range(min = 0, max = 60))]
    grace: Option<u64>,
}

/// What is promised in the list, which every conversation pays for: an object. Its members are documented, and tested.
#[derive(Serialize, JsonSchema)]
struct Object {}

/// What a supervisor answers, as what it is.
fn read<T: DeserializeOwned>(answer: Value) -> Result<T, ToolError> {
    serde_json::from_value(answer)
        .map_err(|error| ToolError::new(format!("the supervisor's answer is not of this version: {error}")))
}

fn status(sessions: &Sessions) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "status",
        "Session status",
        "Supervisor, sessions, why they stopped, what is next.",
        move |_: Nothing, context: Context| {
            let sessions = of(&sessions, &context);
            async move { Answer::structured(&read::<Status>(sessions.ask(Request::Status {}).await?)?) }
        },
    );
    tool.answers::<Object>()
}

fn pause_or_resume(sessions: &Sessions, pause: bool) -> Tool {
    let sessions = sessions.clone();
    let (name, title, description) = match pause {
        true => ("pause", "Pause", "Resumes and restarts nothing by itself."),
        false => ("resume", "Resume", "Ends pause."),
    };
    let tool = Tool::new(name, title, description, move |_: Nothing, context: Context| {
        let sessions = of(&sessions, &context);
        async move {
            let request = if pause { Request::Pause {} } else { Request::Resume {} };
            Answer::structured(&read::<Switched>(sessions.ask(request).await?)?)
        }
    });
    tool.adds().idempotent().answers::<Object>()
}

fn new_session(commands: &Commands, sessions: &Sessions) -> Tool {
    let (commands, sessions, left) = (commands.clone(), sessions.clone(), sessions.clone());
    let tool = Tool::new(
        "new_session",
        "New session",
        "Starts an agent; answers once it runs. Also cwd.",
        move |input: StartSession, context: Context| {
            let sessions = of(&sessions, &context);
            let place = Place::new(&commands, &context, input.cwd.as_deref());
            async move {
                let roles = Roles::new(&context, input.role.as_deref(), None)?;
                let command = input.command.map(words).transpose()?;
                let new = NewSession {
                    prompt: input.prompt,
                    command,
                    input: input.input,
                    pty: input.pty,
                    ..roles.session(place?)
                };
                start(&sessions, new).await
            }
        },
    );
    let effects: &'static [Effect] =
        &[Effect::Runs { command: "command", environment: "" }, Effect::Reads("cwd"), Effect::Role("role")];
    tool.adds().open_world().effects(effects).answers::<Object>().on_leave(move |principal| {
        let left = left.of(Some(principal));
        tokio::spawn(async move { left.end_all(LAST_WORDS).await });
    })
}

/// What the sessions of a caller get to end by themselves that may call no more.
const LAST_WORDS: Duration = Duration::from_millis(250);

fn run_agent_command(commands: &Commands, sessions: &Sessions) -> Tool {
    let (commands, sessions) = (commands.clone(), sessions.clone());
    let tool = Tool::new(
        "run_agent_command",
        "Agent command",
        "Starts a session with it.",
        move |input: RunAgentCommand, context: Context| {
            let sessions = of(&sessions, &context);
            let place = Place::new(&commands, &context, input.cwd.as_deref());
            async move {
                let command = input.command.trim();
                if command.is_empty() || command.contains(char::is_whitespace) {
                    return Err(ToolError::new(
                        "`command` is one word, such as /next-build; the rest goes in `args`",
                    ));
                }
                let roles = Roles::new(&context, input.role.as_deref(), Some(command))?;
                let slash = format!("/{}", command.trim_start_matches('/'));
                let arguments = input.args.as_deref().map(str::trim).filter(|args| !args.is_empty());
                let prompt = match arguments {
                    Some(arguments) => format!("{slash} {arguments}"),
                    None => slash.clone(),
                };
                let new = NewSession {
                    prompt: Some(prompt),
                    agent: input.agent,
                    agent_command: Some(slash),
                    ..roles.session(place?)
                };
                start(&sessions, new).await
            }
        },
    );
    tool.adds().open_world().effects(&[Effect::Reads("cwd"), Effect::Role("role")]).answers::<Object>()
}

async fn start(sessions: &Sessions, new: NewSession) -> Result<Answer, ToolError> {
    let started: Started = read(sessions.ask(Request::New(Box::new(new))).await?)?;
    Answer::structured(&started)
}

/// Where a session runs and what it may reach there: no more than a command of its caller.
struct Place {
    cwd: PathBuf,
    confinement: Option<Confinement>,
    roots: Vec<PathBuf>,
}

impl Place {
    fn new(commands: &Commands, context: &Context, cwd: Option<&str>) -> Result<Self, ToolError> {
        let commands = commands.narrowed(&reach(commands, context)?);
        let workspace = commands.workspace();
        let folder = workspace.locate(cwd.unwrap_or(".")).map_err(|error| ToolError::from_error(&error))?;
        // That it is a folder that may be opened is seen here; the process is started by its path.
        folder.folder_handle().map_err(|error| ToolError::from_error(&error))?;
        // The one user that a server runs for may give its agents other roots than its own.
        let is_one_of_many = context.caller.principal().is_some();
        let roots = workspace.roots().filter(|_| is_one_of_many).map(Path::to_owned).collect();
        Ok(Self { cwd: folder.to_absolute(), confinement: commands.fence(), roots })
    }
}

fn words(command: CommandText) -> Result<Vec<String>, ToolError> {
    match command {
        CommandText::Vector(words) => Ok(words),
        CommandText::Line(line) => {
            let line = CommandLine::parse(&line)
                .map_err(|error| ToolError::new(format!("cannot split `command`: {error}; give an array")))?;
            if let Some(syntax) = line.shell_syntax() {
                return Err(ToolError::new(format!(
                    "{syntax}, and there is no shell; give `command` as an array"
                )));
            }
            Ok(std::iter::once(line.program).chain(line.args).collect())
        }
    }
}

/// The roles of a session: all of its caller's, and what was asked for or follows from its command.
struct Roles {
    role: String,
    roles: Vec<String>,
    orchestrates: bool,
    parent: Option<String>,
}

/// What a session must see to steer others.
const STEERING: ToolFacts<'static> = ToolFacts {
    name: "run_agent_command",
    toolset: "sessions",
    read_only: false,
    destructive: false,
    open_world: true,
    effects: &[],
};

impl Roles {
    fn new(context: &Context, asked: Option<&str>, command: Option<&str>) -> Result<Self, ToolError> {
        let policy = context
            .policy
            .as_deref()
            .ok_or_else(|| ToolError::new("there is no policy to start sessions by"))?;
        if let Some(role) = asked.filter(|role| !policy.declares(role)) {
            let declared: Vec<_> = policy.roles().collect();
            return Err(ToolError::new(format!(
                "no role is called `{role}`; there are {}",
                declared.join(", ")
            )));
        }
        let derived = command.and_then(|command| policy.role_of_command(command));
        let more = asked.into_iter().chain(derived);
        let caller = more.fold(context.caller.clone(), Caller::narrowed_by);
        let roles: Vec<String> = caller.roles().map(str::to_owned).collect();
        Ok(Self {
            role: narrowest(policy, &caller),
            orchestrates: policy.sees(&caller, &STEERING),
            parent: context.caller.session().map(str::to_owned),
            roles,
        })
    }

    fn session(self, place: Place) -> NewSession {
        let Self { role, roles, orchestrates, parent } = self;
        let Place { cwd, confinement, roots } = place;
        NewSession { role, roles, orchestrates, parent, cwd, confinement, roots, ..NewSession::default() }
    }
}

/// The role that takes away most, for a marker that holds only one; of several the last that was named.
fn narrowest(policy: &Policy, caller: &Caller) -> String {
    let taken = |role: &str| policy.excluded_tools(role).len();
    caller
        .roles()
        .max_by_key(|role| taken(role))
        .map_or_else(|| policy.minimal_role().to_owned(), str::to_owned)
}

/// Answers with text: lines as a structured object would be sent twice to who shows both.
fn logs(sessions: &Sessions) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "logs",
        "Session logs",
        "The supervisor's last lines, or a session's. Also level, cursor.",
        move |input: ReadLogs, context: Context| {
            let sessions = of(&sessions, &context);
            async move {
                let request = LogRequest {
                    lines: input.lines,
                    since: input.since,
                    level: input.level,
                    session: input.session,
                    cursor: input.cursor,
                    wait_ms: 0,
                };
                let page: LogAnswer = match input.follow {
                    false => read(sessions.ask(Request::Logs(request)).await?)?,
                    true => follow(&sessions, request, &context).await?,
                };
                let header =
                    format!("{} of {} lines; cursor {}", page.lines.len(), page.total_available, page.cursor);
                Ok(Answer::text(std::iter::once(header).chain(page.lines).collect::<Vec<_>>().join("\n")))
            }
        },
    );
    tool.without_place()
}

/// New lines as they come: each as progress where somebody hears of it, until there are as many as asked for or the time
/// is over; else until the first.
async fn follow(
    sessions: &Sessions,
    mut request: LogRequest,
    context: &Context,
) -> Result<LogAnswer, ToolError> {
    const HEARD: Duration = Duration::from_secs(60);
    const UNHEARD: Duration = Duration::from_secs(10);
    /// One may want to stop meanwhile.
    const AT_A_TIME: Duration = Duration::from_secs(2);
    let heard = context.progress.is_heard();
    let ends = Instant::now() + if heard { HEARD } else { UNHEARD };
    let most = request.lines;
    if request.cursor.is_none() {
        let now: LogAnswer = read(sessions.ask(Request::Logs(request.clone())).await?)?;
        request.cursor = Some(now.cursor);
    }
    let mut all =
        LogAnswer { lines: Vec::new(), total_available: 0, cursor: request.cursor.unwrap_or_default() };
    loop {
        let left = ends.saturating_duration_since(Instant::now()).min(AT_A_TIME);
        request.wait_ms = u64::try_from(left.as_millis()).unwrap_or_default();
        request.lines = most - all.lines.len();
        let page: LogAnswer = tokio::select! {
            page = sessions.ask(Request::Logs(request.clone())) => read(page?)?,
            () = context.cancel.cancelled() => return Ok(all),
        };
        page.lines.iter().for_each(|line| context.progress.add(line));
        request.cursor = Some(page.cursor);
        all.cursor = page.cursor;
        all.total_available += page.lines.len() as u64;
        let came = !page.lines.is_empty();
        all.lines.extend(page.lines);
        if all.lines.len() >= most || Instant::now() >= ends || (came && !heard) {
            return Ok(all);
        }
    }
}

fn send_message(sessions: &Sessions) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "send_message",
        "Message a session",
        "By its input, or by resuming it.",
        move |input: SendMessage, context: Context| {
            let sessions = of(&sessions, &context);
            async move {
                let request = Request::Send { session_id: input.session_id, text: input.text };
                let sent: crate::sessions::Sent = read(sessions.ask(request).await?)?;
                Answer::lines(&sent)
            }
        },
    );
    tool.adds().open_world()
}

fn list_sessions(sessions: &Sessions) -> Tool {
    let sessions = sessions.clone();
    Tool::new(
        "list_sessions",
        "List sessions",
        "Sessions with state, role, process.",
        move |input: ListSessions, context: Context| {
            let sessions = of(&sessions, &context);
            async move {
                let list: crate::sessions::SessionList =
                    read(sessions.ask(Request::List { all: input.all }).await?)?;
                let line = |session: &crate::sessions::SessionInfo| {
                    serde_json::to_string(session).unwrap_or_default()
                };
                let count = list.sessions.len();
                let lines =
                    std::iter::once(format!("{count} sessions")).chain(list.sessions.iter().map(line));
                Ok(Answer::text(lines.collect::<Vec<_>>().join("\n")))
            }
        },
    )
}

fn end_session(sessions: &Sessions) -> Tool {
    let sessions = sessions.clone();
    let tool = Tool::new(
        "end_session",
        "End a session",
        "Ends it with every process of it.",
        move |input: EndSession, context: Context| {
            let sessions = of(&sessions, &context);
            async move {
                let grace_ms = input.grace.unwrap_or(5) * 1000;
                let request = Request::End { session_id: input.session_id, grace_ms };
                let ended: SessionEnded = read(sessions.ask(request).await?)?;
                let left = !ended.left.is_empty();
                Ok(Answer::lines(&ended)?.failed_if(left))
            }
        },
    );
    tool.destroys().idempotent()
}
