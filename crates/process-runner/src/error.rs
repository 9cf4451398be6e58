//! The errors of a run: it did not start, or its outcome is incomplete.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::confine::ConfinementProblem;
use crate::outcome::Output;

/// The reason that a run gave no [`Output`].
///
/// A program that started and failed is not an error: see [`Output::termination`]. [`Output::ensure_success`] makes it
/// one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system did not start the program within its timeout, or within 1 s if that is longer. The usual cause is a
    /// file system that hangs. A program that starts later is killed at once; see
    /// [`Runner::stuck_starts`](crate::Runner::stuck_starts).
    #[error("`{program}` did not start within {after:?}")]
    SpawnTimedOut {
        /// The program as the caller named it.
        program: String,
        /// The time limit.
        after: Duration,
    },
    /// No other run of the [`Runner`](crate::Runner) ended within its `queue_timeout`.
    #[error("`{label}` waited {after:?} for other runs to end, and was not started")]
    QueueTimedOut {
        /// The label of the run.
        label: String,
        /// The `queue_timeout`.
        after: Duration,
    },
    /// The [`Runner`](crate::Runner) has been shut down.
    #[error("the runner has been shut down")]
    ShutDown,
    /// The program ran and failed. Only [`Output::ensure_success`] returns this.
    #[error("{}", FailureDescription(.0))]
    Failed(Box<Output>),
    /// Following the run failed, for example reading a pipe. The program and all it started have been killed.
    #[error("lost the run of `{}` while {stage}", .partial.label)]
    Io {
        /// The step that failed, to follow "while".
        stage: &'static str,
        /// The output until then.
        partial: Box<Output>,
        /// The error of the system call.
        source: io::Error,
    },
}

/// The text of [`Error::Failed`].
struct FailureDescription<'a>(&'a Output);

impl std::fmt::Display for FailureDescription<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.describe_failure(f)
    }
}

impl Error {
    /// Returns a sentence that says what to do about the error, where that is known.
    // Apart from the message, so that a caller that prints the chain of causes can put it last.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Spawn(error) => error.hint(),
            Self::SpawnTimedOut { .. } => Some("Check that the program's file system answers.".into()),
            Self::QueueTimedOut { .. } => Some("Wait for other commands to end, or end them.".into()),
            _ => None,
        }
    }

    /// Returns the output that the error carries, if it carries one.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Self::Failed(output) | Self::Io { partial: output, .. } => Some(output),
            _ => None,
        }
    }
}

impl Output {
    /// Returns this output if the program succeeded.
    ///
    /// # Errors
    /// [`Error::Failed`] with this output inside. Its text is the label, how the run ended, and the last
    /// lines of standard error, or of standard output if that is empty.
    pub fn ensure_success(self) -> Result<Self, Error> {
        if self.success() { Ok(self) } else { Err(Error::Failed(Box::new(self))) }
    }
}

/// A failed start of a program, with the exact reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{program}` in {}: {kind}", .folder.display())]
#[non_exhaustive]
pub struct SpawnError {
    /// The program as the caller named it.
    pub program: String,
    /// The folder it was to run in.
    pub folder: PathBuf,
    /// The reason.
    pub kind: SpawnErrorKind,
    /// The error of the system call, if one was made.
    pub source: Option<io::Error>,
}

/// The reason that a program did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// There is no such program.
    #[error("there is no such program{}", SearchedFolders(.searched, .did_you_mean))]
    NotFound {
        /// The folders of the child's `PATH` that were searched; empty if the program was named by a path.
        searched: Vec<PathBuf>,
        /// A program of nearly that name in one of them.
        did_you_mean: Option<String>,
    },
    /// The file may not be executed.
    #[error("{} is not executable", .path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The program's path is a folder.
    #[error("{} is a folder", .path.display())]
    IsDirectory {
        /// The folder.
        path: PathBuf,
    },
    /// The interpreter in the script's first line, or the loader that a binary asks for, is missing.
    #[error("its interpreter {} is missing", .path.display())]
    BadInterpreter {
        /// The interpreter.
        path: PathBuf,
    },
    /// The file is neither a binary for this machine nor a script with a `#!` line.
    #[error("it is neither a binary for this machine nor a script that begins with `#!`")]
    NotRunnable,
    /// The folder to run in does not exist.
    #[error("the folder does not exist")]
    CwdNotFound,
    /// The folder to run in is not a folder.
    #[error("that is not a folder")]
    CwdNotDirectory,
    /// The folder to run in may not be entered.
    #[error("the folder may not be entered")]
    CwdDenied,
    /// A part of the command is empty, has a NUL byte, or was used up by an earlier run.
    #[error("{part} {problem}")]
    InvalidInput {
        /// The part of the command: "argument 3", "the environment value of `KEY`".
        part: String,
        /// A verb phrase for what is wrong with it: "has a NUL byte".
        problem: &'static str,
    },
    /// The name of an environment variable is empty or contains a `=`.
    #[error("`{key}` cannot be the name of an environment variable")]
    InvalidEnv {
        /// The name.
        key: String,
    },
    /// One argument is longer than the system allows.
    #[error("argument {index} has {length} bytes and {limit} are allowed")]
    ArgTooLong {
        /// The number of the argument, counted from 1. 0 is the program.
        index: usize,
        /// Its length in bytes.
        length: usize,
        /// The longest that is allowed.
        limit: usize,
    },
    /// All arguments and environment variables together are longer than the system allows.
    #[error("arguments and environment have {length} bytes, which is more than the system allows")]
    ArgsTooLong {
        /// Their length together, in bytes.
        length: usize,
    },
    /// The program's file stayed open for writing for the whole of [`Limits::busy_retry`](crate::Limits::busy_retry).
    #[error("its file is being written to")]
    Busy,
    /// A resource of the system, or of this process, is exhausted.
    #[error("out of {which}")]
    ResourceLimit {
        /// The resource.
        which: SystemResource,
    },
    /// A batch file cannot be given this argument safely (Windows; CVE-2024-24576).
    #[error("an argument cannot be passed to a batch file safely")]
    UnsafeBatchArgument,
    /// The program cannot be [confined](crate::Confinement) as the command asks.
    #[error("it cannot be confined as asked: {problem}")]
    Confinement {
        /// The reason.
        problem: ConfinementProblem,
    },
    /// Any other reason, which the `source` of the [`SpawnError`] has.
    #[error("the system refused")]
    Other,
}

/// A resource that can be exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemResource {
    /// File descriptors, of this process (`EMFILE`) or of the system (`ENFILE`).
    Descriptors,
    /// Processes or threads, of this user or container (`EAGAIN`).
    Processes,
    /// Memory (`ENOMEM`).
    Memory,
}

impl std::fmt::Display for SystemResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Descriptors => "file descriptors",
            Self::Processes => "processes",
            Self::Memory => "memory",
        })
    }
}

/// The second half of the text of [`SpawnErrorKind::NotFound`].
struct SearchedFolders<'a>(&'a [PathBuf], &'a Option<String>);

impl std::fmt::Display for SearchedFolders<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.0.is_empty() {
            f.write_str(" in PATH (searched")?;
            for (index, folder) in self.0.iter().enumerate() {
                write!(f, "{} {}", if index == 0 { "" } else { "," }, folder.display())?;
            }
            f.write_str(")")?;
        }
        match self.1 {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl SpawnError {
    /// Returns a sentence that says what to do about the error, where that is known.
    fn hint(&self) -> Option<String> {
        Some(match &self.kind {
            SpawnErrorKind::NotFound { did_you_mean: Some(name), .. } => format!("Try `{name}`."),
            SpawnErrorKind::NotFound { searched, .. } if !searched.is_empty() => format!(
                "Install `{}`, or add its folder to the PATH of the process that starts it.",
                self.program
            ),
            SpawnErrorKind::NotExecutable { path } => {
                format!("Make it executable (`chmod +x {}`), or start it by its interpreter.", path.display())
            }
            SpawnErrorKind::BadInterpreter { path } => {
                format!("Install {}, or start the script by another interpreter.", path.display())
            }
            SpawnErrorKind::NotRunnable => "Start it by its interpreter, such as `sh FILE`.".into(),
            SpawnErrorKind::ArgTooLong { .. } | SpawnErrorKind::ArgsTooLong { .. } => {
                "Pass long input by standard input or by a file.".into()
            }
            SpawnErrorKind::ResourceLimit { .. } => "Wait for other commands to end, or end them.".into(),
            _ => return None,
        })
    }
}
