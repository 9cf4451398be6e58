//! The output of the subcommands, and the name of the program in it.

use std::io::Write;
use std::process::ExitCode;
use std::sync::OnceLock;

/// The name of the program that has nothing of its own, and so the name in help texts as they are written.
pub(crate) const DEFAULT_NAME: &str = "mcp-stdio";

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

/// Prints to standard output, for subcommands; serving never comes here. Returns the exit code: failure where
/// not everything could be written.
pub(crate) fn print(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("{}: cannot write to standard output: {error}", name()));
            ExitCode::FAILURE
        }
    }
}

/// Prints to standard error.
pub(crate) fn print_error(text: &str) {
    // If standard error is closed, the exit code alone tells.
    let _ = writeln!(std::io::stderr(), "{text}");
}
