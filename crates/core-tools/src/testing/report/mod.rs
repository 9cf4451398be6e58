//! The report on a run of tests: merged from its steps, shortened, and written as text or TAP.

mod commands;
mod foreign_frames;
mod merge;
mod own_location;
mod present;
mod tap;
mod test_report;
mod text;

pub(crate) use commands::StepCommands;
pub(crate) use merge::merge;
pub(crate) use own_location::locate_in_project;
pub(crate) use present::present;
pub use test_report::TestReport;
