//! Runs programs for servers: never hangs, never leaks a process, never runs out of memory.

mod capture;
mod command_line;
mod lines;
mod secrets;
mod spill;
mod text;

pub use capture::{Capture, CaptureLimits, Captured, Snapshot};
pub use command_line::{CommandLine, CommandLineError, ShellSyntax, ShellSyntaxKind};
pub use lines::{Line, LineSplitter};
pub use secrets::{Redactor, Secrets};
pub use spill::Spill;
pub use text::clean;
