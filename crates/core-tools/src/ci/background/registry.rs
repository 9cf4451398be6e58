//! The background commands of one server, by owner.

use super::process::{BackgroundCommand, record};
use super::quota::BackgroundQuota;
use super::report::{BackgroundOutput, BackgroundState, BackgroundStatus, CommandList, StartedCommand};
use super::request::{ReadCommandOutput, StartCommand, StopCommand, WriteCommandInput};
use super::transcript::Transcript;
use crate::ci::command::Commands;
use crate::ci::confinement::CommandScope;
use crate::ci::error::{CommandError, StdinError};
use process_runner::{EventGranularity, EventOptions, LagPolicy, Limits, Stdin};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The number of ended commands of one owner whose output can still be read; older ones are forgotten.
const MAX_ENDED_PER_OWNER: usize = 32;
/// The number of bytes that one read returns by default.
const DEFAULT_READ_BYTES: usize = 20_000;
/// The time that a stopped command has to end by itself.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);
/// The time that a command has to take a piece of its input.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The size of a piece of input. A pipe takes so much in one piece or not at all (`PIPE_BUF`, pipe(7)), so the
/// number of bytes that the command took is known exactly.
const INPUT_PIECE_BYTES: usize = 4096;

/// The background commands of one server.
///
/// Each belongs to an owner, and no other caller can reach it. Dropping the registry ends them all.
#[derive(Debug)]
pub struct BackgroundCommands {
    commands: Commands,
    quota: BackgroundQuota,
    table: Mutex<CommandTable>,
}

#[derive(Debug, Default)]
struct CommandTable {
    last_id: u32,
    /// By id, which is the order of their start.
    processes: BTreeMap<u32, Arc<BackgroundCommand>>,
}

impl BackgroundCommands {
    /// Creates an empty registry; `commands` says in which folders and behind which confinement its commands run.
    pub fn new(commands: Commands) -> Self {
        Self { commands, quota: BackgroundQuota::new(), table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, CommandTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u32, owner: &str) -> Result<Arc<BackgroundCommand>, CommandError> {
        let table = self.table();
        match table.processes.get(&id).filter(|process| process.owner == owner) {
            Some(process) => Ok(Arc::clone(process)),
            None => {
                let known = table.of_owner(owner).map(|process| process.id).collect();
                Err(CommandError::UnknownId { id, known })
            }
        }
    }

    /// Starts a command. It ends when it is stopped, at its own time limit, or with the registry.
    ///
    /// # Errors
    ///
    /// The command was refused or did not start, or 32 of the owner's are running.
    pub async fn start(&self, input: &StartCommand, owner: &str) -> Result<StartedCommand, CommandError> {
        self.start_within(input, owner, &CommandScope::default(), None).await
    }

    /// Starts a command for a caller whose commands may reach less. `permit` is dropped when the command ends.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn start_within(
        &self,
        input: &StartCommand,
        owner: &str,
        scope: &CommandScope,
        permit: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<StartedCommand, CommandError> {
        // Before the start, so that a command over the limit never runs.
        let quota_permit = self.quota.try_acquire(owner)?;
        let prepared = self.commands.narrowed(scope).prepare(
            &input.command,
            input.working_directory.as_deref(),
            input.env.as_ref(),
        )?;
        // The transcript keeps the output; the runner need not keep it too.
        let mut limits = Limits::default().capture(INPUT_PIECE_BYTES);
        limits.timeout = input.timeout_ms.map(Duration::from_millis);
        let mut options = EventOptions::default();
        // `Block`: if the transcript falls behind, the program waits. A dropped chunk would be a hole in its lines.
        options = options.granularity(EventGranularity::Chunk).lag(LagPolicy::Block);
        // One pipe for both streams keeps the order in which they were written.
        let command = prepared.command.limits(limits).merge_stderr().stdin(Stdin::Piped).events(options);
        let mut running = self.commands.runner.start(command).await?;
        let events = running.events();
        let running = Arc::new(running);
        let pid = running.pid().unwrap_or_default();
        let process = {
            let mut table = self.table();
            table.last_id += 1;
            let process = Arc::new(BackgroundCommand::new(
                table.last_id,
                owner,
                self.commands.display_line(&input.command),
                Arc::clone(&running),
                Transcript::new(self.commands.redactor.lines()),
            ));
            table.processes.insert(process.id, Arc::clone(&process));
            table.forget_oldest_ended(owner);
            process
        };
        let started = StartedCommand { id: process.id, pid };
        let permits = (quota_permit, permit);
        tokio::spawn(record(Arc::downgrade(&process), Arc::downgrade(&running), events, permits));
        Ok(started)
    }

    /// Reads output from a cursor on. If the request says so, waits until there is some, the command has ended,
    /// or the call is cancelled.
    ///
    /// # Errors
    ///
    /// `owner` has no such command.
    pub async fn read(
        &self,
        input: &ReadCommandOutput,
        owner: &str,
        cancel: &CancellationToken,
    ) -> Result<BackgroundOutput, CommandError> {
        let process = self.find(input.id, owner)?;
        let deadline = tokio::time::Instant::now() + Duration::from_millis(input.wait_ms.unwrap_or(0));
        let (cursor, max_bytes) = (input.cursor.unwrap_or(0), input.max_bytes.unwrap_or(DEFAULT_READ_BYTES));
        loop {
            let changed = process.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the look: a change between look and wait would be missed otherwise.
            changed.as_mut().enable();
            let output = process.read(cursor, max_bytes);
            if output.state.state != BackgroundStatus::Running || !output.output.is_empty() {
                return Ok(output);
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(deadline) => return Ok(output),
                () = cancel.cancelled() => return Ok(output),
            }
        }
    }

    /// Writes to the standard input of a command, and returns a sentence that says how much was written.
    ///
    /// # Errors
    ///
    /// `owner` has no such command, or it did not take everything; the error says how much it took.
    pub async fn write(&self, input: &WriteCommandInput, owner: &str) -> Result<String, CommandError> {
        let process = self.find(input.id, owner)?;
        let text = input.text.as_deref().unwrap_or_default().as_bytes();
        let mut written = 0;
        let not_taken = |written: usize, source: StdinError| CommandError::InputNotTaken {
            id: input.id,
            written,
            remaining: text.len() - written,
            source,
        };
        let running = process.running().ok_or_else(|| not_taken(0, StdinError::Ended))?;
        for piece in text.chunks(INPUT_PIECE_BYTES) {
            // A program that does not read fills its pipe; without a limit this would wait for ever.
            match tokio::time::timeout(WRITE_TIMEOUT, running.write_stdin(piece)).await {
                Ok(Ok(())) => written += piece.len(),
                Ok(Err(error)) => return Err(not_taken(written, error.into())),
                Err(_) => return Err(not_taken(written, StdinError::PipeFull)),
            }
        }
        let close = input.close == Some(true);
        if close {
            running.close_stdin().await;
        }
        Ok(format!("wrote {written} bytes{}", if close { " and closed standard input" } else { "" }))
    }

    /// Ends a command and everything it started, and returns the end of its output.
    ///
    /// # Errors
    ///
    /// `owner` has no such command.
    pub async fn stop(&self, input: &StopCommand, owner: &str) -> Result<BackgroundOutput, CommandError> {
        let process = self.find(input.id, owner)?;
        if let Some(running) = process.running() {
            running.terminate_within(input.grace_ms.map_or(DEFAULT_GRACE, Duration::from_millis));
        }
        loop {
            let changed = process.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the look, as in `read`.
            changed.as_mut().enable();
            if process.has_ended() {
                return Ok(process.read_end(DEFAULT_READ_BYTES));
            }
            changed.await;
        }
    }

    /// Ends all commands of `owner` without waiting for their end, and forgets their output.
    pub fn stop_all(&self, owner: &str) {
        self.table().processes.retain(|_, process| {
            let is_kept = process.owner != owner;
            if let (false, Some(running)) = (is_kept, process.running()) {
                running.terminate_within(DEFAULT_GRACE);
            }
            is_kept
        });
    }

    /// Returns the commands of all owners, each with its owner.
    pub fn all(&self) -> Vec<(String, BackgroundState)> {
        let table = self.table();
        table.processes.values().map(|process| (process.owner.clone(), process.state())).collect()
    }

    /// Returns the commands of `owner`.
    pub fn list(&self, owner: &str) -> CommandList {
        CommandList { commands: self.table().of_owner(owner).map(|process| process.state()).collect() }
    }
}

impl CommandTable {
    fn of_owner(&self, owner: &str) -> impl Iterator<Item = &Arc<BackgroundCommand>> {
        self.processes.values().filter(move |process| process.owner == owner)
    }

    fn forget_oldest_ended(&mut self, owner: &str) {
        let ended: Vec<_> =
            self.of_owner(owner).filter(|process| process.has_ended()).map(|process| process.id).collect();
        for id in ended.iter().take(ended.len().saturating_sub(MAX_ENDED_PER_OWNER)) {
            self.processes.remove(id);
        }
    }
}
