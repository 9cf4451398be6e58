//! The events that our own reporters write (`../reporters`): one JSON object a line, each written when it
//! happens.

use super::line_parser::LineParser;
use crate::testing::results::{
    OutputExcerpt, RunnerEndMarker, TestCase, TestCounts, TestResults, TestRunProblemKind, TestStatus,
    TestsNotRun,
};
use serde::Deserialize;

/// The number of facts that are kept of one process.
const MAX_NOTES: usize = 10;
/// The number of bytes of one of them.
const MAX_NOTE_BYTES: usize = 500;

/// One event.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum ReporterEvent {
    /// The number of tests that will be reported.
    Plan { tests: u64 },
    /// A test begins.
    Start { name: String },
    /// A test that has begun has no result of its own: it is a suite, or an attempt that will be repeated.
    Discarded { name: String },
    /// A test has ended.
    Test {
        name: String,
        status: TestStatus,
        duration_ms: Option<f64>,
        error: Option<String>,
        file: Option<String>,
        line: Option<u64>,
        /// The number of times that it ran.
        attempts: Option<u64>,
    },
    /// Tests were not selected, and do not run.
    Deselected { tests: u64 },
    /// The runner has passed over tests.
    NotRun { what: String, why: String },
    /// A fact that a reader of the report should know.
    Note { message: String },
    /// Something that is no test went wrong.
    Problem { kind: TestRunProblemKind, message: String },
    /// The runner's own totals.
    Totals { passed: u64, failed: u64, skipped: u64 },
    /// The runner has reached its end.
    End,
}

/// The parser of events.
#[derive(Default)]
pub(crate) struct EventsParser;

impl LineParser for EventsParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        // From the first event on, a file without the event of the end tells of a runner that was cut off.
        results.expect_runner_end();
        match serde_json::from_str(line) {
            Ok(ReporterEvent::Plan { tests }) => {
                results.expected = Some(tests);
                // The reporter announces every test, so that a lower count at the end is a fault.
                results.reports_whole_plan = true;
            }
            Ok(ReporterEvent::Start { name }) => results.test_started(&name),
            Ok(ReporterEvent::Discarded { name }) => results.test_finished(&name),
            Ok(ReporterEvent::Test { name, status, duration_ms, error, file, line, attempts }) => {
                let test = TestCase { duration_ms, error, file, line, ..TestCase::new(name, status) };
                results.add_test(test.attempts(attempts.unwrap_or(1)));
            }
            Ok(ReporterEvent::Deselected { tests }) => {
                results.deselected = results.deselected.saturating_add(tests);
            }
            Ok(ReporterEvent::NotRun { what, why }) => TestsNotRun::add(&mut results.not_run, &what, &why),
            Ok(ReporterEvent::Note { message }) if results.notes.len() < MAX_NOTES => {
                results.notes.push(OutputExcerpt::new(&message, MAX_NOTE_BYTES).text);
            }
            Ok(ReporterEvent::Note { .. }) => {}
            Ok(ReporterEvent::Problem { kind, message }) => results.add_problem(kind, message),
            Ok(ReporterEvent::Totals { passed, failed, skipped }) => {
                results.add_declared(TestCounts { passed, failed, skipped });
            }
            Ok(ReporterEvent::End) => results.runner_end = RunnerEndMarker::Reached,
            // The line may have been the failure of a test: a run with it is no success.
            Err(error) => {
                results.truncated = true;
                results.add_problem(
                    TestRunProblemKind::Mismatch,
                    format!("a line of the report on the tests cannot be read: {error}"),
                );
            }
        }
    }

    fn finish(&mut self, results: &mut TestResults) {
        results.expect_runner_end();
    }
}
