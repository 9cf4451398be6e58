//! The request for a run of tests.

use super::results::FailedTests;
use std::collections::BTreeMap;
use std::time::Duration;

/// A request to run tests: which tests, with which runner, and for how long.
///
/// ```
/// use core_tools::testing::RunTests;
/// use std::time::Duration;
///
/// let request = RunTests::new().test_path("tests/api.rs").time_limit(Duration::from_secs(60));
/// assert_eq!(request.runner, None);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunTests {
    /// The project's folder, or a file in it. The first root if absent.
    pub project_path: Option<String>,
    /// The tests: a file, a folder, `file::name`, or a test's name or part of it. All if absent.
    pub test_path: Option<String>,
    /// A pattern of test names, as the runner's own option takes it: `-k`, `-t`, `-run`, `--grep`, the filter of
    /// libtest. None by default.
    pub filter: Option<String>,
    /// Further arguments for the runner, as they are.
    pub args: Vec<String>,
    /// The variables to set for the run. They replace inherited variables.
    pub env: BTreeMap<String, String>,
    /// The tests to run again, of an earlier [`TestReport`](super::TestReport); nothing else selects then.
    pub failed_tests: Option<FailedTests>,
    /// The runner, by its name. Found from the project's files if absent.
    pub runner: Option<String>,
    /// The time limit of the whole run.
    pub time_limit: Duration,
    /// The number of bytes that the tests of the report may take; passing ones are left out first.
    pub max_bytes: usize,
}

impl Default for RunTests {
    /// Creates a request for all tests of the first root, within ten minutes, in 40,000 bytes.
    fn default() -> Self {
        Self {
            project_path: None,
            test_path: None,
            filter: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            failed_tests: None,
            runner: None,
            time_limit: Duration::from_secs(600),
            max_bytes: 40_000,
        }
    }
}

impl RunTests {
    /// Creates a request for all tests of the first root, within ten minutes, in 40,000 bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the project: its folder, or a file in it. The first root by default.
    #[must_use]
    pub fn project_path(mut self, path: impl Into<String>) -> Self {
        self.project_path = Some(path.into());
        self
    }

    /// Sets the tests to run: a file, a folder, `file::name`, or a test's name or part of it. All by default.
    #[must_use]
    pub fn test_path(mut self, path: impl Into<String>) -> Self {
        self.test_path = Some(path.into());
        self
    }

    /// Sets a pattern of test names, as the runner's own option takes it. All by default.
    #[must_use]
    pub fn filter(mut self, pattern: impl Into<String>) -> Self {
        self.filter = Some(pattern.into());
        self
    }

    /// Sets further arguments for the runner. None by default.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a variable for the run, in place of an inherited one. None by default.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Runs the failed tests of an earlier report again, in its project and by its runner.
    #[must_use]
    pub fn failed_tests(mut self, tests: FailedTests) -> Self {
        self.failed_tests = Some(tests);
        self
    }

    /// Sets the runner, by its name. By default it is found from the project's files.
    #[must_use]
    pub fn runner(mut self, name: impl Into<String>) -> Self {
        self.runner = Some(name.into());
        self
    }

    /// Sets the time limit of the whole run. Ten minutes by default.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets the number of bytes that the tests of the report may take. 40,000 by default; passing tests are
    /// left out first.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }
}
