//! The results that parsers fill: tests, counts, problems.

mod counts;
mod excerpt;
mod failed_tests;
mod printed_claims;
mod problem;
mod test_case;
mod test_command;
mod test_results;
mod tests_not_run;

pub(crate) use counts::TestCounts;
pub(crate) use excerpt::OutputExcerpt;
pub use failed_tests::FailedTests;
pub(crate) use printed_claims::{CargoTarget, ContradictedPass, PrintedClaims, PrintedSummary};
pub use problem::{TestRunProblem, TestRunProblemKind};
pub use test_case::{TestCase, TestStatus};
pub use test_command::TestCommand;
pub(crate) use test_results::{RunnerEndMarker, TestProcessReport, TestResults};
pub use tests_not_run::TestsNotRun;
