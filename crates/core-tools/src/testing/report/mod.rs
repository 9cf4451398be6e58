//! The report on a run of tests: merged from its steps, shortened, and written as text or TAP.

mod merge;
mod present;
mod tap;
mod test_report;
mod text;

pub(crate) use merge::merge;
pub(crate) use present::present;
pub use test_report::TestReport;
