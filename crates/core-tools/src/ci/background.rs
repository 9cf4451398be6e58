//! Commands that outlive the call that started them.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::command::{CommandError, CommandText, Commands};
use super::run::{ending, millis};
use process_runner::{Limits, Output, Running, Stdin, Stream, Termination};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A command to start in the background.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartCommand {
    /// Program and arguments, or one line (no shell)
    pub command: CommandText,
    /// Folder; default: the first root
    pub working_directory: Option<String>,
    /// Time limit; default: none
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Variables to set
    pub env: Option<BTreeMap<String, String>>,
}

/// Output to read from a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadCommandOutput {
    /// From start_command
    pub id: u32,
    /// next_cursor of the last read; default 0
    pub cursor: Option<u64>,
    /// Wait for more; default 0
    #[schemars(range(min = 0, max = 30_000))]
    pub wait_ms: Option<u64>,
    /// Default 20000
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_bytes: Option<usize>,
}

/// Text for the standard input of a background command.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteCommandInput {
    /// From start_command
    pub id: u32,
    /// Text to write
    pub text: Option<String>,
    /// Close it afterwards
    pub close: Option<bool>,
}

/// A background command to end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopCommand {
    /// From start_command
    pub id: u32,
    /// Before it is killed; default 2000
    #[schemars(range(min = 0, max = 30_000))]
    pub grace_ms: Option<u64>,
}

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCommands {}

/// A command that has been started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StartedCommand {
    /// What the other tools know it by.
    pub id: u32,
    /// Its process id.
    pub pid: u32,
}

/// Whether a background command runs, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackgroundState {
    /// What the other tools know it by.
    pub id: u32,
    /// The command.
    pub command: String,
    /// `running`, `exited`, `signaled`, `timed_out`, `stopped`, `unkillable` or `unknown`.
    pub state: &'static str,
    /// What the program passed to `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Start to exit, or to now, in milliseconds.
    pub duration_ms: u64,
}

/// A part of a background command's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackgroundOutput {
    /// Whether it runs, or how it ended.
    #[serde(flatten)]
    pub state: BackgroundState,
    /// Standard output and standard error, in the order they were written.
    pub output: String,
    /// Where to read on.
    pub next_cursor: u64,
    /// Bytes before `output` that are no longer there: the beginning and the end of a long output are kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The background commands there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandList {
    /// The latest last.
    pub commands: Vec<BackgroundState>,
}

impl BackgroundState {
    fn summary(&self) -> String {
        let mut text = format!("command {} (`{}`): {}", self.id, self.command, self.state.replace('_', " "));
        if let Some(code) = self.exit_code {
            let _ = write!(text, ", exit code {code}");
        }
        if let Some(signal) = &self.signal {
            let _ = write!(text, ", {signal}");
        }
        let _ = write!(text, ", {}.{:03} s", self.duration_ms / 1000, self.duration_ms % 1000);
        text
    }
}

impl BackgroundOutput {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = self.state.summary();
        let _ = write!(text, "; next_cursor {}", self.next_cursor);
        if self.lost_bytes > 0 {
            let _ = write!(text, "\n[... {} bytes are no longer there ...]", self.lost_bytes);
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n{}", self.output.trim_end_matches('\n'));
        }
        text
    }
}

/// Background commands that may run at once.
const MAX_RUNNING: usize = 32;
/// Ended commands whose output can still be read; older ones are forgotten.
const MAX_ENDED: usize = 32;
/// Kept of each command's output, both ends.
const CAPTURE_BYTES: usize = 1 << 20;
/// The default of what one read returns.
const READ_BYTES: usize = 20_000;
/// What a stopped command gets to end by itself.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The background commands of one server. Each belongs to an owner, and nobody else can reach it. Dropping
/// this ends them all.
#[derive(Debug)]
pub struct Background {
    commands: Commands,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last_id: u32,
    entries: BTreeMap<u32, Arc<Entry>>,
}

#[derive(Debug)]
struct Entry {
    id: u32,
    owner: String,
    command: String,
    started: Instant,
    running: Running,
    printed: Arc<Notify>,
}

impl Background {
    /// None yet; `commands` says where they may run.
    pub fn new(commands: Commands) -> Self {
        Self { commands, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, id: u32, owner: &str) -> Result<Arc<Entry>, CommandError> {
        let table = self.table();
        match table.entries.get(&id).filter(|entry| entry.owner == owner) {
            Some(entry) => Ok(Arc::clone(entry)),
            None => {
                let ids: Vec<_> = table
                    .entries
                    .values()
                    .filter(|entry| entry.owner == owner)
                    .map(|entry| entry.id.to_string())
                    .collect();
                let known = if ids.is_empty() {
                    "there are none".to_owned()
                } else {
                    format!("there are {}", ids.join(", "))
                };
                Err(CommandError::UnknownId { id, known })
            }
        }
    }

    /// Starts a command.
    ///
    /// # Errors
    ///
    /// Where the command was refused or did not start, or 32 of them are running.
    pub async fn start(&self, input: &StartCommand, owner: &str) -> Result<StartedCommand, CommandError> {
        if self.table().entries.values().filter(|entry| entry.running.output().is_none()).count()
            >= MAX_RUNNING
        {
            return Err(CommandError::TooMany(MAX_RUNNING));
        }
        let (command, _) =
            self.commands.prepare(&input.command, input.working_directory.as_deref(), input.env.as_ref())?;
        let mut limits = Limits::default().capture(CAPTURE_BYTES);
        limits.timeout = input.timeout_ms.map(Duration::from_millis);
        let printed = Arc::new(Notify::new());
        let wake = Arc::clone(&printed);
        let command = command
            .limits(limits)
            .merge_stderr()
            .stdin(Stdin::Piped)
            .on_line(move |_, _| wake.notify_waiters());
        let running = self.commands.runner.start(command).await?;
        let pid = running.pid().unwrap_or_default();
        let mut table = self.table();
        table.last_id += 1;
        let id = table.last_id;
        let entry = Entry {
            id,
            owner: owner.to_owned(),
            command: shown(&input.command),
            started: Instant::now(),
            running,
            printed,
        };
        table.entries.insert(id, Arc::new(entry));
        table.forget_the_oldest();
        Ok(StartedCommand { id, pid })
    }

    /// Reads output from a cursor on. Waits, where that is asked for, until there is some, the command has
    /// ended, or the call is cancelled.
    ///
    /// # Errors
    ///
    /// Where `owner` has no such command.
    pub async fn read(
        &self,
        input: &ReadCommandOutput,
        owner: &str,
        cancel: &CancellationToken,
    ) -> Result<BackgroundOutput, CommandError> {
        let entry = self.entry(input.id, owner)?;
        let until = tokio::time::Instant::now() + Duration::from_millis(input.wait_ms.unwrap_or(0));
        loop {
            let ended = entry.running.output().is_some();
            let output = entry.read(input.cursor.unwrap_or(0), input.max_bytes.unwrap_or(READ_BYTES));
            if ended || !output.output.is_empty() || tokio::time::Instant::now() >= until {
                return Ok(output);
            }
            tokio::select! {
                () = entry.printed.notified() => {}
                // A prompt has no line end, and an exit prints nothing: look again from time to time.
                () = tokio::time::sleep(Duration::from_millis(25)) => {}
                () = cancel.cancelled() => return Ok(output),
            }
        }
    }

    /// Writes to the standard input of a command, and says what became of it.
    ///
    /// # Errors
    ///
    /// Where `owner` has no such command, or it takes no more input.
    pub async fn write(&self, input: &WriteCommandInput, owner: &str) -> Result<String, CommandError> {
        let entry = self.entry(input.id, owner)?;
        let text = input.text.as_deref().unwrap_or_default();
        let no_input = |reason: String| CommandError::NoInput { id: input.id, reason };
        if !text.is_empty() {
            // A program that does not read fills its pipe; waiting for it would be waiting for ever.
            let writing = entry.running.write_stdin(text.as_bytes());
            tokio::time::timeout(STOP_GRACE, writing)
                .await
                .map_err(|_| no_input("it does not read what it has been given".to_owned()))?
                .map_err(|error| no_input(error.to_string()))?;
        }
        let close = input.close == Some(true);
        if close {
            entry.running.close_stdin().await;
        }
        Ok(format!("wrote {} bytes{}", text.len(), if close { " and closed standard input" } else { "" }))
    }

    /// Ends a command and everything it started, and returns the end of its output.
    ///
    /// # Errors
    ///
    /// Where `owner` has no such command.
    pub async fn stop(&self, input: &StopCommand, owner: &str) -> Result<BackgroundOutput, CommandError> {
        let entry = self.entry(input.id, owner)?;
        entry.running.terminate_within(input.grace_ms.map_or(STOP_GRACE, Duration::from_millis));
        entry.running.finished().await;
        let end = entry.read(u64::MAX, READ_BYTES).next_cursor;
        Ok(entry.read(end.saturating_sub(READ_BYTES as u64), READ_BYTES))
    }

    /// The commands of `owner`.
    pub fn list(&self, owner: &str) -> CommandList {
        let commands = self
            .table()
            .entries
            .values()
            .filter(|entry| entry.owner == owner)
            .map(|entry| entry.state())
            .collect();
        CommandList { commands }
    }
}

impl Table {
    fn forget_the_oldest(&mut self) {
        let ended: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.running.output().is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            self.entries.remove(id);
        }
    }
}

impl Entry {
    fn state(&self) -> BackgroundState {
        let output = self.running.output();
        let (exit_code, signal) = output.as_deref().map_or((None, None), ending);
        BackgroundState {
            id: self.id,
            command: self.command.clone(),
            state: output.as_deref().map_or("running", state_name),
            exit_code,
            signal,
            duration_ms: millis(match &output {
                Some(output) => output.to_exit.unwrap_or(output.elapsed),
                None => self.started.elapsed(),
            }),
        }
    }

    fn read(&self, cursor: u64, max: usize) -> BackgroundOutput {
        let state = self.state();
        let mut part = self.running.snapshot(Stream::Stdout, cursor, max);
        // While it runs, a line is given out when it is whole, so that nothing is cut in two that must be
        // seen whole to be masked. A prompt has no line end and is given out as it is.
        if state.state == "running"
            && let Some(end) = part.bytes.iter().rposition(|byte| *byte == b'\n')
        {
            part.next_cursor -= (part.bytes.len() - end - 1) as u64;
            part.bytes.truncate(end + 1);
        }
        BackgroundOutput {
            state,
            output: String::from_utf8_lossy(&part.bytes).into_owned(),
            next_cursor: part.next_cursor,
            lost_bytes: part.lost_bytes,
        }
    }
}

fn state_name(output: &Output) -> &'static str {
    match output.termination {
        Termination::Exited { .. } => "exited",
        Termination::Signaled { .. } => "signaled",
        Termination::TimedOut { .. } => "timed_out",
        Termination::Cancelled { .. } => "stopped",
        Termination::Unkillable { .. } => "unkillable",
        _ => "unknown",
    }
}

/// The command as a person would type it, shortened.
fn shown(command: &CommandText) -> String {
    const LONGEST: usize = 200;
    let line = match command {
        CommandText::Line(line) => line.clone(),
        CommandText::Vector(words) => words.join(" "),
    };
    if line.chars().count() <= LONGEST {
        line
    } else {
        line.chars().take(LONGEST).chain("…".chars()).collect()
    }
}
