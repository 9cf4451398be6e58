//! Output to the user who runs the program.

use std::io::Write;
use std::process::ExitCode;

/// The error of a command whose output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub(crate) struct OutputError(#[source] std::io::Error);

/// Prints to standard output.
///
/// # Errors
/// Not everything could be written: a token is printed only once, so that must not go unnoticed.
pub(crate) fn print(text: &str) -> Result<ExitCode, OutputError> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
    written.map(|()| ExitCode::SUCCESS).map_err(OutputError)
}

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    // Where standard error is closed, the exit code has to do.
    let _ = writeln!(std::io::stderr(), "{text}");
}
