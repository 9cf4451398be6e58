//! The errors of the crate.

use crate::lease::InvalidLease;
#[cfg(feature = "database")]
use crate::lease::LeaseDatabaseError;
use crate::settings::RemoteSettings;
use crate::template::MissingValue;
use std::io;
use std::path::PathBuf;

/// The reason why a remote cannot be used. Messages of commands and of the server there are text of others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command needs a value that the remote does not have.
    #[error("remote `{remote}`")]
    Value {
        /// The remote.
        remote: String,
        /// The value that is missing.
        source: MissingValue,
    },
    /// The kind has no command that connects.
    #[error("remote `{0}` has no command that connects")]
    NoConnect(String),
    /// A command has no program.
    #[error("a command of the remote names no program")]
    NoProgram,
    /// A command of the kind could not be run.
    #[error("cannot run `{command}`")]
    Command {
        /// Program and first argument.
        command: String,
        /// The reason.
        source: Box<process_runner::Error>,
    },
    /// A command of the kind failed.
    #[error("`{command}` {outcome}")]
    CommandFailed {
        /// Program and first argument.
        command: String,
        /// The end of the command, and the last lines that it printed.
        outcome: String,
    },
    /// A command of the kind did not end in time, and was ended.
    #[error("`{command}` {outcome}")]
    TimedOut {
        /// Program and first argument.
        command: String,
        /// The limit, and the last lines that it printed.
        outcome: String,
    },
    /// The created object is not ready in time.
    #[error("not ready within {seconds} s: {last}")]
    NotReady {
        /// The limit.
        seconds: u64,
        /// The failure of the last attempt.
        last: Box<Self>,
    },
    /// There is no pipe or thread to be had for the channel.
    #[error("cannot make a channel")]
    Channel(#[source] io::Error),
    /// The channel ended before the server there had answered.
    #[error("no server answered there: {reason}")]
    NotOpened {
        /// The end of `connect`, and what came before the answer.
        reason: String,
        /// The exit code of `connect`, if that has exited.
        exit_code: Option<u32>,
    },
    /// The server there is of another version.
    #[error(
        "the server there is version {there}, and this is {here}; install {here} there, or set `copy_binary = true` for this remote"
    )]
    Version {
        /// Its version.
        there: String,
        /// The version of this program.
        here: String,
    },
    /// The server there refused to open the channel.
    #[error("the server there refused to start: {0}")]
    Refused(String),
    /// The channel ended while a call was open.
    #[error(
        "the connection ended while the call was open ({reason}): the call may have run, and is not sent again"
    )]
    Lost {
        /// The end of the channel.
        reason: String,
    },
    /// The channel is closed.
    #[error("not sent: the connection has ended ({reason})")]
    Closed {
        /// The end of the channel.
        reason: String,
    },
    /// A connection ended on which something ran that outlives calls.
    #[error(
        "not run: the connection has ended ({reason}), and with it everything that ran there: background commands and \
         sessions are gone. Call again, and a new connection is made"
    )]
    StateLost {
        /// The end of the channel.
        reason: String,
    },
    /// The session there, which was to outlive the channel, has ended.
    #[error("the session there has ended")]
    NoSession,
    /// The server there answered with an error.
    #[error("the server there refused the call: {0}")]
    Answered(String),
    /// The caller cancelled the call.
    #[error("cancelled")]
    Cancelled,
    /// The remote is shut down.
    #[error("the server is ending")]
    Ending,
    /// The registry of leases cannot be used.
    #[error("cannot use {}", .path.display())]
    Lease {
        /// The folder, or a file in it.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A lease names nothing that could be destroyed.
    #[error("the lease cannot be used: {0}")]
    InvalidLease(#[from] InvalidLease),
    /// The database of leases cannot be used.
    #[cfg(feature = "database")]
    #[error("cannot use the database of leases")]
    LeaseDatabase(#[source] LeaseDatabaseError),
    /// This server gave no sign of life for so long that another one has taken its lease.
    #[cfg(feature = "database")]
    #[error("another server has taken the lease {id}, since this one gave no sign of life for too long")]
    LeaseTaken {
        /// The lease.
        id: String,
    },
    /// There is no folder for the registry of leases.
    #[error("nowhere to write down what is created: set XDG_STATE_HOME or HOME")]
    NoLeaseFolder,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random(#[source] getrandom::Error),
    /// The program cannot be copied there.
    #[error("cannot copy the program there: {0}")]
    Copy(#[from] CopyError),
    /// The program that would be copied cannot be read.
    #[error("cannot read {}", .path.display())]
    ReadBinary {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A message cannot be written.
    #[error("a message cannot be written")]
    Message(#[from] serde_json::Error),
}

/// The reason why the program cannot be copied to a remote.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The kind cannot copy.
    #[error("this kind has no command `copy`")]
    NoCommand,
    /// There is no program for the architecture of the remote.
    #[error(
        "the remote is {there}, and this program is for {here}; put {program}-{there} into a folder and name it as `binaries` \
         of this remote"
    )]
    Architecture {
        /// The architecture of the remote.
        there: String,
        /// The architecture of this program.
        here: &'static str,
        /// The name of this program.
        program: String,
    },
}

impl Error {
    pub(crate) fn value(settings: &RemoteSettings, source: MissingValue) -> Self {
        Self::Value { remote: settings.label(), source }
    }

    pub(crate) fn lease(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Lease { path: path.into(), source }
    }
}
