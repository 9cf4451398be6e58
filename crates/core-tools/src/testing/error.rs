//! The errors of running tests.

use super::detect::LOOKED_FOR;
use super::runner::TestRunner;
use crate::ci::CommandError;
use crate::workspace;
use std::io;

/// An error that kept tests from running. Tests that ran and failed, and a runner that is not installed, are a
/// report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// No folder from the path up to the root has files of a known runner.
    #[error("no test runner detected for `{path}`; looked, from there up to the root, for {LOOKED_FOR}")]
    NoRunner {
        /// The path at which the search began.
        path: String,
    },
    /// No runner has this name.
    #[error("no runner is called `{name}`; known are {}", runner_names())]
    UnknownRunner {
        /// The name that was requested.
        name: String,
    },
    /// `test_path` begins with a dash.
    #[error("`test_path` is `{0}`: what begins with `-` would be an option of the runner")]
    Option(String),
    /// `test_path` is a path, and there is no such file or folder.
    #[error("`test_path`: there is no `{path}`{}", .hint.as_deref().unwrap_or_default())]
    NoSuchPath {
        /// The path that was requested.
        path: String,
        /// The nearest name that there is, as a clause that follows the message.
        hint: Option<String>,
    },
    /// The runner cannot select the requested tests.
    #[error("{runner} cannot run only {selection}; give {instead}")]
    CannotSelect {
        /// The runner.
        runner: TestRunner,
        /// The file, folder or test that was requested.
        selection: String,
        /// A description of what the runner can select.
        instead: &'static str,
    },
    /// The file of the project that names its test command cannot be read.
    #[error(
        "`{path}` says nothing about how to run the tests: {problem}; mend it, or choose a runner with `runner`"
    )]
    Manifest {
        /// The file.
        path: String,
        /// The fault in it.
        problem: String,
    },
    /// The runner has nothing that takes a pattern of names.
    #[error("{runner} selects no tests by a pattern, so that `filter` means nothing to it; give {instead}")]
    NoPatterns {
        /// The runner.
        runner: TestRunner,
        /// A description of what the runner can select.
        instead: &'static str,
    },
    /// Two parameters select by name.
    #[error("`{0}` and `{1}` both select tests; give one of them")]
    TwoSelections(&'static str, &'static str),
    /// The runner is a command of the project, and may take further words for anything.
    #[error(
        "`args` are for a test runner, and {0} runs a command of the project; `runner` chooses a test runner"
    )]
    NoArguments(TestRunner),
    /// The runner cannot select the tests that failed.
    #[error("the failed tests cannot be run alone: {0}")]
    CannotRerun(String),
    /// The path cannot be used.
    #[error("cannot use that path")]
    Path(#[from] workspace::Error),
    /// The folder for the runner's report cannot be created.
    #[error("cannot make a folder for the runner's report")]
    Report(#[from] io::Error),
    /// The runtime ended before the tests were chosen.
    #[error("the runtime is ending")]
    ShuttingDown,
    /// The run was lost.
    #[error(transparent)]
    Command(#[from] CommandError),
}

fn runner_names() -> String {
    TestRunner::ALL.map(TestRunner::name).join(", ")
}
