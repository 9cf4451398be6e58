//! The result of a run.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::capture::CapturedStream;
use crate::confine::ConfinementStatus;
use crate::resource_limits::ExceededLimit;
use crate::signal::signal_name;

/// One of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Stream {
    /// Standard output; with [`Command::merge_stderr`](crate::Command::merge_stderr) both.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    pub(crate) const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];

    pub(crate) fn index(self) -> usize {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        })
    }
}

/// The end of the program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited by itself.
    Exited {
        /// The exit code: 0 to 255 on Unix, the whole 32 bits on Windows.
        code: u32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's number on this system.
        signal: i32,
        /// True if it left a core dump.
        core: bool,
    },
    /// It ended, and another part of this process took its status: `SIGCHLD` is set to ignore, or something calls
    /// `waitpid(-1)`.
    Unknown,
}

/// The reason that a run is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Termination {
    /// The program ended by itself.
    Exited {
        /// The exit code.
        code: u32,
    },
    /// A signal that this crate did not send ended the program.
    Signaled {
        /// The signal's number on this system.
        signal: i32,
        /// True if it left a core dump.
        core: bool,
    },
    /// It ran past [`Limits::timeout`](crate::Limits::timeout) and was ended.
    TimedOut {
        /// The limit.
        after: Duration,
        /// True if it did not end within the grace time and was killed.
        escalated: bool,
    },
    /// It was silent for longer than [`Limits::idle_timeout`](crate::Limits::idle_timeout) and was ended.
    IdleTimedOut {
        /// The limit.
        after: Duration,
        /// True if it did not end within the grace time and was killed.
        escalated: bool,
    },
    /// The caller ended it: by the token, by the handle or by the runner's shutdown.
    Cancelled {
        /// True if it did not end within the grace time, or the caller asked to kill it.
        escalated: bool,
    },
    /// It printed more than [`Limits::max_output`](crate::Limits::max_output) and was killed.
    OutputLimit {
        /// The stream that reached the limit.
        stream: Stream,
    },
    /// It had to end and survived `SIGKILL`: it belongs to another user (`sudo`) or hangs in the kernel. A background
    /// thread goes on trying.
    Unkillable {
        /// The processes that are still alive.
        pids: Vec<u32>,
    },
    /// It ended, and another part of this process took its status.
    Unknown,
}

/// The extent to which everything that the program started is found when it has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Containment {
    /// Its process group. A process that creates a session or a group of its own escapes.
    Group,
    /// Its session. A process that creates a session of its own escapes.
    Session,
    /// Its session, and every process with the run's environment marker. A process that creates a session of its own
    /// *and* clears its environment escapes, unless this process
    /// [adopts orphans](crate::RunnerBuilder::adopt_orphans).
    SessionAndMarker,
    /// A Windows job object. Nothing escapes.
    JobObject,
}

/// A process that was alive after the program had ended, or had to be ended with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LeftoverProcess {
    /// Its process id.
    pub pid: u32,
    /// Its command name, at most 15 bytes of it (`comm` of `proc_pid_stat(5)`).
    pub name: String,
    /// Its command line, at most 1024 bytes of it. It is known only of a process that was left alive after the program
    /// had ended by itself.
    pub command_line: Option<String>,
    /// True if it held one of the output streams.
    pub held_pipe: bool,
    /// True if it was sent `SIGKILL`.
    pub killed: bool,
    /// The reason for that if the run's owner did not let it go on; see [`LeftoverDecision`](crate::LeftoverDecision).
    #[cfg_attr(feature = "serde", serde(default))]
    pub refused: Option<String>,
}

/// The use that the program made of its standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StdinReport {
    /// The bytes that were written to the pipe.
    pub written: u64,
    /// The bytes that there were to write, where that is known.
    pub total: Option<u64>,
    /// True if the program closed its end before it had read everything, which is no error.
    pub broken_pipe: bool,
    /// True if the reader that was to be copied failed.
    pub reader_failed: bool,
}

/// The time and memory that the program used, with the children it waited for (`getrusage(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResourceUsage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// The largest resident size in bytes. `None` where it is not known: Linux carries the parent's peak over `exec`,
    /// so the figure means something only if it is larger than this process's own peak.
    pub max_rss: Option<u64>,
}

/// The output of a program and how it ended. Every program that started gives one.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Output {
    /// The [label](crate::Command::label) of the run, or the program's name.
    pub label: String,
    /// The reason that the run is over.
    pub termination: Termination,
    /// The end of the program itself, also where the run ended it. `None` if it never started (cancelled before, a
    /// timeout of 0) or never ended (`Unkillable`).
    pub status: Option<ExitStatus>,
    /// The program's process id, if it started.
    pub pid: Option<u32>,
    /// Standard output.
    pub stdout: CapturedStream,
    /// Standard error. Empty with [`Command::merge_stderr`](crate::Command::merge_stderr).
    pub stderr: CapturedStream,
    /// Standard input.
    pub stdin: StdinReport,
    /// The time from the start of the program to this result.
    pub elapsed: Duration,
    /// The time from the start of the program to its exit.
    pub to_exit: Option<Duration>,
    /// The time that the run waited in the runner's queue before the start.
    pub queued: Duration,
    /// The time and memory that it used, where the system tells.
    pub usage: Option<ResourceUsage>,
    /// The processes that outlived the program, as far as they were seen. After an exit with both streams closed they
    /// are only looked for with [`LeftoverPolicy::KillAll`](crate::LeftoverPolicy::KillAll).
    pub leftovers: Vec<LeftoverProcess>,
    /// The extent to which ending the run finds everything that it started.
    pub containment: Containment,
    /// The protections that the program ran under. `None` if it was not [confined](crate::Command::confined), or never
    /// started.
    #[cfg_attr(feature = "serde", serde(default))]
    pub confinement: Option<ConfinementStatus>,
    /// The [limits](crate::ResourceLimits) that the programs of the run's owner met while it went on, where a cgroup
    /// limits them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exceeded_limits: Vec<ExceededLimit>,
}

/// The most lines of output in the text of [`Error::Failed`](crate::Error::Failed).
const MAX_ERROR_LINES: usize = 10;
/// The most characters of each of these lines.
const MAX_ERROR_LINE_CHARS: usize = 500;

impl Output {
    /// Returns true if the program exited by itself with code 0.
    pub fn success(&self) -> bool {
        // A program that was ended at a limit may still exit with code 0, and that is no success.
        self.termination == Termination::Exited { code: 0 }
    }

    /// Returns the exit code if the program exited, also if it did so because the run was being ended.
    pub fn code(&self) -> Option<u32> {
        match self.status {
            Some(ExitStatus::Exited { code }) => Some(code),
            _ => None,
        }
    }

    /// Returns standard output as text; see [`CapturedStream::text`].
    pub fn stdout_text(&self) -> Cow<'_, str> {
        self.stdout.text()
    }

    /// Returns standard error as text; see [`CapturedStream::text`].
    pub fn stderr_text(&self) -> Cow<'_, str> {
        self.stderr.text()
    }

    /// Returns the label and how the run ended, in one line: "`git push` exited with code 128".
    pub fn summary(&self) -> String {
        format!("`{}` {}", self.label, self.termination)
    }

    /// Writes the summary and the last lines of standard error, or of standard output if that is empty.
    pub(crate) fn describe_failure(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        let stderr = self.stderr.text();
        let stdout = self.stdout.text();
        // Most programs say on standard error why they fail; test runners say it on standard output.
        let (name, text) = if stderr.trim().is_empty() { ("stdout", stdout) } else { ("stderr", stderr) };
        // A progress bar would otherwise fill the message with its states.
        let text = crate::terminal_text::clean(text.trim_end());
        if text.is_empty() {
            return f.write_str("; it printed nothing");
        }
        let lines: Vec<&str> = text.lines().rev().take(MAX_ERROR_LINES).collect();
        write!(f, "; the end of {name}:")?;
        for line in lines.iter().rev() {
            f.write_str("\n  ")?;
            match line.char_indices().nth(MAX_ERROR_LINE_CHARS) {
                Some((end, _)) => write!(f, "{} ...", &line[..end])?,
                None => f.write_str(line)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed = |escalated: &bool| if *escalated { " and had to be killed" } else { "" };
        match self {
            Self::Exited { code } => write!(f, "exited with code {code}"),
            Self::Signaled { signal, core } => {
                write!(f, "was ended by signal {signal}")?;
                if let Some(name) = signal_name(*signal) {
                    write!(f, " ({name})")?;
                }
                f.write_str(if *core { ", core dumped" } else { "" })
            }
            Self::TimedOut { after, escalated } => {
                write!(f, "ran past its limit of {after:?}{}", killed(escalated))
            }
            Self::IdleTimedOut { after, escalated } => {
                write!(f, "printed nothing for {after:?}{}", killed(escalated))
            }
            Self::Cancelled { escalated } => write!(f, "was cancelled{}", killed(escalated)),
            Self::OutputLimit { stream } => write!(f, "printed more than it may on {stream} and was killed"),
            Self::Unkillable { pids } => {
                write!(f, "had to end and could not be killed; still alive:")?;
                pids.iter().try_for_each(|pid| write!(f, " {pid}"))
            }
            Self::Unknown => f.write_str("ended, and another part of this program took its exit status"),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Termination::from(*self).fmt(f)
    }
}

impl From<ExitStatus> for Termination {
    fn from(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Exited { code } => Self::Exited { code },
            ExitStatus::Signaled { signal, core } => Self::Signaled { signal, core },
            ExitStatus::Unknown => Self::Unknown,
        }
    }
}
