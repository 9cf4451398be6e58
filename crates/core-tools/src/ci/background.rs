//! Commands that outlive the call that started them.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

use super::command::{CommandError, CommandText, Commands};
use super::confine::Reach;
use super::run::{ending, millis};
use super::transcript::Transcript;
use process_runner::{By, Event, EventOptions, Events, Lag, Limits, Output, Running, Stdin, Termination};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// A command to start in the background.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartCommand {
    /// Program and arguments, or one line (no shell)
    pub command: CommandText,
    /// Default: the first root
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
    /// Background command
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
    /// Background command
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
    /// Background command
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
    /// Where to read on. Only a cursor that was given out means anything.
    pub next_cursor: u64,
    /// Bytes before `output` that are no longer there: the end of a long output is kept.
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
            let _ = write!(text, "\n{}", self.output);
        }
        text
    }
}

/// Background commands of one owner that may run at once.
const MAX_RUNNING: usize = 32;
/// The same of all owners together.
const MAX_ALL: usize = 512;
/// Ended commands of one owner whose output can still be read; older ones are forgotten.
const MAX_ENDED: usize = 32;
/// The default of what one read returns.
const READ_BYTES: usize = 20_000;
/// What a stopped command gets to end by itself, and one that is written to, to read.
const PATIENCE: Duration = Duration::from_secs(2);
/// Written in one piece or not at all (`PIPE_BUF`, pipe(7)), so that what was taken is known exactly.
const PIECE: usize = 4096;

/// The background commands of one server. Each belongs to an owner, and nobody else can reach it. Dropping
/// this ends them all.
#[derive(Debug)]
pub struct Background {
    commands: Commands,
    places: Arc<Semaphore>,
    /// How many each owner has running.
    running: Arc<Mutex<HashMap<String, usize>>>,
    table: Mutex<Table>,
}

/// A place among those of an owner.
#[derive(Debug)]
struct Own {
    owner: String,
    running: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.owner);
            }
        }
    }
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
    changed: Notify,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    /// Gone once the command has ended, and with it its pipes.
    running: Option<Arc<Running>>,
    ended: Option<Ended>,
    transcript: Transcript,
}

#[derive(Clone, Debug)]
struct Ended {
    state: &'static str,
    exit_code: Option<u32>,
    signal: Option<String>,
    duration: Duration,
}

impl Background {
    /// None yet; `commands` says where they may run.
    pub fn new(commands: Commands) -> Self {
        let places = Arc::new(Semaphore::new(MAX_ALL));
        Self { commands, places, running: Arc::default(), table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among those of `owner`.
    fn own(&self, owner: &str) -> Result<Own, CommandError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = running.entry(owner.to_owned()).or_default();
        if *count >= MAX_RUNNING {
            return Err(CommandError::TooMany(MAX_RUNNING));
        }
        *count += 1;
        Ok(Own { owner: owner.to_owned(), running: Arc::clone(&self.running) })
    }

    fn entry(&self, id: u32, owner: &str) -> Result<Arc<Entry>, CommandError> {
        let table = self.table();
        match table.entries.get(&id).filter(|entry| entry.owner == owner) {
            Some(entry) => Ok(Arc::clone(entry)),
            None => {
                let own = table.entries.values().filter(|entry| entry.owner == owner);
                let ids: Vec<_> = own.map(|entry| entry.id.to_string()).collect();
                let known = if ids.is_empty() {
                    "there are none".to_owned()
                } else {
                    format!("there are {}", ids.join(", "))
                };
                Err(CommandError::UnknownId { id, known })
            }
        }
    }

    /// Starts a command. It ends when it is stopped, at its own time limit, or with this.
    ///
    /// # Errors
    ///
    /// Where the command was refused or did not start, or 32 of the owner's are running.
    pub async fn start(&self, input: &StartCommand, owner: &str) -> Result<StartedCommand, CommandError> {
        self.start_within(input, owner, &Reach::default(), None).await
    }

    /// The same for a caller whose commands may reach less. What is `held` for the command is dropped when it ends.
    ///
    /// # Errors
    ///
    /// The same.
    pub async fn start_within(
        &self,
        input: &StartCommand,
        owner: &str,
        reach: &Reach,
        held: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<StartedCommand, CommandError> {
        let own = self.own(owner)?;
        let place =
            Arc::clone(&self.places).try_acquire_owned().map_err(|_| CommandError::TooMany(MAX_ALL))?;
        let (command, _) = self.commands.narrowed(reach).prepare(
            &input.command,
            input.working_directory.as_deref(),
            input.env.as_ref(),
        )?;
        // What is printed goes into the transcript; the runner need not keep it too.
        let mut limits = Limits::default().capture(PIECE);
        limits.timeout = input.timeout_ms.map(Duration::from_millis);
        let mut options = EventOptions::default();
        (options.by, options.lag) = (By::Chunk, Lag::Block);
        let command = command.limits(limits).merge_stderr().stdin(Stdin::Piped).events(options);
        let mut running = self.commands.runner.start(command).await?;
        let events = running.events();
        let running = Arc::new(running);
        let pid = running.pid().unwrap_or_default();
        let entry = {
            let mut table = self.table();
            table.last_id += 1;
            let id = table.last_id;
            let entry = Arc::new(Entry {
                id,
                owner: owner.to_owned(),
                command: self.commands.shown(&input.command),
                started: Instant::now(),
                changed: Notify::new(),
                life: Mutex::new(Life {
                    running: Some(Arc::clone(&running)),
                    ended: None,
                    transcript: Transcript::new(self.commands.redactor.lines()),
                }),
            });
            table.entries.insert(id, Arc::clone(&entry));
            table.forget_the_oldest(owner);
            entry
        };
        let started = StartedCommand { id: entry.id, pid };
        // Ends with the command; the command ends with the table, which holds the other handle to it.
        tokio::spawn(follow(Arc::downgrade(&entry), Arc::downgrade(&running), events, (own, place, held)));
        Ok(started)
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
        let (cursor, max) = (input.cursor.unwrap_or(0), input.max_bytes.unwrap_or(READ_BYTES));
        loop {
            let changed = entry.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the look, so that nothing comes between the two.
            changed.as_mut().enable();
            let output = entry.read(cursor, max);
            if output.state.state != RUNNING || !output.output.is_empty() {
                return Ok(output);
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until) => return Ok(output),
                () = cancel.cancelled() => return Ok(output),
            }
        }
    }

    /// Writes to the standard input of a command, and says what became of it.
    ///
    /// # Errors
    ///
    /// Where `owner` has no such command, or it did not take everything; the error says how much it took.
    pub async fn write(&self, input: &WriteCommandInput, owner: &str) -> Result<String, CommandError> {
        let entry = self.entry(input.id, owner)?;
        let text = input.text.as_deref().unwrap_or_default().as_bytes();
        let mut taken = 0;
        let refused = |taken: usize, reason: &str| CommandError::NoInput {
            id: input.id,
            taken,
            rest: text.len() - taken,
            reason: reason.to_owned(),
        };
        let running = entry.running().ok_or_else(|| refused(0, "it has ended"))?;
        for piece in text.chunks(PIECE) {
            // A program that does not read fills its pipe; waiting for it would be waiting for ever.
            match tokio::time::timeout(PATIENCE, running.write_stdin(piece)).await {
                Ok(Ok(())) => taken += piece.len(),
                Ok(Err(error)) => return Err(refused(taken, &error.to_string())),
                Err(_) => return Err(refused(taken, "it does not read, and its pipe is full")),
            }
        }
        let close = input.close == Some(true);
        if close {
            running.close_stdin().await;
        }
        Ok(format!("wrote {taken} bytes{}", if close { " and closed standard input" } else { "" }))
    }

    /// Ends a command and everything it started, and returns the end of its output.
    ///
    /// # Errors
    ///
    /// Where `owner` has no such command.
    pub async fn stop(&self, input: &StopCommand, owner: &str) -> Result<BackgroundOutput, CommandError> {
        let entry = self.entry(input.id, owner)?;
        if let Some(running) = entry.running() {
            running.terminate_within(input.grace_ms.map_or(PATIENCE, Duration::from_millis));
        }
        loop {
            let changed = entry.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if entry.state().state != RUNNING {
                return Ok(entry.last(READ_BYTES));
            }
            changed.await;
        }
    }

    /// Ends all commands of `owner`, and does not wait for it. Their output is forgotten.
    pub fn end(&self, owner: &str) {
        let mut table = self.table();
        table.entries.retain(|_, entry| {
            let stays = entry.owner != owner;
            if let (false, Some(running)) = (stays, entry.running()) {
                running.terminate_within(PATIENCE);
            }
            stays
        });
    }

    /// Everybody's commands, each with its owner.
    pub fn all(&self) -> Vec<(String, BackgroundState)> {
        self.table().entries.values().map(|entry| (entry.owner.clone(), entry.state())).collect()
    }

    /// The commands of `owner`.
    pub fn list(&self, owner: &str) -> CommandList {
        let table = self.table();
        let own = table.entries.values().filter(|entry| entry.owner == owner);
        CommandList { commands: own.map(|entry| entry.state()).collect() }
    }
}

/// Writes down what a command prints, and how it ended.
async fn follow(
    entry: Weak<Entry>,
    running: Weak<Running>,
    events: Option<Events>,
    place: (Own, OwnedSemaphorePermit, Option<Box<dyn Any + Send + Sync>>),
) {
    let mut events = events;
    while let Some(event) = match &mut events {
        Some(events) => events.recv().await,
        None => None,
    } {
        let Some(entry) = entry.upgrade() else { return };
        if let Event::Chunk { bytes, .. } = event {
            entry.life().transcript.push(&bytes);
            entry.changed.notify_waiters();
        }
    }
    let (Some(entry), Some(running)) = (entry.upgrade(), running.upgrade()) else { return };
    let output = running.output();
    let mut life = entry.life();
    life.transcript.end();
    let (exit_code, signal) = output.as_deref().map_or((None, None), ending);
    life.ended = Some(Ended {
        state: output.as_deref().map_or("unknown", state_name),
        exit_code,
        signal,
        duration: output
            .map_or_else(|| entry.started.elapsed(), |output| output.to_exit.unwrap_or(output.elapsed)),
    });
    life.running = None;
    drop((life, place));
    entry.changed.notify_waiters();
}

impl Table {
    fn forget_the_oldest(&mut self, owner: &str) {
        let ended: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.owner == owner && entry.life().ended.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            self.entries.remove(id);
        }
    }
}

/// The state of a command that has not ended.
const RUNNING: &str = "running";

impl Entry {
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> Option<Arc<Running>> {
        self.life().running.clone()
    }

    fn state(&self) -> BackgroundState {
        self.state_of(&self.life())
    }

    fn state_of(&self, life: &Life) -> BackgroundState {
        let ended = life.ended.clone();
        BackgroundState {
            id: self.id,
            command: self.command.clone(),
            state: ended.as_ref().map_or(RUNNING, |ended| ended.state),
            duration_ms: millis(
                ended.as_ref().map_or_else(|| self.started.elapsed(), |ended| ended.duration),
            ),
            exit_code: ended.as_ref().and_then(|ended| ended.exit_code),
            signal: ended.and_then(|ended| ended.signal),
        }
    }

    fn read(&self, cursor: u64, max: usize) -> BackgroundOutput {
        let life = self.life();
        let part = life.transcript.read(cursor, max);
        BackgroundOutput {
            state: self.state_of(&life),
            output: part.text,
            next_cursor: part.next_cursor,
            lost_bytes: part.lost_bytes,
        }
    }

    fn last(&self, max: usize) -> BackgroundOutput {
        let from = self.life().transcript.last(max);
        self.read(from, max)
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
