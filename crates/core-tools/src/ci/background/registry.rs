//! The background commands of one server, by owner.

use super::observer::{BackgroundObserver, LeftoverEndNotice};
use super::process::{BackgroundCommand, CommandReadStart};
use super::quota::BackgroundQuota;
use super::report::{BackgroundOutput, BackgroundState, CommandList};
use super::request::{ReadCommandOutput, StopCommand, WriteCommandInput};
use super::wait::ReadinessWaitLimit;
use crate::ci::EgressLog;
use crate::ci::command::Commands;
use crate::ci::command_words::CommandText;
use crate::ci::error::CommandError;
use crate::ci::recorded_output::MaskedCommandOutput;
use crate::ci::report::{CapturedCommandOutput, CommandReport};
use process_runner::LeftoverTree;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The number of ended commands of one owner whose output can still be read; older ones are forgotten.
const MAX_ENDED_PER_OWNER: usize = 32;
/// The number of outputs of commands in the foreground that are kept for one owner, because they were cut.
const MAX_KEPT_PER_OWNER: usize = 4;
/// The bytes of such outputs that are kept for all owners together.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// The number of bytes that one read returns by default.
const DEFAULT_READ_BYTES: usize = 20_000;
/// The time that a read waits for output by default.
const DEFAULT_READ_WAIT: Duration = Duration::from_secs(1);
/// The time that a stopped command has to end by itself.
pub(super) const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// The background commands of one server.
///
/// Each belongs to an owner, and no other caller can reach it. Dropping the registry ends them all.
#[derive(Debug)]
pub struct BackgroundCommands {
    pub(super) commands: Commands,
    pub(super) quota: BackgroundQuota,
    pub(super) observer: BackgroundObserver,
    table: Mutex<BackgroundCommandTable>,
}

#[derive(Debug, Default)]
struct BackgroundCommandTable {
    last_id: u32,
    /// By id, which is the order of their start.
    processes: BTreeMap<u32, Arc<BackgroundCommand>>,
}

impl BackgroundCommands {
    /// Creates an empty registry; `commands` says in which folders and behind which confinement its commands run.
    pub fn new(commands: Commands) -> Self {
        let table = BackgroundCommandTable {
            last_id: commands.first_background_id.saturating_sub(1),
            ..BackgroundCommandTable::default()
        };
        Self {
            commands,
            quota: BackgroundQuota::new(),
            observer: BackgroundObserver::default(),
            table: Mutex::new(table),
        }
    }

    /// Calls `on_change` with the owner and the state of each command that starts or ends from now on. `on_change` must not
    /// block. Only the first function that is given is called.
    pub fn on_change(&self, on_change: impl Fn(&str, &BackgroundState) + Send + Sync + 'static) {
        self.observer.set(on_change);
    }

    fn table(&self) -> MutexGuard<'_, BackgroundCommandTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connections that were refused to a command since its start; see [`EgressLog::messages`].
    ///
    /// # Errors
    /// No command of this owner has this id.
    pub fn refused_connections(&self, id: u32, owner: &str) -> Result<Vec<String>, CommandError> {
        Ok(self.find(id, owner)?.egress_log.as_ref().map(EgressLog::messages).unwrap_or_default())
    }

    fn find(&self, id: u32, owner: &str) -> Result<Arc<BackgroundCommand>, CommandError> {
        // The lock is held until the end, so that the list of known ids is of the same moment as the miss.
        let table = self.table();
        // The answer for a command of another owner is the same as for a command that does not exist.
        match table.processes.get(&id).filter(|process| process.owner == owner) {
            Some(process) => Ok(Arc::clone(process)),
            None => {
                let known = table
                    .of_owner(owner)
                    .filter(|process| !process.is_kept_output)
                    .map(|process| process.id)
                    .collect();
                Err(CommandError::UnknownId { id, known })
            }
        }
    }

    /// Records a command that has started.
    pub(super) fn add(&self, new: impl FnOnce(u32) -> BackgroundCommand) -> Arc<BackgroundCommand> {
        let mut table = self.table();
        table.last_id = table.last_id.saturating_add(1);
        let process = Arc::new(new(table.last_id));
        table.processes.insert(process.id, Arc::clone(&process));
        // The table grows only here, so that here is the place to keep it bounded.
        table.forget_oldest_ended(&process.owner);
        process
    }

    /// Records the processes that a command of `owner` has left running. Together they count as one background command
    /// until they have ended.
    ///
    /// # Errors
    ///
    /// The owner has reached the limit of background commands.
    pub fn add_leftovers(&self, owner: &str, tree: &LeftoverTree) -> Result<(), CommandError> {
        // The tree gives the permit back when its last process has ended.
        tree.hold(self.quota.try_acquire(owner)?);
        let redactor = &self.commands.redactor;
        let process = self.add(|id| BackgroundCommand::left_running(id, owner, redactor, tree.clone()));
        self.observer.changed(&process);
        let observer = self.observer.clone();
        tree.hold(LeftoverEndNotice { observer, process: Arc::downgrade(&process) });
        Ok(())
    }

    /// Keeps the output of a command that ran in the foreground, if some of it was left out of `report`, and says there how
    /// it is read.
    pub fn keep_output(&self, owner: &str, command: &CommandText, report: &mut CommandReport) {
        let Some(CapturedCommandOutput { text, cut_at }) = report.take_full_output() else { return };
        let line = self.commands.display_line(command);
        let output = MaskedCommandOutput::of_masked(&self.commands.redactor, &text);
        let kept = self.add(|id| BackgroundCommand::ended(id, owner, line, report, output));
        // Kept outputs have a limit of their own: a few large ones must not push out the ended commands.
        self.table().forget_oldest_kept(owner);
        report.notes.push(format!(
            "what is left out is kept for a while: read_command_output {{\"id\": {}, \"cursor\": {cut_at}}} begins there",
            kept.id
        ));
    }

    /// Reads output from a cursor on, or what is new since the last read. Waits as long as the request says until there
    /// is some, the command has ended, or the call is cancelled.
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
        let wait = input.wait_ms.map_or(DEFAULT_READ_WAIT, Duration::from_millis);
        let limit = ReadinessWaitLimit::new(wait, cancel);
        let from = input.cursor.map_or(CommandReadStart::LastRead, CommandReadStart::Cursor);
        match input.wait_for_exit {
            Some(true) => process.wait_for_end(limit).await,
            _ => process.wait_for_output(from, limit).await,
        }
        Ok(process.read(from, input.max_bytes.unwrap_or(DEFAULT_READ_BYTES)))
    }

    /// Writes to the standard input of a command, and returns a sentence that says how much was written. If the request
    /// says so, waits for what the command prints then, and returns that too.
    ///
    /// # Errors
    ///
    /// `owner` has no such command, or it did not take everything; the error says how much it took.
    pub async fn write(
        &self,
        input: &WriteCommandInput,
        owner: &str,
        cancel: &CancellationToken,
    ) -> Result<String, CommandError> {
        let process = self.find(input.id, owner)?;
        let text = input.text.as_deref().unwrap_or_default();
        let close = input.close == Some(true);
        // The state is taken before the write, because the reply may come before the write returns.
        let seen = process.changes();
        let written = process.write_input(text, close).await.map_err(|(written, source)| {
            CommandError::InputNotTaken { id: input.id, written, remaining: text.len() - written, source }
        })?;
        let mut answer =
            format!("wrote {written} bytes{}", if close { " and closed standard input" } else { "" });
        if let Some(wait) = input.wait_ms.filter(|wait| *wait > 0) {
            let limit = ReadinessWaitLimit::new(Duration::from_millis(wait), cancel);
            // What was printed before is no reply.
            process.wait_until(limit, |process| process.changes() != seen).await;
            process.settle(limit).await;
            let output = process.read(CommandReadStart::LastRead, DEFAULT_READ_BYTES);
            answer = format!("{answer}; {}", output.to_text());
        }
        Ok(answer)
    }

    /// Ends a command and everything it started, and returns the end of its output.
    ///
    /// # Errors
    ///
    /// `owner` has no such command.
    pub async fn stop(&self, input: &StopCommand, owner: &str) -> Result<BackgroundOutput, CommandError> {
        let process = self.find(input.id, owner)?;
        process.stop(input.grace_ms.map_or(DEFAULT_GRACE, Duration::from_millis)).await;
        Ok(process.read_end(DEFAULT_READ_BYTES))
    }

    /// Ends all commands of `owner` without waiting for their end, and forgets their output.
    pub fn stop_all(&self, owner: &str) {
        self.table().processes.retain(|_, process| {
            let is_kept = process.owner != owner;
            if !is_kept {
                // The end is not awaited: the lock of the table is held, and the caller is gone.
                process.begin_end(DEFAULT_GRACE);
            }
            is_kept
        });
    }

    /// Returns the commands of all owners, each with its owner.
    pub fn all(&self) -> Vec<(String, BackgroundState)> {
        let table = self.table();
        let processes = table.processes.values().filter(|process| self.lists(process));
        processes.map(|process| (process.owner.clone(), process.state())).collect()
    }

    /// Returns the commands of `owner`.
    pub fn list(&self, owner: &str) -> CommandList {
        let table = self.table();
        let processes = table.of_owner(owner).filter(|process| self.lists(process));
        CommandList { commands: processes.map(|process| process.state()).collect() }
    }

    /// Returns true if the command is in lists, with what is known of it now.
    fn lists(&self, process: &BackgroundCommand) -> bool {
        process.note_leftovers(&self.commands.redactor);
        process.is_listed()
    }
}

impl BackgroundCommandTable {
    fn of_owner(&self, owner: &str) -> impl Iterator<Item = &Arc<BackgroundCommand>> {
        self.processes.values().filter(move |process| process.owner == owner)
    }

    fn forget_oldest_ended(&mut self, owner: &str) {
        self.forget_oldest(owner, MAX_ENDED_PER_OWNER, |process| {
            process.has_ended() && !process.is_kept_output
        });
    }

    fn forget_oldest_kept(&mut self, owner: &str) {
        self.forget_oldest(owner, MAX_KEPT_PER_OWNER, |process| process.is_kept_output);
        let kept = self.processes.values().filter(|process| process.is_kept_output);
        let sizes: Vec<_> = kept.map(|process| (process.id, process.kept_bytes())).collect();
        let mut total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        for (id, bytes) in sizes {
            if total <= MAX_KEPT_BYTES {
                break;
            }
            self.processes.remove(&id);
            total -= bytes;
        }
    }

    /// Forgets all but the last `max` commands of `owner` that are `counted`.
    fn forget_oldest(&mut self, owner: &str, max: usize, counted: impl Fn(&BackgroundCommand) -> bool) {
        let ids: Vec<_> =
            self.of_owner(owner).filter(|process| counted(process)).map(|process| process.id).collect();
        for id in ids.iter().take(ids.len().saturating_sub(max)) {
            self.processes.remove(id);
        }
    }
}
