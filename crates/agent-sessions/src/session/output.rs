//! The output of a session: its log, and the last lines as the agent printed them.

use crate::log::{PROCESS_START_MARK, RotatingSessionLog, last_printed};
use crate::supervisor_context::{SESSION_LOG_NAME, SupervisorContext};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The number of last lines by which the cause of a stop is judged.
const TAIL_LINES: usize = 100;

/// The output of a session. The recorder writes it; the actor and readers of the log read it.
#[derive(Debug)]
pub(crate) struct SessionOutput {
    log: Mutex<RotatingSessionLog>,
    /// The last lines without redaction. They never leave this process.
    tail: Mutex<VecDeque<String>>,
    written: Notify,
}

impl SessionOutput {
    /// Opens the log of a session whose folder exists, and reads the last lines of its last process.
    pub(crate) fn open(context: &SupervisorContext, id: &str) -> io::Result<Arc<Self>> {
        let log = context.open_session_log(id)?;
        let folder = context.lock.folder().existing(id)?;
        let tail = last_printed(folder.path(), SESSION_LOG_NAME, TAIL_LINES);
        Ok(Arc::new(Self { log: Mutex::new(log), tail: Mutex::new(tail.into()), written: Notify::new() }))
    }

    /// Begins the output of another process. The cause of its stop is not judged by what earlier ones printed.
    pub(super) fn begin_process(&self) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.log.lock().unwrap_or_else(PoisonError::into_inner).write(None, PROCESS_START_MARK);
    }

    /// Appends lines: masked ones to the log, and the same as they were printed to the tail.
    pub(super) fn append(&self, masked: &[String], printed: Vec<String>) {
        {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            // One write for all lines, as each costs a system call. A blank keeps an empty line from being dropped.
            let lines = masked.iter().map(|line| if line.is_empty() { " " } else { line });
            log.write(None, &lines.collect::<Vec<_>>().join("\n"));
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(printed);
        let excess = tail.len().saturating_sub(TAIL_LINES);
        tail.drain(..excess);
    }

    /// Wakes the readers who follow the log.
    pub(super) fn notify_readers(&self) {
        self.written.notify_waiters();
    }

    /// Returns the notification of further lines.
    pub(crate) fn written(&self) -> &Notify {
        &self.written
    }

    /// Returns the error that lasts in the log, if lines are being lost.
    pub(super) fn last_error(&self) -> Option<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).last_error()
    }

    /// Returns the last lines as they were printed.
    pub(super) fn tail(&self) -> Vec<String> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
