//! What a run gives back.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::capture::Captured;
use crate::confine::InForce;
use crate::error::Error;

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

/// How the program itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ExitStatus {
    /// It ended by itself. 0 to 255 on Unix; the whole 32 bits on Windows.
    Exited {
        /// What it passed to `exit`.
        code: u32,
    },
    /// A signal ended it.
    Signaled {
        /// The signal's number on this system.
        signal: i32,
        /// It left a core dump.
        core: bool,
    },
    /// It ended, and another part of this process took its status (`SIGCHLD` set to ignore, or a
    /// `waitpid(-1)`).
    Unknown,
}

/// Why a run is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Termination {
    /// The program ended by itself.
    Exited {
        /// What it passed to `exit`.
        code: u32,
    },
    /// The program was ended by a signal that was not ours.
    Signaled {
        /// The signal's number on this system.
        signal: i32,
        /// It left a core dump.
        core: bool,
    },
    /// It ran past [`Limits::timeout`](crate::Limits::timeout) and was ended.
    TimedOut {
        /// The limit.
        after: Duration,
        /// It did not end within the grace time and was killed.
        escalated: bool,
    },
    /// It was silent for longer than [`Limits::idle_timeout`](crate::Limits::idle_timeout) and was ended.
    IdleTimedOut {
        /// The limit.
        after: Duration,
        /// It did not end within the grace time and was killed.
        escalated: bool,
    },
    /// It was ended at the caller's wish: by the token, by the handle or by the runner's shutdown.
    Cancelled {
        /// It did not end within the grace time, or the wish was to kill it.
        escalated: bool,
    },
    /// It printed more than [`Limits::max_output`](crate::Limits::max_output) and was killed.
    OutputLimit {
        /// The stream.
        stream: Stream,
    },
    /// It had to end and did not, even by `SIGKILL`: another user's process (`sudo`), or one that hangs in
    /// the kernel. A background thread goes on trying.
    Unkillable {
        /// What is still alive.
        pids: Vec<u32>,
    },
    /// It ended, and another part of this process took its status.
    Unknown,
}

/// How surely everything that the program started was found when it had to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Containment {
    /// Its process group. One that makes a session or group of its own escapes.
    Group,
    /// Its session. One that makes a session of its own escapes.
    Session,
    /// Its session, and whoever carries the run's environment marker. One that makes a session of its own
    /// *and* clears its environment escapes.
    SessionAndMarker,
    /// A Windows job object. Nothing escapes.
    JobObject,
}

/// A process that was alive after the program had ended, or had to be ended with it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command name, at most 15 bytes of it (`comm` of `proc_pid_stat(5)`).
    pub name: String,
    /// It held one of the output streams.
    pub held_pipe: bool,
    /// It was sent `SIGKILL`.
    pub killed: bool,
}

/// What became of the program's standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StdinReport {
    /// Bytes that went into the pipe.
    pub written: u64,
    /// Bytes there were to write, where that is known.
    pub total: Option<u64>,
    /// The program closed its end before it had taken everything, which is no error.
    pub broken_pipe: bool,
    /// The reader that was to be copied failed.
    pub reader_failed: bool,
}

/// Time and memory that the program used, with the children it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Largest resident size in bytes. `None` where the figure is our own: Linux carries the parent's peak
    /// over `exec`, so it means something only when it is larger than ours.
    pub max_rss: Option<u64>,
}

/// What a program printed and how it ended. There is one for every program that started.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Output {
    /// What the run was called: [`Command::label`](crate::Command::label), or the program's name.
    pub label: String,
    /// Why the run is over.
    pub termination: Termination,
    /// How the program ended, also when it was made to. `None` if it never started (cancelled before, a
    /// timeout of 0) or never ended (`Unkillable`).
    pub status: Option<ExitStatus>,
    /// The program's process id, if it started.
    pub pid: Option<u32>,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error. Empty with [`Command::merge_stderr`](crate::Command::merge_stderr).
    pub stderr: Captured,
    /// Standard input.
    pub stdin: StdinReport,
    /// From the start of the program to this answer.
    pub elapsed: Duration,
    /// From the start of the program to its exit.
    pub to_exit: Option<Duration>,
    /// How long the run waited for a free place before that.
    pub queued: Duration,
    /// Time and memory used.
    pub usage: Option<Usage>,
    /// Processes that outlived the program and were seen. Nobody looks for them after an exit with both
    /// streams closed, unless [`Leftovers::KillAll`](crate::Leftovers::KillAll) asks.
    pub leftovers: Vec<Leftover>,
    /// How surely a tree kill would have found, or has found, everything.
    pub containment: Containment,
    /// Which protections the program ran under, and which were asked for and were not there. `None` if it was
    /// not [confined](crate::Command::confined), or never started.
    #[cfg_attr(feature = "serde", serde(default))]
    pub confinement: Option<InForce>,
}

/// Lines of output in the text of [`Error::Failed`].
const ERROR_LINES: usize = 10;
/// Characters of each of them.
const ERROR_LINE_LENGTH: usize = 500;

impl Output {
    /// The program ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.termination == Termination::Exited { code: 0 }
    }

    /// The code with which the program ended, if it did so itself, whatever made it.
    pub fn code(&self) -> Option<u32> {
        match self.status {
            Some(ExitStatus::Exited { code }) => Some(code),
            _ => None,
        }
    }

    /// This output if the program succeeded.
    ///
    /// # Errors
    /// [`Error::Failed`] with this output inside; its text is the label, how the run ended, and the last
    /// lines of standard error, or of standard output if that is empty.
    pub fn ensure_success(self) -> Result<Self, Error> {
        if self.success() { Ok(self) } else { Err(Error::Failed(Box::new(self))) }
    }

    /// Standard output as text.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        self.stdout.text()
    }

    /// Standard error as text.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        self.stderr.text()
    }

    /// The label and how the run ended, in one line: "`git push` exited with code 128".
    pub fn summary(&self) -> String {
        format!("`{}` {}", self.label, self.termination)
    }

    /// The summary and the last lines of standard error, or of standard output if that is empty.
    pub(crate) fn describe_failure(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        let stderr = self.stderr.text();
        let stdout = self.stdout.text();
        let (name, text) = if stderr.trim().is_empty() { ("stdout", stdout) } else { ("stderr", stderr) };
        let text = crate::text::clean(text.trim_end());
        if text.is_empty() {
            return f.write_str("; it printed nothing");
        }
        let lines: Vec<&str> = text.lines().rev().take(ERROR_LINES).collect();
        write!(f, "; the end of {name}:")?;
        for line in lines.iter().rev() {
            f.write_str("\n  ")?;
            match line.char_indices().nth(ERROR_LINE_LENGTH) {
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

/// The name of a signal, such as `SIGSEGV`, where this system has one for the number.
#[cfg(unix)]
pub fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

/// The name of a signal. There are none on this system.
#[cfg(not(unix))]
pub fn signal_name(_signal: i32) -> Option<&'static str> {
    None
}
