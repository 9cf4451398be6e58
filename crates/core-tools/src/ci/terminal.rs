//! The terminal of a command that asks for one.

use super::error::CommandError;
use process_runner::{Command, TerminalSize};

/// Returns the size of the requested terminal, if one is.
///
/// # Errors
/// A size is given and no terminal is requested.
pub(super) fn terminal_size(
    pty: Option<bool>,
    columns: Option<u16>,
    rows: Option<u16>,
) -> Result<Option<TerminalSize>, CommandError> {
    if pty != Some(true) {
        let given: Vec<_> = [("columns", columns), ("rows", rows)]
            .into_iter()
            .filter_map(|(name, size)| size.map(|size| format!("\"{name}\":{size}")))
            .collect();
        return match given.is_empty() {
            true => Ok(None),
            false => Err(CommandError::SizeWithoutTerminal { given: given.join(",") }),
        };
    }
    let default = TerminalSize::default();
    Ok(Some(TerminalSize { columns: columns.unwrap_or(default.columns), rows: rows.unwrap_or(default.rows) }))
}

/// Returns `command` with this terminal, and the variable that says which sequences it understands.
pub(super) fn with_terminal(command: Command, size: TerminalSize) -> Command {
    // A terminal's own size is asked of it; these variables of the server's would contradict it.
    command.terminal(size).env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("LINES")
}

/// Returns text as it is typed: Enter sends a carriage return. Programs that draw their own line editor know no other.
pub(super) fn typed(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r")
}
