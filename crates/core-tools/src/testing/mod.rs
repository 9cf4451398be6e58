//! Tests of any project: find the runner, run it, and report what became of each test.
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
//! let request = RunTests { test_path: Some("tests/api.rs".into()), ..RunTests::default() };
//! let report = run_tests(&commands, &request, &Default::default(), |word| eprintln!("{word}")).await?;
//! println!("{}", report.to_text());
//! # Ok(())
//! # }
//! ```
//!
//! # The verdict
//!
//! [`TestReport::success`] means: tests ran, none failed, and exit code, summary and report of each test agree.
//! No test executed is never a pass. An exit code that says otherwise than the report outranks it.
//!
//! # Runners
//!
//! | runner | its results are read from |
//! |---|---|
//! | cargo | the text of libtest, held up against its summaries; doctests too |
//! | nextest | its libtest-json; doctests by `cargo test --doc` after it |
//! | pytest, node, mocha, jest, vitest (3 and later), playwright, rspec, mix | a reporter of our own, loaded for the run, which tells each test as it ends |
//! | bats, ava | TAP |
//! | go | `go test -json` |
//! | maven, gradle, ctest, phpunit, deno, bun | `JUnit`'s XML |
//! | dotnet | TRX |
//! | npm (any other script), zig, swift, just, make | the exit code alone |
//!
//! How each is detected, its command line, how `test_path` is translated, and which of them are tried with the
//! runner itself: `docs/testing.md`.

mod cargo;
mod detect;
mod environment;
mod found;
mod parse;
mod plan;
mod recorded;
mod report;
mod run;
mod runner;
mod select;
mod step;
mod tap;
mod verdict;

pub use recorded::{ReportFormat, read_report};
pub use report::{Problem, ProblemKind, Status, TestCase, TestReport};
pub use run::{RunTests, run_tests};
pub use runner::Runner;
pub use select::TestError;
