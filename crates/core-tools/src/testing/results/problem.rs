//! The reasons why a run as a whole is no success.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason why a run as a whole is no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestRunProblem {
    /// The kind of the problem.
    pub kind: TestRunProblemKind,
    /// The problem in words.
    pub message: String,
}

impl TestRunProblem {
    /// Creates a problem of this kind.
    pub fn new(kind: TestRunProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The ways in which a run goes wrong. An earlier kind hides the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TestRunProblemKind {
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
