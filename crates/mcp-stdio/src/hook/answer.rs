//! Answers one event of a client.

use super::arguments::AnswerArguments;
use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::print;
use crate::print_config::launch;
use agent_hooks::{HookAnswer, HookClient, HookDecision, HookEvent, HookVerdict};
use error_causes::chain;
use serde_json::{Map, Value};
use server_setup::native_tools::NativeToolHost;
use server_setup::{Program, read_settings};
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// The size up to which an event is read: a file that is written is in it.
const MAX_EVENT_BYTES: u64 = 64 << 20;

/// Reads an event from standard input and prints the answer. Whatever goes wrong is an answer that refuses the tool.
pub(super) fn answer(
    program: Program,
    options: &GlobalOptions,
    client: HookClient,
    arguments: &AnswerArguments,
) -> ExitCode {
    let answer = read_event(client)
        .and_then(|event| decided(program, options, arguments, &event))
        .unwrap_or_else(|error| HookAnswer::failure(client, &chain(&error)));
    match print(&answer.output.to_string()) {
        code if code == ExitCode::SUCCESS => code,
        // The code by which clients refuse the tool.
        _ => ExitCode::from(2),
    }
}

fn read_event(client: HookClient) -> Result<HookEvent, Error> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_EVENT_BYTES + 1).read_to_string(&mut text);
    let read = read.map_err(Error::system("cannot read the event from standard input"))?;
    if read as u64 > MAX_EVENT_BYTES {
        return Err(Error::Argument(format!("the event has more than {MAX_EVENT_BYTES} bytes")));
    }
    HookEvent::parse(client, &text).map_err(|error| Error::Argument(chain(&error)))
}

fn decided(
    program: Program,
    options: &GlobalOptions,
    arguments: &AnswerArguments,
    event: &HookEvent,
) -> Result<HookAnswer, Error> {
    let host = host(program, options, event.client)?;
    let decision = host.decide(event, !arguments.no_exec && cfg!(target_os = "linux"));
    let input = match arguments.no_exec || decision.verdict == HookVerdict::Deny {
        true => None,
        false => supervised(&host, options, arguments, event, &decision)?,
    };
    Ok(HookAnswer::new(event.client, &decision, input, arguments.approve))
}

/// Returns the host that judges for `client`, whose project is the root if no other is named.
pub(super) fn host(
    program: Program,
    options: &GlobalOptions,
    client: HookClient,
) -> Result<NativeToolHost, Error> {
    let mut settings = read_settings::read(program, &options.flags(), options.agent_command.clone())?;
    // A session goes to other folders, and the project stays.
    let project = client.project_variable().and_then(std::env::var_os).map(PathBuf::from);
    let project = project.filter(|folder| folder.is_absolute());
    if let Some(project) = project {
        settings = settings.with_default_root(project);
    }
    if let Some(broad) = &settings.broad_root {
        return Err(Error::Argument(broad.notice()));
    }
    Ok(NativeToolHost::new(settings)?)
}

/// Returns the arguments of a tool whose command line runs beneath `exec`: with a deadline, the confinement of the role, and
/// the end of everything that it starts.
#[cfg(target_os = "linux")]
fn supervised(
    host: &NativeToolHost,
    options: &GlobalOptions,
    arguments: &AnswerArguments,
    event: &HookEvent,
    decision: &HookDecision,
) -> Result<Option<Map<String, Value>>, Error> {
    let key = if event.input.contains_key("cmd") { "cmd" } else { "command" };
    let Some(Value::String(line)) = event.input.get(key).filter(|_| decision.runs_programs) else {
        return Ok(None);
    };
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let settings = host.settings();
    let options =
        GlobalOptions { roots: settings.roots.clone(), text_only: false, toolsets: None, ..options.clone() };
    let mut words = launch::program(&executable)?;
    words.extend(launch::arguments(&options)?);
    let limit = arguments.exec_timeout.unwrap_or(*settings.config.limits.max_timeout_ms / 1000).max(1);
    words.extend(["exec".to_owned(), "--timeout".to_owned(), limit.to_string()]);
    let command = ["bash", "-c", line].map(str::to_owned);
    if decision.verdict == HookVerdict::Ask && event.client.can_ask_about_changed_arguments() {
        let id = host.grant(&command, &event.folder, event.client.display_name())?;
        words.extend(["--approved".to_owned(), id]);
    }
    if let Some(client) = client_process() {
        words.extend(["--ends-with".to_owned(), client.to_string()]);
    }
    words.push("--".to_owned());
    words.extend(command);
    let quoted: Vec<String> = words.iter().map(|word| launch::quoted(word)).collect();
    let mut input = event.input.clone();
    input.insert(key.to_owned(), Value::String(quoted.join(" ")));
    Ok(Some(input))
}

#[cfg(not(target_os = "linux"))]
fn supervised(
    _: &NativeToolHost,
    _: &GlobalOptions,
    _: &AnswerArguments,
    _: &HookEvent,
    _: &HookDecision,
) -> Result<Option<Map<String, Value>>, Error> {
    Ok(None)
}

/// Returns the process of the client: the nearest one above this that is no shell.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "files of /proc about the processes above this one")]
fn client_process() -> Option<u32> {
    const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ash"];
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..8 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        if !SHELLS.contains(&name) {
            return (pid > 1).then_some(pid);
        }
        pid = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    }
    None
}
