//! Runs child processes for servers: it never hangs, leaks no process and bounds the memory for output.
//!
//! A [`Command`] names a program, its arguments, the folder it runs in and the limits it runs under.
//! [`Command::run`] starts it, reads both output streams while it runs, and returns an [`Output`]: what the program
//! printed, and how it ended. The program and everything it started end together: at the time limit, when
//! the run is cancelled, and when the future is dropped.
//!
//! ```
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), process_runner::Error> {
//! use std::time::Duration;
//! use process_runner::{Command, Limits, Termination};
//!
//! let output = Command::new("sh", "/")
//!     .args(["-c", "pwd; echo trouble >&2; exit 3"])
//!     .limits(Limits::default().timeout(Duration::from_secs(10)))
//!     .run()
//!     .await?; // an error is a program that never started
//!
//! assert_eq!(output.termination, Termination::Exited { code: 3 });
//! assert_eq!(output.stdout_text(), "/\n");
//! let error = output.ensure_success().unwrap_err();
//! assert_eq!(error.to_string(), "`sh` exited with code 3; the end of stderr:\n  trouble");
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
//!
//! A [`Runner`] bounds how many runs go on at once. [`Runner::start`] returns the handle of a run, with its
//! [events](Running::events), its [output so far](Running::snapshot) and its standard input.
//!
//! # Guarantees
//!
//! - A run ends whatever its program does: at the program's exit, or at the latest after [`Limits::timeout`] +
//!   [`Limits::term_grace`] + [`Limits::drain_max`], and 1 s more if something cannot be killed. Another process that
//!   holds a pipe open does not delay it further.
//! - Memory is bounded by [`Limits::capture`] for each stream. The head and the tail are kept, and the rest is
//!   counted; [`Limits::spill`] writes the whole stream to a file.
//! - The program gets descriptors 0, 1 and 2, a session of its own, default signal actions and no blocked signals. It has
//!   no terminal unless [`Command::terminal`] gives it one. It never gets this process's standard input.
//! - A program that has started gives an [`Output`], however it ended. An [`Error`] says exactly why a program did not
//!   start, or that following it failed. After a start nothing is tried again.
//!
//! | | Linux | macOS | Windows |
//! | --- | --- | --- | --- |
//! | ends with the run | process group, session, processes with the run's environment marker; with [`RunnerBuilder::adopt_orphans`] every descendant | process group | job object |
//! | ends after this process's death by `SIGKILL` | the same, with a [`guardian`] | process group, with a [`guardian`] | the same |
//! | signal before the kill | `SIGTERM` | `SIGTERM` | none |
//!
//! # Limitations
//!
//! There is no shell: each argument reaches the program unchanged ([`CommandLine`] splits text into arguments
//! without one). There are no retries: a command may have had an effect before it failed. There is no sandbox unless a
//! command asks for one: the program may do what this process may, or on Linux what a [`Confinement`] grants.

mod capture;
mod command;
mod command_line;
mod confine;
mod driver;
mod environment;
mod error;
mod events;
#[cfg(target_os = "linux")]
mod foreground;
pub mod guardian;
mod leftover;
mod leftover_state;
mod limits;
mod line_splitter;
mod lossy_text;
mod network_namespace;
mod network_namespace_error;
mod outcome;
mod program_usage;
#[cfg(unix)]
mod reaper;
mod resource_limits;
mod runner;
mod running;
mod secrets;
mod signal;
mod spill;
mod starter;
mod stdin;
#[cfg(unix)]
mod terminal;
mod terminal_text;
mod tree;
#[cfg(windows)]
use tree::reaper;

pub use capture::{CapturedStream, OutputSnapshot};
pub use command::{Command, TerminalSize};
pub use command_line::{CommandLine, CommandSplitError, ShellSyntax, ShellSyntaxKind};
pub use confine::{
    Confinement, ConfinementLevel, ConfinementProblem, ConfinementStatus, ConfinementUnavailable, Protection,
    SystemCallPermission, UnknownConfinementName,
};
pub use environment::EnvPolicy;
pub use error::{Error, SpawnError, SpawnErrorKind, SystemResource};
pub use events::{EventGranularity, EventOptions, EventReceiver, LagPolicy, RunEvent};
#[cfg(target_os = "linux")]
pub use foreground::{ForegroundEnd, ForegroundRun, end_as, release_standard_streams, with_signals_blocked};
pub use leftover::{LeftoverDecision, LeftoverTree, RunOwner, owned_by, release_owner};
pub use limits::{LeftoverPolicy, Limits, MaxOutput, OutputLimitAction};
pub use line_splitter::OutputLine;
pub use network_namespace::NetworkNamespace;
pub use network_namespace_error::NetworkNamespaceError;
pub use outcome::{
    Containment, ExitStatus, LeftoverProcess, Output, ResourceUsage, StdinReport, Stream, Termination,
};
pub use program_usage::ProgramUsage;
pub use resource_limits::{
    CgroupUnavailable, ExceededLimit, ResourceControl, ResourceControls, ResourceLimits,
};
pub use runner::{Runner, RunnerBuilder};
pub use running::Running;
pub use secrets::SecretValues;
pub use signal::signal_name;
pub use spill::SpillOptions;
pub use stdin::{SharedReader, Stdin};
#[cfg(unix)]
pub use terminal::{PseudoTerminal, TerminalDevice, TerminalWriteError};
pub use terminal_text::clean;
pub use tokio_util::sync::CancellationToken;

// Nobody but the benchmark `streams` uses these from outside. They are no part of the API and may change at any time.
#[doc(hidden)]
pub use capture::{CaptureLimits, OutputCapture};
#[doc(hidden)]
pub use line_splitter::LineSplitter;
#[doc(hidden)]
pub use secrets::StreamRedactor;

/// The example of the README, which must compile and run as it is.
#[cfg(all(doctest, unix))]
#[doc = include_str!("../README.md")]
struct Readme;
