//! The failed tests of a run, as the next run selects them.

use super::test_case::TestCase;
use std::path::PathBuf;

/// The failed tests of a run, with the project and the runner, so that they can be run again alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedTests {
    /// The name of the runner.
    pub(crate) runner: &'static str,
    /// The folder of the project.
    pub(crate) folder: PathBuf,
    /// The full names of the tests.
    pub(crate) names: Vec<String>,
    /// More failed than are known by name.
    pub(crate) is_partial: bool,
}

impl FailedTests {
    /// Creates the list of the failed tests among `tests`, of which `failed` were counted.
    pub(crate) fn new(runner: &'static str, folder: PathBuf, tests: &[TestCase], failed: u64) -> Self {
        let failures = tests.iter().filter(|test| test.status.is_failure());
        let names: Vec<_> = failures.map(|test| test.name.clone()).collect();
        let is_partial = (names.len() as u64) < failed;
        Self { runner, folder, names, is_partial }
    }

    /// Returns true if no test failed.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the number of tests.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}
