//! One test of a run, and what became of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One test of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestCase {
    /// The full name, by which the runner selects the test.
    pub name: String,
    /// The result of the test.
    pub status: TestStatus,
    /// The duration in milliseconds, where the runner reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The reason why it failed or was skipped; for a failure its output as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The file that defines it, or in which it fails, relative to the folder of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The line of a dependency or of a helper that raised the failure, `FILE:LINE`, where `file` and `line` are those
    /// of the project's own code that led there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raised_at: Option<String>,
    /// The number of times that it ran, where the runner tried it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// True if it passed after an attempt that failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
}

impl TestCase {
    /// Creates a test of which only name and status are known.
    pub fn new(name: impl Into<String>, status: TestStatus) -> Self {
        Self {
            name: name.into(),
            status,
            duration_ms: None,
            error: None,
            file: None,
            line: None,
            raised_at: None,
            attempts: None,
            flaky: false,
        }
    }

    /// Sets the number of attempts, all of which are of this one test. With several, it was flaky if it passed.
    #[must_use]
    pub(crate) fn attempts(mut self, attempts: u64) -> Self {
        self.attempts = Some(attempts).filter(|attempts| *attempts > 1);
        self.flaky = self.attempts.is_some() && self.status == TestStatus::Passed;
        self
    }
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TestStatus {
    /// It passed.
    Passed,
    /// It ran and failed.
    Failed,
    /// It was not to run, or was expected to fail and did.
    Skipped,
    /// It ran past a time limit: the runner's own, or that of the whole run.
    TimedOut,
    /// It could not be run, or its process ended beneath it.
    Errored,
}

impl TestStatus {
    /// Returns true if the test counts as failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Errored)
    }

    /// Returns the name, as it is in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::TimedOut => "timed_out",
            Self::Errored => "errored",
        }
    }
}
