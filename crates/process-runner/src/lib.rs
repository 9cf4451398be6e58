//! Runs programs for servers: never hangs, never leaks a process, never runs out of memory.
//!
//! A [`Command`] names a program, its arguments, the folder it runs in and the limits it runs under.
//! [`Command::run`] starts it, reads both output streams while it runs, and gives an [`Output`]: what was
//! printed, and how it ended. The program and everything it started end together: at the time limit, when
//! it is cancelled, and when the future is dropped.
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
//! A [`Runner`] bounds how many run at once, and [`Runner::start`] gives the handle of one that runs: its
//! [events](Running::events), [what it has printed so far](Running::snapshot), its standard input.
//!
//! # What is promised
//!
//! - A run ends, whatever its program does: at its exit, or [`Limits::timeout`] + [`Limits::term_grace`] +
//!   [`Limits::drain_max`] at the latest, and 1 s more if something cannot be killed. Somebody else holding a
//!   pipe open does not keep it.
//! - Memory is bounded by [`Limits::capture`] for each stream; the head and the tail are kept, the rest is
//!   counted, and written to a file if [`Limits::spill`] says so.
//! - The program gets descriptors 0, 1 and 2, a session of its own, default signals, none blocked, and no
//!   terminal. It never gets our standard input.
//! - Once a program has started the answer is an [`Output`]; an [`Error`] means that it has not, and says
//!   exactly why, or that our own part failed. Nothing is tried again after a start.
//!
//! | | Linux | macOS | Windows |
//! | --- | --- | --- | --- |
//! | what ends with the run | process group, session, carriers of the run's environment marker | process group | job object |
//! | after our own death by `SIGKILL` | the same, with a [`guardian`] | process group, with a [`guardian`] | the same |
//! | polite end before the kill | `SIGTERM` | `SIGTERM` | none |
//!
//! # What it leaves out
//!
//! No shell: each argument reaches the program as it stands ([`CommandLine`] splits text into arguments
//! without one). No retries: a command may have had an effect before it failed. No sandbox unless asked for: the
//! program may do what this process may, or on Linux what a [`Confinement`] grants.

mod capture;
mod command;
mod command_line;
mod confine;
mod driver;
mod environment;
mod error;
mod events;
pub mod guardian;
mod limits;
mod lines;
mod outcome;
#[cfg(unix)]
mod reaper;
#[cfg(unix)]
mod resolve;
mod run;
mod secrets;
mod spill;
mod start;
mod text;
mod tree;
#[cfg(windows)]
use tree::reaper;

pub use capture::{Capture, CaptureLimits, Captured, Snapshot};
pub use command::{Command, SharedReader, Stdin};
pub use command_line::{CommandLine, CommandLineError, ShellSyntax, ShellSyntaxKind};
pub use confine::{Confinement, InForce, Protection};
pub use environment::EnvPolicy;
pub use error::{Error, Resource, SpawnError, SpawnErrorKind};
pub use events::{By, Event, EventOptions, Events, Lag};
pub use limits::{Leftovers, Limits, MaxOutput, OverLimit};
pub use lines::{Line, LineSplitter};
pub use outcome::{
    Containment, ExitStatus, Leftover, Output, StdinReport, Stream, Termination, Usage, signal_name,
};
pub use run::{Runner, RunnerBuilder, Running};
pub use secrets::{Redactor, Secrets};
pub use spill::Spill;
pub use text::clean;
pub use tokio_util::sync::CancellationToken;
