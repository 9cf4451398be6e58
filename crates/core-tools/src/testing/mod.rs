//! Runs the tests of any project: finds the runner, runs it, and reports what became of each test.
//!
//! ```no_run
//! use core_tools::ci::Commands;
//! use core_tools::redact::Redactor;
//! use core_tools::testing::{RunTests, run_tests};
//! use core_tools::workspace::Workspace;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Arc::new(Workspace::new(["/home/me/project"])?);
//! let commands = Commands::new(process_runner::Runner::new(), workspace, Redactor::new(Default::default())?);
//! let request = RunTests::new().test_path("tests/api.rs");
//! let report = run_tests(&commands, &request, &Default::default(), |line| eprintln!("{line}")).await?;
//! println!("{}", report.to_text());
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a run
//!
//! `detect` (the runner that the files ask for) → `target` (which tests of which project, and the project's own
//! command where all are meant: `project_command`) → `plan` (the commands, one file for each runner that needs
//! special knowledge) → `run` → `parse` (the machine formats, into `results`) → `verdict` → `report`;
//! after a run of all tests, `not_run` looks for those that the runner has passed over.
//!
//! # The verdict
//!
//! [`TestReport::success`] is true if tests ran, none failed, and exit code, summary and report of each test agree.
//! No test executed is never a pass. An exit code that says otherwise than the report outranks it. A project's own
//! command that succeeds without a report of any test has verified nothing: there it is `None`.
//!
//! # Runners
//!
//! | runner | source of its results |
//! |---|---|
//! | cargo | the text of libtest, compared with its summaries; doctests too |
//! | nextest | its libtest-json; doctests by `cargo test --doc` after it |
//! | pytest, unittest, node, mocha, jest, vitest (3 and later), playwright, rspec, mix | a reporter of our own, loaded for the run, which reports each test as it ends |
//! | bats, ava | TAP |
//! | go | `go test -json` |
//! | maven, gradle, ctest, phpunit, deno, bun | `JUnit`'s XML |
//! | dotnet | TRX |
//! | npm (the script `test`), tox, nox, rake, just, make, zig, swift, a program of the project | each runner in it, by its reporter or by its text on standard output; above them the exit code |
//!
//! How each is detected, its command line, how `test_path` is translated, and which of them are tried with the
//! runner itself: `docs/testing.md`.

mod detect;
mod error;
mod not_run;
mod parse;
mod plan;
mod project_command;
mod read_report;
mod report;
mod request;
mod results;
mod run;
mod runner;
mod target;
mod verdict;

pub use error::TestError;
pub use read_report::{ParsedReport, ReportFormat, read_report};
pub use report::TestReport;
pub use request::RunTests;
pub use results::{
    FailedTests, TestCase, TestCommand, TestRunProblem, TestRunProblemKind, TestStatus, TestsNotRun,
};
pub use run::run_tests;
pub use runner::TestRunner;
