//! [`CommandEndReport`]: the end of a command, told to the process that waits for it.

use process_runner::{ExitStatus, ForegroundEnd};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;

/// The end of a command whose background goes on. One line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommandEndReport {
    /// The exit code.
    pub(super) code: i32,
    /// The signal that ended the command.
    pub(super) signal: Option<i32>,
    /// The processes that go on.
    pub(super) background: usize,
}

impl CommandEndReport {
    pub(super) fn of(end: &ForegroundEnd) -> Self {
        let (signal, background) = match end {
            ForegroundEnd::Ended { status: ExitStatus::Signaled { signal, .. }, leftovers } => {
                (Some(*signal), *leftovers)
            }
            ForegroundEnd::Ended { leftovers, .. } => (None, *leftovers),
            _ => (None, 0),
        };
        let code =
            signal.map_or_else(|| process_runner::end_as(end), |signal| 128_i32.saturating_add(signal));
        Self { code, signal, background }
    }

    pub(super) fn send(self, mut socket: &UnixStream) -> io::Result<()> {
        socket.write_all(format!("{}\n", serde_json::to_string(&self)?).as_bytes())
    }
}
