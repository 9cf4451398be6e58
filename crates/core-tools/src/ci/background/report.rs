//! The answers of the tools for background commands.

use crate::ci::terminal_screen::ScreenText;
use process_runner::Termination;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// A command that has been started, and what became of it until the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct StartedCommand {
    /// The number by which the other tools know the command.
    pub id: u32,
    /// The process id.
    pub pid: u32,
    /// `running`, or how it ended: `exited`, `signaled`, `timed_out`, `stopped`, `unkillable`, `unknown`.
    #[schemars(with = "String")]
    pub state: BackgroundStatus,
    /// The exit code, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// True if the port or the text that was waited for came. Absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The output until then, if the call waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The answer as text.
    #[serde(skip)]
    pub(super) text: String,
}

impl StartedCommand {
    /// Returns the whole answer as text, for people and for clients that show only text.
    pub fn to_text(&self) -> &str {
        &self.text
    }

    /// Returns true if the command ended before what was waited for came.
    pub fn is_failed(&self) -> bool {
        // A command that still runs may become ready later, and is no failure.
        self.ready == Some(false) && self.state != BackgroundStatus::Running
    }
}

/// The state of a background command: that it runs, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BackgroundState {
    /// The number by which the other tools know the command.
    pub id: u32,
    /// The command line, masked and shortened.
    pub command: String,
    /// `running`, `exited`, `signaled`, `timed_out`, `stopped`, `unkillable` or `unknown`.
    #[schemars(with = "String")]
    pub state: BackgroundStatus,
    /// The exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The signal that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The time from start to exit, or to now, in milliseconds.
    pub duration_ms: u64,
}

/// The stage of life of a background command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BackgroundStatus {
    /// It runs.
    Running,
    /// It ended by itself, with an exit code.
    Exited,
    /// A signal that the server did not send ended it.
    Signaled,
    /// Its time limit ended it.
    TimedOut,
    /// The caller ended it.
    Stopped,
    /// It was to end, and processes of it cannot be killed.
    Unkillable,
    /// It ended, and the system did not tell how.
    Unknown,
}

impl BackgroundStatus {
    /// Returns the name, as it is in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::Unkillable => "unkillable",
            Self::Unknown => "unknown",
        }
    }
}

impl From<&Termination> for BackgroundStatus {
    fn from(termination: &Termination) -> Self {
        match termination {
            Termination::Exited { .. } => Self::Exited,
            Termination::Signaled { .. } => Self::Signaled,
            Termination::TimedOut { .. } => Self::TimedOut,
            Termination::Cancelled { .. } => Self::Stopped,
            Termination::Unkillable { .. } => Self::Unkillable,
            _ => Self::Unknown,
        }
    }
}

/// A part of a background command's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct BackgroundOutput {
    /// The state at the moment of the read.
    #[serde(flatten)]
    pub state: BackgroundState,
    /// Standard output and standard error, in the order they were written.
    pub output: String,
    /// The cursor for the next read. Only a cursor that was given out means anything.
    pub next_cursor: u64,
    /// The number of bytes after `output` that have been printed already; another read has them.
    #[serde(skip_serializing_if = "is_zero")]
    pub remaining_bytes: u64,
    /// The number of bytes before `output` that are no longer there: of a long output, the end is kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
    /// The screen of a command with a terminal. `output` is then what has left it at its top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenText>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The background commands of one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommandList {
    /// The commands, the latest last.
    pub commands: Vec<BackgroundState>,
}

impl BackgroundState {
    /// Returns the state in one line.
    pub(super) fn summary(&self) -> String {
        let state = self.state.name().replace('_', " ");
        let mut text = format!("command {} (`{}`): {state}", self.id, self.command);
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
    /// Returns the whole output and state as text, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = self.state.summary();
        self.write_output(&mut text);
        text
    }

    /// Adds the output to the line of the state.
    pub(super) fn write_output(&self, text: &mut String) {
        let _ = write!(text, "; next_cursor {}", self.next_cursor);
        if self.remaining_bytes > 0 {
            let _ = write!(text, "; {} more bytes are there to read", self.remaining_bytes);
        }
        if self.lost_bytes > 0 {
            let _ = write!(text, "\n[... {} bytes are no longer there ...]", self.lost_bytes);
        }
        if !self.output.is_empty() {
            let _ = write!(text, "\n{}", self.output);
        }
        if let Some(screen) = &self.screen {
            let line_end = if text.ends_with('\n') { "" } else { "\n" };
            let _ = write!(text, "{line_end}{screen}");
        }
    }
}
