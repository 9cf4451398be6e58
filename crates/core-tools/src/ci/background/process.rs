//! One background command: its transcript, and how it ended.

use super::report::{BackgroundOutput, BackgroundState, BackgroundStatus};
use super::transcript::Transcript;
use crate::ci::exit::ExitDetails;
use crate::ci::timeout::as_millis;
use process_runner::{EventReceiver, RunEvent, Running};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A background command that runs or has run.
#[derive(Debug)]
pub(super) struct BackgroundCommand {
    pub(super) id: u32,
    pub(super) owner: String,
    /// The command line, masked and shortened.
    command: String,
    started: Instant,
    /// Wakes the readers when output came or the command ended.
    pub(super) changed: Notify,
    progress: Mutex<LockedCommandState>,
}

/// The process of a background command, its end and its transcript, under the lock of the command.
#[derive(Debug)]
struct LockedCommandState {
    /// `None` once the command has ended: with it go its pipes.
    running: Option<Arc<Running>>,
    ended: Option<CommandEnd>,
    transcript: Transcript,
}

#[derive(Clone, Debug)]
struct CommandEnd {
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
        transcript: Transcript,
    ) -> Self {
        Self {
            id,
            owner: owner.to_owned(),
            command,
            started: Instant::now(),
            changed: Notify::new(),
            progress: Mutex::new(LockedCommandState { running: Some(running), ended: None, transcript }),
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
        self.progress().ended.is_some()
    }

    pub(super) fn state(&self) -> BackgroundState {
        self.state_of(&self.progress())
    }

    fn state_of(&self, progress: &LockedCommandState) -> BackgroundState {
        let (status, exit, duration) = match progress.ended.clone() {
            Some(CommandEnd { status, exit, duration }) => (status, exit, duration),
            None => (BackgroundStatus::Running, ExitDetails::default(), self.started.elapsed()),
        };
        BackgroundState {
            id: self.id,
            command: self.command.clone(),
            state: status,
            exit_code: exit.code,
            signal: exit.signal,
            duration_ms: as_millis(duration),
        }
    }

    /// Returns at most `max_bytes` of output from `cursor` on, and the state at the same moment.
    pub(super) fn read(&self, cursor: u64, max_bytes: usize) -> BackgroundOutput {
        // Output and state under one lock: a command that ends in between would look finished with output missing.
        let progress = self.progress();
        let part = progress.transcript.read(cursor, max_bytes);
        BackgroundOutput {
            state: self.state_of(&progress),
            output: part.text,
            next_cursor: part.next_cursor,
            lost_bytes: part.lost_bytes,
        }
    }

    /// Returns the last `max_bytes` of output.
    pub(super) fn read_end(&self, max_bytes: usize) -> BackgroundOutput {
        let cursor = self.progress().transcript.start_of_last(max_bytes);
        self.read(cursor, max_bytes)
    }
}

/// Records what a command prints, and how it ended. `permits` are dropped when it has ended.
///
/// The handles are weak: the command ends when the registry that owns them is dropped, and this task with it.
pub(super) async fn record(
    process: Weak<BackgroundCommand>,
    running: Weak<Running>,
    events: Option<EventReceiver>,
    permits: impl Send,
) {
    let mut events = events;
    while let Some(event) = match &mut events {
        Some(events) => events.recv().await,
        None => None,
    } {
        // Upgraded for each event only: a handle that is held while waiting would keep the command alive.
        let Some(process) = process.upgrade() else { return };
        if let RunEvent::Chunk { bytes, .. } = event {
            process.progress().transcript.push(&bytes);
            process.changed.notify_waiters();
        }
    }
    let (Some(process), Some(running)) = (process.upgrade(), running.upgrade()) else { return };
    let output = running.output();
    let mut progress = process.progress();
    progress.transcript.finish();
    progress.ended = Some(match output.as_deref() {
        Some(output) => CommandEnd {
            status: BackgroundStatus::from(&output.termination),
            exit: ExitDetails::from(output),
            duration: output.to_exit.unwrap_or(output.elapsed),
        },
        None => CommandEnd {
            status: BackgroundStatus::Unknown,
            exit: ExitDetails::default(),
            duration: process.started.elapsed(),
        },
    });
    progress.running = None;
    // A caller that waits for the end may start the next command at once, so the permit has to be free by then.
    drop((progress, permits));
    process.changed.notify_waiters();
}
