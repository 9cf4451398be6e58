//! What our own reporters write (`../reporters`): one JSON object a line, each written when it happens.

use super::super::found::{Counts, Found};
use super::super::report::{ProblemKind, Status, TestCase};
use super::Lines;
use serde::Deserialize;

/// One line.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// So many tests are there.
    Plan { tests: u64 },
    /// A test begins.
    Start { name: String },
    /// What began is no test itself: its tests are within it.
    Left { name: String },
    /// A test has ended.
    Test {
        name: String,
        status: Status,
        duration_ms: Option<f64>,
        error: Option<String>,
        file: Option<String>,
        line: Option<u64>,
    },
    /// Something went wrong that is no test.
    Problem { kind: ProblemKind, message: String },
    /// The runner's own totals.
    Totals { passed: u64, failed: u64, skipped: u64 },
    /// The runner has reached its end.
    End,
}

/// The parser.
#[derive(Default)]
pub(in super::super) struct Events;

impl Lines for Events {
    fn line(&mut self, line: &str, found: &mut Found) {
        found.ended.get_or_insert(false);
        match serde_json::from_str(line) {
            Ok(Event::Plan { tests }) => {
                found.expected = Some(tests);
                found.planned = true;
            }
            Ok(Event::Start { name }) => found.start(&name),
            Ok(Event::Left { name }) => found.finish(&name),
            Ok(Event::Test { name, status, duration_ms, error, file, line }) => {
                found.push(TestCase { name, status, duration_ms, error, file, line });
            }
            Ok(Event::Problem { kind, message }) => found.problem(kind, message),
            Ok(Event::Totals { passed, failed, skipped }) => {
                found.declare(Counts { passed, failed, skipped });
            }
            Ok(Event::End) => found.ended = Some(true),
            // It may have been the failure of a test.
            Err(error) => {
                found.truncated = true;
                found.problem(
                    ProblemKind::Mismatch,
                    format!("a line of the report on the tests cannot be read: {error}"),
                );
            }
        }
    }

    fn end(&mut self, found: &mut Found) {
        found.ended.get_or_insert(false);
    }
}
