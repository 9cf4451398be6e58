//! Output to the user who runs the program.

use std::io::Write;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The name of the program that has nothing of its own.
pub(crate) const DEFAULT_NAME: &str = "mcp-http";

/// The name of this program. Set once, by `main`.
static NAME: OnceLock<&'static str> = OnceLock::new();

/// Sets the name of this program. Later calls change nothing.
pub(crate) fn set_name(name: &'static str) {
    NAME.get_or_init(|| name);
}

/// Returns the name of this program.
pub(crate) fn name() -> &'static str {
    NAME.get().copied().unwrap_or(DEFAULT_NAME)
}

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
