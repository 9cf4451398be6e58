//! What a run of tests found.

use crate::ci::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// What one run of tests found. [`TestReport::success`] is the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TestReport {
    /// Tests ran, all of them passed or were skipped, and the runner says so too.
    pub success: bool,
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, timed out or could not be run.
    pub failed: u64,
    /// Tests that were skipped, ignored, or expected to fail and did.
    pub skipped: u64,
    /// Why the run as a whole is no success, beyond failing tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
    /// The tests, failures first, otherwise in the runner's order.
    pub tests: Vec<TestCase>,
    /// Errors of the compiler, where that kept tests from running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The runner, by the name that `runner` takes.
    pub runner: &'static str,
    /// The command that was run, as it could be typed in `folder`.
    pub command: String,
    /// Where it ran, relative to its root.
    pub folder: String,
    /// The exit code. Absent where a signal ended the runner, or it never started.
    pub exit_code: Option<u32>,
    /// Wall time of the whole run.
    pub duration_ms: u64,
    /// Something was left out: tests, or parts of messages.
    pub truncated: bool,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The end of what the runner printed, where the tests alone do not explain the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TestCase {
    /// Its full name, as the runner selects by.
    pub name: String,
    /// What became of it.
    pub status: Status,
    /// How long it took, where the runner says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// Why it failed, or why it was skipped; for a failure what it printed as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The file it stands in, or fails in, relative to the folder of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl TestCase {
    /// A test of which only this is known.
    pub fn new(name: impl Into<String>, status: Status) -> Self {
        Self { name: name.into(), status, duration_ms: None, error: None, file: None, line: None }
    }
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
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

impl Status {
    /// Whether it counts as failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Errored)
    }

    /// As it is written in a report.
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

/// Why a run as a whole is no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Problem {
    /// What went wrong.
    pub kind: ProblemKind,
    /// In words.
    pub message: String,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The ways in which a run goes wrong. The first ones hide the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The time limit of the run ended it.
    TimedOut,
    /// The caller ended it.
    Cancelled,
    /// The runner, or what it needs, is not installed.
    RunnerMissing,
    /// The project, or its tests, do not compile.
    CompileError,
    /// Test files could not be loaded.
    CollectionError,
    /// The runner, or the tests' process, died.
    Crashed,
    /// No test was executed: none matches, or all are skipped.
    NoTests,
    /// Reports, summary and exit code contradict each other.
    Mismatch,
    /// The runner failed for a reason of its own, such as a hook or an unhandled error.
    RunnerFailed,
}

impl TestReport {
    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} passed, {} failed, {} skipped in {}.{:03} s ({}, exit code {})",
            if self.success { "ok" } else { "FAILED" },
            self.passed,
            self.failed,
            self.skipped,
            self.duration_ms / 1000,
            self.duration_ms % 1000,
            self.runner,
            self.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        );
        if let Some(error) = &self.error {
            let _ = write!(text, "\nerror: {}", error.message);
        }
        for diagnostic in &self.diagnostics {
            let _ = write!(text, "\n{diagnostic}");
        }
        for note in &self.notes {
            let _ = write!(text, "\nnote: {note}");
        }
        for test in self.tests.iter().filter(|test| test.status != Status::Passed) {
            let _ = write!(text, "\n{}: {}", test.status.name(), test.name);
            if let Some(file) = &test.file {
                let _ = write!(text, " ({file}");
                if let Some(line) = test.line {
                    let _ = write!(text, ":{line}");
                }
                text.push(')');
            }
            for line in test.error.iter().flat_map(|error| error.lines()) {
                let _ = write!(text, "\n    {line}");
            }
        }
        if let Some(output) = &self.output {
            let _ = write!(text, "\n--- output ---\n{}", output.trim_end());
        }
        let _ = write!(text, "\n$ {}", self.command);
        text
    }
}
