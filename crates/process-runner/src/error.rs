//! Why there is no outcome, or not a whole one.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::outcome::Output;

/// Why a run gave no [`Output`].
///
/// A program that started and failed is not an error: see [`Output::termination`], and
/// [`Output::ensure_success`] to make it one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The system did not start the program within its timeout, or 1 s if that is shorter: its file lies on a
    /// file system that hangs. Should it start later, it is killed at once; see
    /// [`Runner::stuck_starts`](crate::Runner::stuck_starts).
    #[error("`{program}` did not start within {after:?}")]
    SpawnTimedOut {
        /// The program as the caller named it.
        program: String,
        /// The time limit.
        after: Duration,
    },
    /// No place became free in the [`Runner`](crate::Runner) within its `queue_timeout`.
    #[error("no free place to run `{label}` within {after:?}")]
    QueueTimedOut {
        /// What the run was called.
        label: String,
        /// The limit.
        after: Duration,
    },
    /// The [`Runner`](crate::Runner) has been shut down.
    #[error("the runner has been shut down")]
    ShutDown,
    /// The program ran and failed; only [`Output::ensure_success`] makes this.
    #[error("{}", Failure(.0))]
    Failed(Box<Output>),
    /// Our own part failed while the program ran. The program and all it started have been killed.
    #[error("lost the run of `{}` while {stage}", .partial.label)]
    Io {
        /// What was being done.
        stage: &'static str,
        /// What there was until then.
        partial: Box<Output>,
        /// What the system said.
        source: io::Error,
    },
}

struct Failure<'a>(&'a Output);

impl std::fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.describe_failure(f)
    }
}

impl Error {
    /// What to do about it, in one sentence, where that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Spawn(error) => error.hint(),
            Self::SpawnTimedOut { .. } => Some("Check that the program's file system answers.".into()),
            Self::QueueTimedOut { .. } => Some("Wait for other commands to end, or end them.".into()),
            _ => None,
        }
    }

    /// The output, as far as there is any.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Self::Failed(output) | Self::Io { partial: output, .. } => Some(output),
            _ => None,
        }
    }
}

/// A program that did not start, and exactly why.
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
    /// What the system said, if it was asked.
    pub source: Option<io::Error>,
}

/// Why a program did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// There is no such program.
    #[error("there is no such program{}", Searched(.searched, .did_you_mean))]
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
    /// It is a folder.
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
    /// It is neither a binary for this machine nor a script with a `#!` line.
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
    /// A NUL byte, or a value that was used up.
    #[error("{place} {problem}")]
    InvalidInput {
        /// Which part of the command: "argument 3", "the environment value of `KEY`".
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The name of an environment variable is empty or has a `=` in it.
    #[error("`{key}` cannot be the name of an environment variable")]
    InvalidEnv {
        /// The name.
        key: String,
    },
    /// One argument is longer than the system allows.
    #[error("argument {index} has {length} bytes and {limit} are allowed")]
    ArgTooLong {
        /// Its place, counted from 1; 0 is the program.
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
    /// The program's file stayed open for writing.
    #[error("its file is being written to")]
    Busy,
    /// The system, or this process, is out of something.
    #[error("out of {which}")]
    ResourceLimit {
        /// Of what.
        which: Resource,
    },
    /// A batch file cannot be given this argument safely (Windows; CVE-2024-24576).
    #[error("an argument cannot be passed to a batch file safely")]
    UnsafeBatchArgument,
    /// It cannot be [confined](crate::Confinement) as it was asked for.
    #[error("it cannot be confined as asked: {problem}")]
    Confinement {
        /// What is missing, or in the way.
        problem: String,
    },
    /// Anything else; the source says what.
    #[error("the system refused")]
    Other,
}

/// What there was not enough of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// File descriptors of this process (`EMFILE`) or the system (`ENFILE`).
    Descriptors,
    /// Processes or threads of this user or container (`EAGAIN`).
    Processes,
    /// Memory (`ENOMEM`).
    Memory,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Descriptors => "file descriptors",
            Self::Processes => "processes",
            Self::Memory => "memory",
        })
    }
}

/// The rest of the sentence of [`SpawnErrorKind::NotFound`].
struct Searched<'a>(&'a [PathBuf], &'a Option<String>);

impl std::fmt::Display for Searched<'_> {
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
