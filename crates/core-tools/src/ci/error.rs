//! The errors of running a command, and their messages.

use super::egress::EgressError;
use super::shell_only::{NeedsShell, is_builtin};
use crate::workspace;
use process_runner::{CommandSplitError, SpawnErrorKind};
use serde_json::json;
use std::io;
use std::path::PathBuf;

/// An error that kept a command from running, or that lost its run.
///
/// A command that ran and failed is not an error: see [`CommandReport`](super::CommandReport).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The line cannot be split into words.
    #[error("cannot split the command")]
    Split(#[from] CommandSplitError),
    /// The line needs a shell, and was to run without one.
    #[error("{0}")]
    NeedsShell(NeedsShell),
    /// The line needs a shell, which the program that runs it has not.
    #[error("{found}, and `command` runs without one; nothing was run. Give the shell itself: {}", json!({ "command": words }))]
    LineOfShell {
        /// The part of the line that needs a shell.
        found: String,
        /// The words that run the line in a shell.
        words: Vec<String>,
    },
    /// Words were given where a line of a shell was expected.
    #[error("with `shell`, `command` is one line of text, and it is an array of words: {advice}")]
    ShellTakesLine {
        /// The call to make instead.
        advice: String,
    },
    /// The size of a terminal is given for a command that gets none.
    #[error(
        "`columns` and `rows` are the size of a terminal, and without `pty` there is none; nothing was run. Add \
         \"pty\":true beside {given}, or leave them out"
    )]
    SizeWithoutTerminal {
        /// The members that give it.
        given: String,
    },
    /// The array names no program.
    #[error("`command` is empty: expected a program and its arguments")]
    Empty,
    /// The working directory cannot be used.
    #[error("cannot run in that folder")]
    Folder(#[from] workspace::Error),
    /// The network that the caller's role allows cannot be kept.
    #[error("nothing was run")]
    Network(#[from] EgressError),
    /// The program did not start, or its run was lost.
    #[error("{}", run_error(.0))]
    Run(process_runner::Error),
    /// The requested time limit is longer than the server allows.
    #[error(
        "`timeout_ms` is {requested_ms}: this server allows at most {max_ms}; longer work goes into start_command"
    )]
    TimeoutTooLong {
        /// The time limit that was requested, in milliseconds.
        requested_ms: u128,
        /// The longest time limit that the server allows, in milliseconds.
        max_ms: u128,
    },
    /// No background command of this owner has this id.
    #[error("no background command has the id {id}; {}", known_ids(.known))]
    UnknownId {
        /// The id that was requested.
        id: u32,
        /// The ids of the owner's background commands.
        known: Vec<u32>,
    },
    /// The limit on running background commands is reached.
    #[error("{max} background commands are running, which is the most there may be; stop one first")]
    TooManyRunning {
        /// The number of background commands that may run at once.
        max: usize,
    },
    /// The port to wait for is in use before the command was started.
    #[error(
        "port {port} is in use already, so nothing was started: stop what listens there, or let the command use another"
    )]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// The call that started a command was cancelled while it waited.
    #[error("cancelled while it waited for command {id}, which was ended")]
    StartCancelled {
        /// The id that the command had.
        id: u32,
    },
    /// The command did not take all of its input.
    #[error("command {id} took {written} bytes of input and not the other {remaining}")]
    InputNotTaken {
        /// The id of the command.
        id: u32,
        /// The number of bytes that the command took.
        written: usize,
        /// The number of bytes that it did not take.
        remaining: usize,
        /// The reason.
        source: StdinError,
    },
}

/// A reason why a background command takes no more input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdinError {
    /// The command has ended.
    #[error("it has ended")]
    Ended,
    /// The command does not read, and the pipe to it is full.
    #[error("it does not read, and its pipe is full")]
    PipeFull,
    /// The pipe cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl From<process_runner::Error> for CommandError {
    fn from(error: process_runner::Error) -> Self {
        Self::Run(error)
    }
}

fn known_ids(ids: &[u32]) -> String {
    if ids.is_empty() {
        return "there are none".to_owned();
    }
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("there are {}", ids.join(", "))
}

/// Returns the error, its sources and the advice that goes with it, on one line.
fn run_error(error: &process_runner::Error) -> String {
    if let process_runner::Error::Spawn(error) = error
        && let SpawnErrorKind::NotFound { searched, did_you_mean } = &error.kind
        && !searched.is_empty()
    {
        return program_not_found(&error.program, searched, did_you_mean.as_deref());
    }
    let text = error_causes::chain(error);
    match error.hint() {
        Some(hint) => format!("{text}. {hint}"),
        None => text,
    }
}

/// Says that no folder of `PATH` has `program`. A `PATH` of any length leaves the line short.
fn program_not_found(program: &str, searched: &[PathBuf], nearest_name: Option<&str>) -> String {
    const MAX_FOLDERS_SHOWN: usize = 3;
    let first: Vec<_> =
        searched.iter().take(MAX_FOLDERS_SHOWN).map(|folder| folder.display().to_string()).collect();
    let more = if searched.len() > MAX_FOLDERS_SHOWN { ", …" } else { "" };
    let advice = match nearest_name {
        // A near name would mislead here: the word is right, and only a shell knows it.
        _ if is_builtin(program) => {
            ". Shells have a command of this name: give the whole line as `command`, with \"shell\": true"
                .to_owned()
        }
        Some(name) => format!("; did you mean `{name}`?"),
        None => ". Install it, or add its folder to the PATH of the process that starts it.".to_owned(),
    };
    let (count, folders) = (searched.len(), if searched.len() == 1 { "folder" } else { "folders" });
    let first = first.join(", ");
    format!(
        "cannot start `{program}`: no such program in the {count} {folders} of PATH ({first}{more}){advice}"
    )
}
