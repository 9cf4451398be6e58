//! The subcommand `session`: the daemon, and the commands that ask a supervisor.

use crate::cli::SessionSubcommand;
use crate::error::Error;
use crate::output::{DEFAULT_NAME, name, print, print_error};
use core_tools::mcp::CallContext;
use core_tools::sessions::{
    ErrorCode, SessionEnded, SessionInfo, SessionList, SessionLogLines, SessionLogRequest,
    SessionMessageDelivery, Supervisor, SupervisorClient, SupervisorHostKind, SupervisorOptionsLoader,
    SupervisorPauseChange, SupervisorRequest, SupervisorStatus,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use server_setup::settings::Settings;
use server_setup::{open_file_limit, sessions, setup};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code if no supervisor is running.
const NOT_RUNNING: u8 = 1;
/// The time that sessions have to end by themselves when the daemon ends.
const SESSION_GRACE: Duration = Duration::from_secs(5);

/// The result of a command that asks a supervisor.
enum CommandResult {
    /// It was done. Holds what is printed.
    Done(String),
    /// No supervisor is running. Holds the message for the user.
    NotRunning(String),
}

/// Runs `mcp-stdio session COMMAND`. If no supervisor is running, the exit code is 1, and there is no error. `reread`
/// reads the settings again.
pub(crate) async fn run(
    settings: Settings,
    command: SessionSubcommand,
    reread: impl Fn() -> Result<Settings, server_setup::Error> + Send + Sync + 'static,
) -> Result<ExitCode, Error> {
    let result = match command {
        SessionSubcommand::Daemon => return daemon(&settings, reread).await,
        command => ask(settings, command).await?,
    };
    Ok(match result {
        CommandResult::Done(text) if text.is_empty() => ExitCode::SUCCESS,
        CommandResult::Done(text) => print(&text),
        CommandResult::NotRunning(why) => {
            print_error(&format!("{}: {why}", name()));
            ExitCode::from(NOT_RUNNING)
        }
    })
}

/// Supervises until SIGTERM or SIGINT comes. At SIGHUP the settings are read again.
async fn daemon(
    settings: &Settings,
    reread: impl Fn() -> Result<Settings, server_setup::Error> + Send + Sync + 'static,
) -> Result<ExitCode, Error> {
    open_file_limit::raise();
    let state = sessions::state_folder(settings)?;
    let options = |settings: &Settings| sessions::options(settings, SupervisorHostKind::Daemon);
    let mut supervised = options(settings)?;
    supervised.loader = Some(SupervisorOptionsLoader::new(move || Ok(options(&reread()?)?)));
    let failed = || Error::system("cannot wait for signals");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed())?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed())?;
    let supervisor = Supervisor::host(&state, supervised).await?;
    print_error(&format!(
        "{}: supervising sessions in {}, process {}",
        name(),
        state.display(),
        std::process::id()
    ));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                // The log of the sessions has the error too.
                if let Err(error) = supervisor.reload() {
                    tracing::error!("{error}");
                }
            }
        }
    }
    // No further client comes while the sessions are ended.
    supervisor.close();
    supervisor.shutdown(SESSION_GRACE).await;
    Ok(ExitCode::SUCCESS)
}

/// Asks the supervisor, if the caller may call the tool that does the same.
async fn ask(settings: Settings, command: SessionSubcommand) -> Result<CommandResult, Error> {
    let client = SupervisorClient::new(sessions::state_folder(&settings)?);
    // The policy speaks of tools: a caller may do here what it may do by one.
    let tool = match &command {
        SessionSubcommand::Status { .. } => "status",
        SessionSubcommand::Pause { .. } => "pause",
        SessionSubcommand::Resume { .. } => "resume",
        SessionSubcommand::New { .. } => "new_session",
        SessionSubcommand::Logs { .. } => "logs",
        SessionSubcommand::List { .. } => "list_sessions",
        SessionSubcommand::Send { .. } => "send_message",
        // `Daemon` never comes here: `run` has handled it.
        SessionSubcommand::End { .. } | SessionSubcommand::Daemon => "end_session",
    };
    // Before the policy: without a supervisor there is nothing to judge, and to say so tells nobody anything.
    if let Err(error) = client.ask(&SupervisorRequest::Status {}).await
        && error.code == ErrorCode::NotRunning
    {
        return Ok(CommandResult::NotRunning(error.message.replace(DEFAULT_NAME, name())));
    }
    let server = setup::server(settings)?;
    // A preset leaves tools out only to keep a client's list short. A choice of toolsets holds here too.
    if !server.host.callable_names(&server.caller).contains(&tool) {
        return Err(Error::Forbidden(format!(
            "the role {} has no `{tool}`, or --toolsets leaves it out; `{} policy matrix` shows who has it",
            server.caller.role(),
            name()
        )));
    }
    match command {
        SessionSubcommand::Daemon => Ok(CommandResult::Done(String::new())),
        SessionSubcommand::Status { json } => {
            ask_one::<SupervisorStatus>(&client, SupervisorRequest::Status {}, json, status_text).await
        }
        SessionSubcommand::Pause { json } => {
            ask_one::<SupervisorPauseChange>(&client, SupervisorRequest::Pause {}, json, pause_text).await
        }
        SessionSubcommand::Resume { json } => {
            ask_one::<SupervisorPauseChange>(&client, SupervisorRequest::Resume {}, json, pause_text).await
        }
        SessionSubcommand::List { all, json } => {
            ask_one::<SessionList>(&client, SupervisorRequest::List { all }, json, |list| {
                list.sessions.iter().map(session_text).collect::<Vec<_>>().join("\n")
            })
            .await
        }
        SessionSubcommand::Send { session, text, json } => {
            let request = SupervisorRequest::Send { session_id: session, text };
            ask_one::<SessionMessageDelivery>(&client, request, json, |sent| {
                format!("{}: {}, process {}", sent.session_id, sent.delivered.as_str(), sent.pid)
            })
            .await
        }
        SessionSubcommand::End { session, grace, json } => {
            let request =
                SupervisorRequest::End { session_id: session, grace_ms: grace.saturating_mul(1000) };
            ask_one::<SessionEnded>(&client, request, json, |ended| {
                let before = if ended.changed { "" } else { " (it was over before)" };
                format!("{}: {}{before}", ended.session_id, ended.state)
            })
            .await
        }
        SessionSubcommand::Logs { lines, since, level, session, follow, json } => {
            let level = level.map(|level| serde_json::from_value(json!(level))).transpose();
            let level = level
                .map_err(|_| Error::Argument("--level must be debug, info, warn or error".to_owned()))?;
            let mut request = SessionLogRequest::new(lines as usize);
            (request.since, request.level, request.session) = (since, level, session);
            logs(&client, request, follow, json).await
        }
        SessionSubcommand::New { prompt, session_role, cwd, agent, pty, command, json } => {
            start(&server, StartRequest { prompt, role: session_role, cwd, agent, pty, command }, json).await
        }
    }
}

/// Sends one request, and writes the answer as JSON or as `text` says.
async fn ask_one<T: DeserializeOwned>(
    client: &SupervisorClient,
    request: SupervisorRequest,
    as_json: bool,
    text: impl Fn(&T) -> String,
) -> Result<CommandResult, Error> {
    let answer = client.ask(&request).await?;
    if as_json {
        return pretty(&answer).map(CommandResult::Done);
    }
    let answer = serde_json::from_value(answer)?;
    Ok(CommandResult::Done(text(&answer)))
}

fn pretty(value: &Value) -> Result<String, Error> {
    Ok(serde_json::to_string_pretty(value)?)
}

/// The session that `session new` asks for.
struct StartRequest {
    prompt: Option<String>,
    role: Option<String>,
    cwd: Option<String>,
    agent: Option<String>,
    pty: bool,
    command: Vec<String>,
}

/// Starts a session as the tool does: with the same policy, roles and folders.
async fn start(
    server: &setup::LocalServer,
    request: StartRequest,
    as_json: bool,
) -> Result<CommandResult, Error> {
    let mut arguments = Map::new();
    let named = [("prompt", request.prompt), ("role", request.role), ("cwd", request.cwd)];
    let named = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::from(value?))));
    arguments.extend(named);
    if request.pty {
        arguments.insert("pty".to_owned(), true.into());
    }
    let mut command = request.command;
    if command.is_empty() {
        command.extend(request.agent);
    }
    if !command.is_empty() {
        arguments.insert("command".to_owned(), command.into());
    }
    // Through the host, so that the arguments are checked, judged and recorded as those of a client are.
    let context = CallContext::new(server.caller.clone(), CancellationToken::new());
    let answer = server.host.call("new_session", arguments, context).await?;
    if answer.is_failed() {
        return Err(Error::Failed(answer.to_text()));
    }
    let started: Value = serde_json::from_str(&answer.to_text())?;
    if as_json {
        return pretty(&started).map(CommandResult::Done);
    }
    let text = |key: &str| started[key].as_str().unwrap_or_default().to_owned();
    Ok(CommandResult::Done(format!(
        "{}: process {}, role {}, log {}",
        text("session_id"),
        started["pid"],
        text("role"),
        text("log")
    )))
}

/// Prints the log, and keeps printing new lines if `follow`.
async fn logs(
    client: &SupervisorClient,
    mut request: SessionLogRequest,
    follow: bool,
    as_json: bool,
) -> Result<CommandResult, Error> {
    /// The longest that one request waits for new lines.
    const WAIT_MS: u64 = 2_000;
    loop {
        let answer = client.ask(&SupervisorRequest::Logs(request.clone())).await;
        let answer = match answer {
            Ok(answer) => answer,
            // The supervisor may have ended while its log was followed, even in the middle of an answer.
            Err(error) => match client.ask(&SupervisorRequest::Status {}).await {
                Err(gone) if gone.code == ErrorCode::NotRunning => {
                    return Ok(CommandResult::NotRunning(gone.message));
                }
                _ => return Err(error.into()),
            },
        };
        let page: SessionLogLines = serde_json::from_value(answer.clone())?;
        if !follow {
            let text = if as_json { pretty(&answer)? } else { page.lines.join("\n") };
            return Ok(CommandResult::Done(text));
        }
        for line in &page.lines {
            let line = if as_json { json!({ "line": line }).to_string() } else { line.clone() };
            if print(&line) != ExitCode::SUCCESS {
                return Err(Error::Failed("cannot write to standard output".to_owned()));
            }
        }
        // The first answer has the last lines. The next ones go on at its cursor and wait for new lines.
        (request.cursor, request.wait_ms, request.lines) = (Some(page.cursor), WAIT_MS, 1000);
    }
}

fn pause_text(change: &SupervisorPauseChange) -> String {
    change.message.clone()
}

fn status_text(status: &SupervisorStatus) -> String {
    let mut text = format!(
        "{}, {} {}, up {} s\nsaves {}, resumes {}, time saved {} s",
        status.state.as_str(),
        status.owner.as_str(),
        status.pid,
        status.uptime_seconds,
        status.stats.saves_count,
        status.stats.total_resumes,
        status.stats.time_saved_seconds
    );
    for session in &status.sessions {
        let _ = write!(text, "\n{}", session_text(session));
    }
    for session in &status.watched {
        let last = session.last_step.map(|last| format!(" of {last}")).unwrap_or_default();
        let done = if session.complete { ", complete" } else { "" };
        let _ = write!(text, "\nwatched {}: {}{last} steps{done}", session.path, session.steps_completed);
    }
    for trouble in &status.trouble {
        let _ = write!(text, "\ntrouble: {trouble}");
    }
    text
}

fn session_text(session: &SessionInfo) -> String {
    let mut text = format!("{}  {:8}  {}", session.session_id, session.state, session.role);
    if let Some(pid) = session.pid {
        let _ = write!(text, "  process {pid}");
    }
    let _ = write!(text, "  since {}  {}", session.since, session.command);
    if let Some(stop) = &session.last_stop {
        let evidence = stop.evidence.first().map_or("", String::as_str);
        let _ = write!(text, "\n    last stop: {} ({evidence})", stop.reason.as_str());
    }
    if let Some(next) = &session.next_action {
        let _ = write!(text, "\n    next: {} at {}, attempt {}", next.action, next.at, next.attempt);
    }
    if let Some(failure) = &session.failure {
        let _ = write!(text, "\n    {failure}");
    }
    text
}
