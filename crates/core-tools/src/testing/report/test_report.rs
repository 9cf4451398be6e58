//! The report on a run of tests.

use crate::ci::Diagnostic;
use crate::testing::results::{
    FailedTests, PrintedClaims, TestCase, TestCommand, TestRunProblem, TestsNotRun,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The report on one run of tests. [`TestReport::success`] is the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestReport {
    /// True if tests ran, none failed, and the runner says so too. Null if the command succeeded and reported no
    /// test: nothing was verified.
    pub success: Option<bool>,
    /// The number of tests that passed.
    pub passed: u64,
    /// The number of tests that failed, timed out or could not be run.
    pub failed: u64,
    /// The number of tests that were skipped, ignored, or expected to fail and did.
    pub skipped: u64,
    /// The number of tests among those that passed of which an attempt failed before.
    #[serde(skip_serializing_if = "is_zero")]
    pub flaky: u64,
    /// The number of tests that were not selected, where the runner tells.
    #[serde(skip_serializing_if = "is_zero")]
    pub deselected: u64,
    /// The tests that the run left out, although nothing in the request did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<TestsNotRun>,
    /// The reason why the run as a whole is no success, beyond failing tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TestRunProblem>,
    /// The tests, failures first, otherwise in the runner's order.
    pub tests: Vec<TestCase>,
    /// The number of failed tests that `tests` has no room for.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_failures: u64,
    /// The number of other tests that `tests` has no room for. They are in the counts.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_others: u64,
    /// The commands of the project's own test command, if that was run, or those of a run that takes several, and what
    /// each reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<TestCommand>,
    /// The errors of the compiler, where they kept tests from running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The runner, by the name that `runner` takes.
    pub runner: &'static str,
    /// The command that was run, as it could be typed in `folder`.
    pub command: String,
    /// The folder of the project, relative to its root.
    pub folder: String,
    /// The exit code. Absent where a signal ended the runner, or it never started.
    pub exit_code: Option<u32>,
    /// The wall time of the whole run, in milliseconds.
    pub duration_ms: u64,
    /// True if something was left out: tests, or parts of messages.
    pub truncated: bool,
    /// Further facts: other runners that fit, what was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The untracked files that the run left in the repository, relative to `folder`. A folder of them ends in `/`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_files: Vec<String>,
    /// The end of the runner's output, where the tests alone do not explain the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The tests that failed, for a run of them alone.
    #[serde(skip)]
    pub failed_tests: FailedTests,
    /// The passes that rest on printed lines.
    #[serde(skip)]
    pub(crate) claims: PrintedClaims,
}

impl TestReport {
    /// Returns true if tests ran, none failed, and the runner says so too.
    pub fn is_success(&self) -> bool {
        self.success == Some(true)
    }

    /// Returns true if something failed. A run that verified nothing did not.
    pub fn is_failure(&self) -> bool {
        self.success == Some(false)
    }

    /// Adds a note on what keeps a success from being verified. A failure stays one.
    pub(crate) fn add_unverified(&mut self, note: Option<String>) {
        if let Some(note) = note {
            self.success = self.success.filter(|success| !success);
            self.notes.push(note);
        }
    }

    /// Creates the report of a run of which nothing is known but the runner.
    pub(crate) fn new(runner: &'static str) -> Self {
        Self {
            success: Some(false),
            passed: 0,
            failed: 0,
            skipped: 0,
            flaky: 0,
            deselected: 0,
            not_run: Vec::new(),
            error: None,
            tests: Vec::new(),
            omitted_failures: 0,
            omitted_others: 0,
            commands: Vec::new(),
            diagnostics: Vec::new(),
            runner,
            command: String::new(),
            folder: String::new(),
            exit_code: None,
            duration_ms: 0,
            truncated: false,
            notes: Vec::new(),
            new_files: Vec::new(),
            output: None,
            failed_tests: FailedTests::default(),
            claims: PrintedClaims::default(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
