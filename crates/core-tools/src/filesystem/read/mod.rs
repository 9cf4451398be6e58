//! `read_file`: lines of a text file, streamed and bounded; notes say what was left out.

mod backward;
mod excerpt;
mod file;
mod forward;
mod request;
#[cfg(test)]
mod tests;

pub use file::read_file;
#[cfg(test)]
use file::read_lines;
pub(super) use file::read_lines_numbered;
pub(super) use request::ReadLineSelection;
pub use request::{ReadFile, TextFile};
