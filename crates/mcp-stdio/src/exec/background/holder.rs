//! `exec-holder`: the process of a session that becomes `exec` in the place of the one that waits for it.

use super::handover::CommandHandover;
use crate::error::Error;
use clap::Args;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

/// The arguments of `exec-holder`.
#[derive(Args, Debug)]
pub(crate) struct HolderArguments {
    /// The socket of the process that waits for the command
    #[arg(long)]
    socket: PathBuf,
    /// The command, for those who list sessions
    #[arg(last = true)]
    _command: Vec<OsString>,
}

/// The variables by which a supervisor finds the processes of a session.
const SESSION_PREFIXES: [&str; 2] = ["CORETOOLS_SESSION", "PROCESS_RUNNER_RUN"];

/// Receives the streams, the folder, the arguments and the variables of the process that waits, and becomes `exec` with them.
#[allow(clippy::disallowed_methods, reason = "this process becomes another program, and starts none")]
pub(crate) fn hold(arguments: &HolderArguments) -> Result<ExitCode, Error> {
    let socket = UnixStream::connect(&arguments.socket)
        .map_err(Error::system("cannot reach the process that waits for the command"))?;
    let ([input, output, errors], handover) = CommandHandover::receive(&socket)
        .map_err(Error::system("cannot receive the command from the process that waits for it"))?;
    drop(socket);
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let own = std::env::vars_os().filter(|(name, _)| is_of_session(name));
    let others = handover.variables.into_iter().filter(|(name, _)| !is_of_session(name));
    let failure = std::process::Command::new(executable)
        .args(handover.arguments)
        .current_dir(handover.folder)
        .env_clear()
        .envs(others)
        .envs(own)
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors))
        .exec();
    Err(Error::system("cannot become `exec`")(failure))
}

fn is_of_session(name: &std::ffi::OsStr) -> bool {
    SESSION_PREFIXES.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}
