//! `mcp-stdio session`: the daemon, and what one asks of whoever supervises.

use crate::cli::SessionCommand;
use crate::print;
use core_tools::config::{Preset, Source, Toolsets};
use core_tools::mcp::Context;
use core_tools::sessions::{
    Again, Client, Code, Error, LogAnswer, LogRequest, Owner, Request, Sent, SessionEnded, SessionInfo,
    SessionList, Status, Supervisor, Switched,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use server_setup::settings::{Settings, chain};
use server_setup::{sessions, setup};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Nobody supervises.
const NOT_RUNNING: u8 = 1;
/// What sessions get to end by themselves when the daemon ends.
const GRACE: Duration = Duration::from_secs(5);

/// What a command came to.
enum Outcome {
    /// It was done; this is to be printed.
    Done(String),
    /// Nobody supervises, and why that matters.
    NotRunning(String),
}

/// Runs `mcp-stdio session COMMAND`. An error is anything that was not done, but that nobody supervises.
/// `again` reads the settings again.
pub(crate) async fn run(
    settings: Settings,
    command: SessionCommand,
    again: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> Result<ExitCode, String> {
    let outcome = match command {
        SessionCommand::Daemon => return daemon(&settings, again).await,
        command => ask(settings, command).await?,
    };
    Ok(match outcome {
        Outcome::Done(text) if text.is_empty() => ExitCode::SUCCESS,
        Outcome::Done(text) => print(&text),
        Outcome::NotRunning(why) => {
            crate::print_error(&format!("{}: {why}", crate::name()));
            ExitCode::from(NOT_RUNNING)
        }
    })
}

/// Supervises until a signal comes. SIGHUP is none of those: it has the settings read again.
async fn daemon(
    settings: &Settings,
    again: impl Fn() -> Result<Settings, String> + Send + Sync + 'static,
) -> Result<ExitCode, String> {
    setup::more_descriptors();
    let state = sessions::state_folder(settings)?;
    let options = |settings: &Settings| sessions::options(settings, Owner::Daemon);
    let mut supervised = options(settings)?;
    supervised.again = Some(Again::new(move || options(&again()?)));
    let failed = |error: std::io::Error| format!("cannot wait for signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let supervisor = Supervisor::host(&state, supervised).await.map_err(|error| error.to_string())?;
    crate::print_error(&format!(
        "{}: supervising sessions in {}, process {}",
        crate::name(),
        state.display(),
        std::process::id()
    ));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                // Its log says what came of it; so does ours.
                if let Err(error) = supervisor.reload() {
                    tracing::error!("{error}");
                }
            }
        }
    }
    supervisor.close();
    supervisor.shutdown(GRACE).await;
    Ok(ExitCode::SUCCESS)
}

async fn ask(settings: Settings, command: SessionCommand) -> Result<Outcome, String> {
    let client = Client::new(sessions::state_folder(&settings)?);
    // What a caller may not do as a tool it may not do here.
    let tool = match &command {
        SessionCommand::Status { .. } => "status",
        SessionCommand::Pause { .. } => "pause",
        SessionCommand::Resume { .. } => "resume",
        SessionCommand::New { .. } => "new_session",
        SessionCommand::Logs { .. } => "logs",
        SessionCommand::List { .. } => "list_sessions",
        SessionCommand::Send { .. } => "send_message",
        SessionCommand::End { .. } | SessionCommand::Daemon => "end_session",
    };
    if let Err(error) = client.ask(&Request::Status {}).await
        && error.code == Code::NotRunning
    {
        return Ok(Outcome::NotRunning(error.message));
    }
    // What the default leaves out of a client's list costs nothing here. What somebody chose holds.
    let mut settings = settings;
    if settings.config.toolsets.source == Source::Default {
        settings.config.toolsets.value = Toolsets::Preset(Preset::All);
    }
    let server = setup::server(settings)?;
    if !server.host.names(&server.caller).contains(&tool) {
        return Err(format!(
            "the role {} has no `{tool}`, or --toolsets leaves it out; `mcp-stdio policy matrix` shows who has it",
            server.caller.role()
        ));
    }
    match command {
        SessionCommand::Daemon => Ok(Outcome::Done(String::new())),
        SessionCommand::Status { json } => {
            one::<Status>(&client, Request::Status {}, json, status_text).await
        }
        SessionCommand::Pause { json } => {
            one::<Switched>(&client, Request::Pause {}, json, switched_text).await
        }
        SessionCommand::Resume { json } => {
            one::<Switched>(&client, Request::Resume {}, json, switched_text).await
        }
        SessionCommand::List { all, json } => {
            one::<SessionList>(&client, Request::List { all }, json, |list| {
                list.sessions.iter().map(session_text).collect::<Vec<_>>().join("\n")
            })
            .await
        }
        SessionCommand::Send { session, text, json } => {
            let request = Request::Send { session_id: session, text };
            one::<Sent>(&client, request, json, |sent| {
                format!("{}: {}, process {}", sent.session_id, sent.delivered, sent.pid)
            })
            .await
        }
        SessionCommand::End { session, grace, json } => {
            let request = Request::End { session_id: session, grace_ms: grace.saturating_mul(1000) };
            one::<SessionEnded>(&client, request, json, |ended| {
                let before = if ended.changed { "" } else { " (it was over before)" };
                format!("{}: {}{before}", ended.session_id, ended.state)
            })
            .await
        }
        SessionCommand::Logs { lines, since, level, session, follow, json } => {
            let level = level.map(|level| serde_json::from_value(json!(level))).transpose();
            let level = level.map_err(|_| "--level is debug, info, warn or error".to_owned())?;
            let request =
                LogRequest { lines: lines as usize, since, level, session, cursor: None, wait_ms: 0 };
            logs(&client, request, follow, json).await
        }
        SessionCommand::New { prompt, session_role, cwd, agent, pty, command, json } => {
            new(&server, Wish { prompt, role: session_role, cwd, agent, pty, command }, json).await
        }
    }
}

/// Asks one thing and says what came of it.
async fn one<T: DeserializeOwned>(
    client: &Client,
    request: Request,
    as_json: bool,
    text: impl Fn(&T) -> String,
) -> Result<Outcome, String> {
    let answer = client.ask(&request).await.map_err(|error: Error| error.message)?;
    if as_json {
        return pretty(&answer).map(Outcome::Done);
    }
    let answer = serde_json::from_value(answer).map_err(|error| chain(&error))?;
    Ok(Outcome::Done(text(&answer)))
}

fn pretty(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(|error| chain(&error))
}

struct Wish {
    prompt: Option<String>,
    role: Option<String>,
    cwd: Option<String>,
    agent: Option<String>,
    pty: bool,
    command: Vec<String>,
}

/// Starts a session as the tool does: with the same policy, roles and folders.
async fn new(server: &setup::Server, wish: Wish, as_json: bool) -> Result<Outcome, String> {
    let mut arguments = Map::new();
    let given = [("prompt", wish.prompt), ("role", wish.role), ("cwd", wish.cwd)];
    let given = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::from(value?))));
    arguments.extend(given);
    if wish.pty {
        arguments.insert("pty".to_owned(), true.into());
    }
    let mut command = wish.command;
    if command.is_empty() {
        command.extend(wish.agent);
    }
    if !command.is_empty() {
        arguments.insert("command".to_owned(), command.into());
    }
    let context = Context::new(server.caller.clone(), CancellationToken::new());
    let answer = server.host.call("new_session", arguments, context).await.map_err(|error| chain(&error))?;
    if answer.is_failed() {
        return Err(answer.to_text());
    }
    let started: Value = serde_json::from_str(&answer.to_text()).map_err(|error| chain(&error))?;
    if as_json {
        return pretty(&started).map(Outcome::Done);
    }
    let text = |key: &str| started[key].as_str().unwrap_or_default().to_owned();
    Ok(Outcome::Done(format!(
        "{}: process {}, role {}, log {}",
        text("session_id"),
        started["pid"],
        text("role"),
        text("log")
    )))
}

async fn logs(
    client: &Client,
    mut request: LogRequest,
    follow: bool,
    as_json: bool,
) -> Result<Outcome, String> {
    /// How long one question waits.
    const WAIT: u64 = 2_000;
    loop {
        let answer = client.ask(&Request::Logs(request.clone())).await;
        let answer = match answer {
            Ok(answer) => answer,
            // It may have ended while its log was followed, be it in the middle of an answer.
            Err(error) => match client.ask(&Request::Status {}).await {
                Err(gone) if gone.code == Code::NotRunning => return Ok(Outcome::NotRunning(gone.message)),
                _ => return Err(error.message),
            },
        };
        let page: LogAnswer = serde_json::from_value(answer.clone()).map_err(|error| chain(&error))?;
        if !follow {
            let text = if as_json { pretty(&answer)? } else { page.lines.join("\n") };
            return Ok(Outcome::Done(text));
        }
        for line in &page.lines {
            let line = if as_json { json!({ "line": line }).to_string() } else { line.clone() };
            if print(&line) != ExitCode::SUCCESS {
                return Err("cannot write to standard output".to_owned());
            }
        }
        (request.cursor, request.wait_ms, request.lines) = (Some(page.cursor), WAIT, 1000);
    }
}

fn switched_text(switched: &Switched) -> String {
    switched.message.clone()
}

fn status_text(status: &Status) -> String {
    let mut text = format!(
        "{}, {} {}, up {} s\nsaves {}, resumes {}, time saved {} s",
        status.state,
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
