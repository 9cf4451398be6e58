//! One background command: its transcript, and how it ended.

use super::report::{BackgroundOutput, BackgroundState, BackgroundStatus};
use crate::ci::EgressLog;
use crate::ci::error::StdinError;
use crate::ci::exit::ExitDetails;
use crate::ci::recorded_output::MaskedCommandOutput;
use crate::ci::report::{CommandOutcome, CommandReport};
use crate::ci::screen_emulation::ScreenEmulation;
use crate::ci::terminal::typed;
use crate::ci::timeout::as_millis;
use crate::redact::Redactor;
use process_runner::{EventReceiver, LeftoverProcess, LeftoverTree, RunEvent, Running, TerminalSize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The time that a command has to take a piece of its input.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// The size of a piece of input. A pipe takes so much in one piece or not at all (`PIPE_BUF`, pipe(7)), so the
/// number of bytes that the command took is known exactly.
const INPUT_PIECE_BYTES: usize = 4096;

/// A background command that runs or has run.
#[derive(Debug)]
pub(super) struct BackgroundCommand {
    pub(super) id: u32,
    pub(super) owner: String,
    pub(super) pid: u32,
    /// True if it has a terminal.
    pub(super) is_terminal: bool,
    /// True if it ran in the foreground, and its output was cut.
    pub(super) is_kept_output: bool,
    /// The processes, if it is what another command has left running.
    leftovers: Option<LeftoverTree>,
    /// The command line, masked and shortened. Of what another command has left running, what is known of it is in the
    /// progress.
    command: String,
    started: Instant,
    /// The connections that were refused to it, and to others of the same hosts at the same time.
    pub(super) egress_log: Option<EgressLog>,
    /// True once the command is to end: what it has printed and nobody has drawn need not be drawn any more.
    is_stopping: AtomicBool,
    /// Wakes the readers when output came or the command ended.
    pub(super) changed: Notify,
    progress: Mutex<LockedCommandState>,
}

/// The process of a background command, its end and its output, under the lock of the command.
#[derive(Debug)]
struct LockedCommandState {
    /// `None` once the command has ended: with it go its pipes.
    running: Option<Arc<Running>>,
    ended: Option<BackgroundCommandEnd>,
    /// The processes that another command has left running, once they are known.
    left_running: Option<String>,
    output: MaskedCommandOutput,
    /// The position after the last line that was read.
    read_lines: u64,
    /// The count of changes at the last read.
    read_changes: u64,
}

/// The place where a read begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum CommandReadStart {
    /// A cursor that an earlier read gave out.
    Cursor(u64),
    /// The end of the last read.
    LastRead,
}

#[derive(Clone, Debug)]
struct BackgroundCommandEnd {
    status: BackgroundStatus,
    exit: ExitDetails,
    duration: Duration,
}

impl BackgroundCommand {
    /// Creates the record of a command that has just started.
    pub(super) fn new(
        id: u32,
        owner: &str,
        command: String,
        running: Arc<Running>,
        output: MaskedCommandOutput,
        egress_log: Option<EgressLog>,
    ) -> Self {
        Self {
            id,
            owner: owner.to_owned(),
            pid: running.pid().unwrap_or_default(),
            is_terminal: output.screen().is_some(),
            is_kept_output: false,
            leftovers: None,
            command,
            started: Instant::now(),
            egress_log,
            is_stopping: AtomicBool::new(false),
            changed: Notify::new(),
            progress: Mutex::new(LockedCommandState {
                running: Some(running),
                ended: None,
                left_running: None,
                output,
                read_lines: 0,
                read_changes: 0,
            }),
        }
    }

    fn progress(&self) -> MutexGuard<'_, LockedCommandState> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the running program, or `None` once it has ended.
    pub(super) fn running(&self) -> Option<Arc<Running>> {
        self.progress().running.clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        let mut progress = self.progress();
        self.note_end_of_leftovers(&mut progress);
        progress.ended.is_some()
    }

    /// Records the end of what another command has left running. It had no output of its own, and nobody heard how it
    /// ended.
    fn note_end_of_leftovers(&self, progress: &mut LockedCommandState) {
        if progress.ended.is_none() && self.leftovers.as_ref().is_some_and(LeftoverTree::has_ended) {
            progress.ended = Some(self.end_of_leftovers(BackgroundStatus::Unknown));
        }
    }

    /// Records the end of what another command has left running, once its last process has ended.
    pub(super) fn on_leftovers_ended(&self) {
        let status = match self.is_stopping.load(Ordering::Relaxed) {
            true => BackgroundStatus::Stopped,
            false => BackgroundStatus::Unknown,
        };
        let mut progress = self.progress();
        if progress.ended.is_none() {
            progress.ended = Some(self.end_of_leftovers(status));
        }
    }

    fn end_of_leftovers(&self, status: BackgroundStatus) -> BackgroundCommandEnd {
        BackgroundCommandEnd { status, exit: ExitDetails::default(), duration: self.started.elapsed() }
    }

    /// Records what is known of the processes that another command has left running.
    pub(super) fn note_leftovers(&self, redactor: &Redactor) {
        let Some(tree) = &self.leftovers else { return };
        let processes = tree.processes();
        if processes.is_empty() {
            return;
        }
        let line_of = |process: &LeftoverProcess| {
            let line = process.command_line.as_deref().unwrap_or(&process.name);
            format!("{} (pid {})", shortened(&redactor.redact(line)), process.pid)
        };
        let lines: Vec<String> = processes.iter().map(line_of).collect();
        self.progress().left_running = Some(format!("{}, {}", lines.join(", "), self.command));
    }

    /// Returns true if it is in lists. A tree that may be one that another command has left running is not, before a process
    /// of it was found: it could not be decided in time whose process another one was.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_kept_output && (self.leftovers.is_none() || self.progress().left_running.is_some())
    }

    pub(super) fn state(&self) -> BackgroundState {
        let mut progress = self.progress();
        self.note_end_of_leftovers(&mut progress);
        self.state_of(&progress)
    }

    fn state_of(&self, progress: &LockedCommandState) -> BackgroundState {
        let (status, exit, duration) = match progress.ended.clone() {
            Some(BackgroundCommandEnd { status, exit, duration }) => (status, exit, duration),
            None => (BackgroundStatus::Running, ExitDetails::default(), self.started.elapsed()),
        };
        BackgroundState {
            id: self.id,
            command: progress.left_running.clone().unwrap_or_else(|| self.command.clone()),
            state: status,
            exit_code: exit.code,
            signal: exit.signal,
            duration_ms: as_millis(duration),
        }
    }

    /// Returns at most `max_bytes` of output from `from` on, and the state at the same moment. What it returns counts as
    /// read.
    pub(super) fn read(&self, from: CommandReadStart, max_bytes: usize) -> BackgroundOutput {
        // Output and state under one lock: a command that ends in between would look finished with output missing.
        let mut progress = self.progress();
        let part = match from {
            CommandReadStart::Cursor(cursor) => progress.output.lines.read(cursor, max_bytes),
            // A prompt that was read already is not new.
            CommandReadStart::LastRead if progress.read_changes == progress.output.changes() => {
                progress.output.lines.read_lines(progress.read_lines, max_bytes)
            }
            CommandReadStart::LastRead => progress.output.lines.read(progress.read_lines, max_bytes),
        };
        progress.read_lines = progress.read_lines.max(part.next_cursor);
        progress.read_changes = progress.output.changes();
        BackgroundOutput {
            state: self.state_of(&progress),
            output: part.text,
            next_cursor: part.next_cursor,
            remaining_bytes: progress.output.lines.end().saturating_sub(part.next_cursor),
            lost_bytes: part.lost_bytes,
            screen: progress.output.screen(),
        }
    }

    /// Returns the last `max_bytes` of output.
    pub(super) fn read_end(&self, max_bytes: usize) -> BackgroundOutput {
        let cursor = self.progress().output.lines.start_of_last(max_bytes);
        self.read(CommandReadStart::Cursor(cursor), max_bytes)
    }

    /// Returns true if a read from `from` on has anything to return that an earlier one had not.
    pub(super) fn has_news(&self, from: CommandReadStart) -> bool {
        let progress = self.progress();
        let lines = &progress.output.lines;
        let changed = progress.output.changes() != progress.read_changes;
        match from {
            _ if self.is_terminal && changed => true,
            CommandReadStart::Cursor(cursor) => lines.end() > cursor || lines.has_open_line(),
            CommandReadStart::LastRead => {
                lines.end() > progress.read_lines || changed && lines.has_open_line()
            }
        }
    }

    /// Creates the record of a command that has ended, whose output was cut in its answer.
    pub(super) fn ended(
        id: u32,
        owner: &str,
        command: String,
        report: &CommandReport,
        output: MaskedCommandOutput,
    ) -> Self {
        let status = match report.outcome {
            CommandOutcome::Exited => BackgroundStatus::Exited,
            CommandOutcome::Signaled => BackgroundStatus::Signaled,
            CommandOutcome::TimedOut => BackgroundStatus::TimedOut,
            CommandOutcome::Cancelled => BackgroundStatus::Stopped,
            CommandOutcome::Unkillable => BackgroundStatus::Unkillable,
            CommandOutcome::Unknown => BackgroundStatus::Unknown,
        };
        let exit = ExitDetails { code: report.exit_code, signal: report.signal.clone() };
        let duration = Duration::from_millis(report.duration_ms);
        Self {
            id,
            owner: owner.to_owned(),
            pid: 0,
            is_terminal: false,
            is_kept_output: true,
            leftovers: None,
            command,
            started: Instant::now(),
            egress_log: None,
            is_stopping: AtomicBool::new(false),
            changed: Notify::new(),
            progress: Mutex::new(LockedCommandState {
                running: None,
                ended: Some(BackgroundCommandEnd { status, exit, duration }),
                left_running: None,
                output,
                read_lines: 0,
                read_changes: 0,
            }),
        }
    }

    /// Creates the record of what a command has left running.
    pub(super) fn left_running(id: u32, owner: &str, redactor: &Redactor, tree: LeftoverTree) -> Self {
        let command = format!("left running by {}", shortened(&redactor.redact(tree.label())));
        let left = Self {
            id,
            owner: owner.to_owned(),
            pid: tree.processes().first().map_or(0, |process| process.pid),
            is_terminal: false,
            is_kept_output: false,
            command,
            started: tree.started(),
            leftovers: Some(tree),
            // The connections of the command were told in its answer.
            egress_log: None,
            is_stopping: AtomicBool::new(false),
            changed: Notify::new(),
            progress: Mutex::new(LockedCommandState {
                running: None,
                ended: None,
                left_running: None,
                output: MaskedCommandOutput::of_masked(redactor, ""),
                read_lines: 0,
                read_changes: 0,
            }),
        };
        left.note_leftovers(redactor);
        left
    }

    /// Writes to standard input, or types into the terminal. Returns the number of bytes that were taken; an error has it
    /// too.
    pub(super) async fn write_input(&self, text: &str, close: bool) -> Result<usize, (usize, StdinError)> {
        let running = self.running().ok_or((0, StdinError::Ended))?;
        let typed = if self.is_terminal { typed(text) } else { text.to_owned() };
        let mut written = 0;
        for piece in typed.as_bytes().chunks(INPUT_PIECE_BYTES) {
            // A program that does not read fills its pipe; without a limit this would wait for ever.
            match tokio::time::timeout(WRITE_TIMEOUT, running.write_stdin(piece)).await {
                Ok(Ok(())) => written += piece.len(),
                Ok(Err(error)) => return Err((written.min(text.len()), error.into())),
                Err(_) => return Err((written.min(text.len()), StdinError::PipeFull)),
            }
        }
        match (close, self.is_terminal) {
            (false, _) => {}
            (true, false) => running.close_stdin().await,
            // A terminal is not closed: Ctrl-D ends the input of who reads it now.
            (true, true) => {
                let _ = tokio::time::timeout(WRITE_TIMEOUT, running.write_stdin(b"\x04")).await;
            }
        }
        Ok(text.len())
    }

    /// Ends the command and everything it started, without waiting for the end.
    pub(super) fn begin_end(&self, grace: Duration) {
        if let Some(running) = self.running() {
            running.terminate_within(grace);
        }
        if let Some(tree) = &self.leftovers {
            tree.kill();
        }
    }

    /// Ends the command and everything it started, and waits for the end.
    pub(super) async fn stop(&self, grace: Duration) {
        if let Some(tree) = self.leftovers.as_ref().filter(|_| !self.has_ended()) {
            self.is_stopping.store(true, Ordering::Relaxed);
            let status = match tree.end(grace).await.is_empty() {
                true => BackgroundStatus::Stopped,
                false => BackgroundStatus::Unkillable,
            };
            let end = self.end_of_leftovers(status);
            self.progress().ended = Some(end);
            self.changed.notify_waiters();
            return;
        }
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(running) = self.running() {
            running.terminate_within(grace);
        }
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Registered before the look: a change between look and wait would be missed otherwise.
            changed.as_mut().enable();
            if self.has_ended() {
                return;
            }
            changed.await;
        }
    }

    /// Returns the length of the output of a command that has ended.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.progress().output.lines.end()
    }

    /// Returns the number of times that there was output.
    pub(super) fn changes(&self) -> u64 {
        self.progress().output.changes()
    }

    /// Returns true if `text` was printed.
    pub(super) fn has_printed(&self, text: &str) -> bool {
        self.progress().output.contains_since(0, text)
    }
}

impl Drop for BackgroundCommand {
    /// Ends what another command has left running: nobody could end it later. A command of our own ends with its handle.
    fn drop(&mut self) {
        if let Some(tree) = &self.leftovers {
            tree.kill();
        }
    }
}

/// The most characters that are shown of a command line.
const MAX_SHOWN_CHARS: usize = 200;

fn shortened(line: &str) -> String {
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// The time that a program has to read what its terminal answers it.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);

/// Records what a command prints, and how it ended. `permits` are dropped when it has ended, and then `on_end` is called.
/// `terminal` is the size of its terminal, if it has one.
///
/// The handles are weak: the command ends when the registry that owns them is dropped, and this task with it.
pub(super) async fn record(
    process: Weak<BackgroundCommand>,
    running: Weak<Running>,
    events: Option<EventReceiver>,
    permits: impl Send,
    terminal: Option<TerminalSize>,
    on_end: impl FnOnce(&BackgroundCommand) + Send,
) {
    let mut events = events;
    let mut emulation = terminal.map(ScreenEmulation::new);
    while let Some(event) = match &mut events {
        Some(events) => events.recv().await,
        None => None,
    } {
        let RunEvent::Chunk { bytes, .. } = event else { continue };
        // Upgraded for each piece only: a handle that is held while waiting would keep the command alive.
        let Some(emulation) = &mut emulation else {
            let Some(process) = process.upgrade() else { return };
            process.progress().output.push(&bytes);
            process.changed.notify_waiters();
            continue;
        };
        let mut rest = bytes.as_slice();
        while let Some(piece) = emulation.next_piece(&mut rest) {
            // A flood that waits to be drawn would delay the end by many seconds.
            let is_stopping =
                process.upgrade().is_none_or(|process| process.is_stopping.load(Ordering::Relaxed));
            if is_stopping && emulation.has_had_its_share() {
                break;
            }
            let mut drawn = emulation.draw(piece).await;
            let Some(process) = process.upgrade() else { return };
            let replies = std::mem::take(&mut drawn.replies);
            process.progress().output.show(drawn);
            process.changed.notify_waiters();
            drop(process);
            if let Some(running) = running.upgrade().filter(|_| !replies.is_empty()) {
                let _ = tokio::time::timeout(REPLY_TIMEOUT, running.write_stdin(&replies)).await;
            }
        }
    }
    let (Some(process), Some(running)) = (process.upgrade(), running.upgrade()) else { return };
    let output = running.output();
    let mut progress = process.progress();
    progress.output.finish();
    progress.ended = Some(match output.as_deref() {
        Some(output) => BackgroundCommandEnd {
            status: BackgroundStatus::from(&output.termination),
            exit: ExitDetails::from(output),
            duration: output.to_exit.unwrap_or(output.elapsed),
        },
        None => BackgroundCommandEnd {
            status: BackgroundStatus::Unknown,
            exit: ExitDetails::default(),
            duration: process.started.elapsed(),
        },
    });
    progress.running = None;
    // A caller that waits for the end may start the next command at once, so the permit has to be free by then.
    drop((progress, permits));
    process.changed.notify_waiters();
    on_end(&process);
}
