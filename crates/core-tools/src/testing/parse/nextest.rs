//! The output of `cargo nextest run --message-format libtest-json-plus`: a JSON object a line.
//!
//! The totals of its suites contradict each other where a suite is reported twice, so only its tests are counted.

use super::line_parser::LineParser;
use super::text::FailureLocation;
use crate::testing::results::{TestCase, TestResults, TestStatus};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// The parser of nextest's output.
#[derive(Default)]
pub(crate) struct NextestParser {
    /// The tests are selected by name. Nextest lists the ignored ones all the same, whatever they are called.
    is_selection: bool,
    /// The tests without a result of each binary whose suite has ended at least once, by the prefix of their names.
    open: BTreeMap<String, OpenNextestTests>,
}

/// The tests of a binary that have begun and have no result: ignored ones, and such as still run.
#[derive(Default)]
struct OpenNextestTests {
    names: Vec<String>,
    /// The number of its ignored tests.
    ignored: u64,
}

/// The number of tests without a result that are remembered of a binary.
const MAX_OPEN: usize = 2_000;

impl NextestParser {
    /// Creates a parser of a run of selected tests, which leaves ignored ones out.
    pub(crate) fn of_selection() -> Self {
        Self { is_selection: true, ..Self::default() }
    }
}

/// Returns `package::binary$test` as nextest displays it: `package::binary test`. The name of a test that was
/// retried ends in its attempt: `package::binary$test#3`.
fn display_name(name: &str) -> String {
    split_attempt(name).0.replacen('$', " ", 1)
}

/// Splits the number of the attempt off a name.
fn split_attempt(name: &str) -> (&str, u64) {
    let split = name.rsplit_once('#').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    split.unwrap_or((name, 1))
}

impl NextestParser {
    /// Reads the end of a suite. It comes more than once for a binary, also while one of its tests still runs, so that
    /// only the end of the run tells which of the tests without a result are ignored ones.
    fn suite_ended(&mut self, prefix: String, ignored: u64, results: &mut TestResults) {
        let (names, others): (VecDeque<_>, VecDeque<_>) =
            results.running.drain(..).partition(|name| name.starts_with(&prefix));
        results.running = others;
        let open = self.open.entry(prefix).or_default();
        open.ignored = open.ignored.max(ignored);
        // A run may have any number of tests, so that the list of open ones is bounded.
        let room = MAX_OPEN.saturating_sub(open.names.len());
        open.names.extend(names.into_iter().take(room));
    }

    /// Forgets a test that has a result.
    fn test_ended(&mut self, name: &str) {
        for (prefix, open) in &mut self.open {
            if name.starts_with(prefix.as_str()) {
                open.names.retain(|open| open != name);
            }
        }
    }
}

/// Reads how many tests the profile's own `default-filter` leaves out: `Starting 2 tests across 1 binary (1 test skipped via
/// profile.default.default-filter)`, or `(3 tests skipped, including 1 test via profile…)`. Nothing else tells of them.
fn left_out_by_default(line: &str) -> Option<u64> {
    let (_, skipped) = line.trim_start().strip_prefix("Starting ")?.split_once('(')?;
    let (tests, _) = skipped.split_once(" via profile.")?;
    let tests = tests.rsplit_once(" including ").map_or(tests, |(_, tests)| tests);
    tests.split(' ').next()?.parse().ok()
}

impl LineParser for NextestParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        if !line.starts_with('{') {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        match (text("type"), text("event"), text("name")) {
            (Some("suite"), Some("started"), _) => {
                let count = event.get("test_count").and_then(Value::as_u64).unwrap_or_default();
                let expected = results.expected.get_or_insert_default();
                *expected = expected.saturating_add(count);
            }
            // Ignored tests that are not selected begin and never end, so the end of the suite ends them.
            (Some("suite"), Some(_), _) => {
                let part = |key: &str| event.pointer(&format!("/nextest/{key}")).and_then(Value::as_str);
                if let (Some(package), Some(binary)) = (part("crate"), part("test_binary")) {
                    let count = |key: &str| event.get(key).and_then(Value::as_u64).unwrap_or_default();
                    self.suite_ended(format!("{package}::{binary} "), count("ignored"), results);
                }
            }
            (Some("test"), Some("started"), Some(name)) => results.test_started(&display_name(name)),
            (Some("test"), Some(event_name), Some(name)) => {
                let status = match event_name {
                    "ok" => TestStatus::Passed,
                    "ignored" => TestStatus::Skipped,
                    "timeout" => TestStatus::TimedOut,
                    "failed" if text("reason") == Some("time limit exceeded") => TestStatus::TimedOut,
                    _ => TestStatus::Failed,
                };
                let mut test = TestCase::new(display_name(name), status);
                test.duration_ms = event.get("exec_time").and_then(Value::as_f64).map(|time| time * 1000.0);
                if status.is_failure() {
                    let parts = [text("reason"), text("message"), text("stdout")];
                    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
                    test.error = Some(parts.join("\n"));
                    // The events of nextest have no location. The message of the panic has one.
                    let panic = text("stdout").and_then(|output| output.split_once("panicked at "));
                    if let Some(location) = panic.and_then(|(_, after)| FailureLocation::parse(after)) {
                        (test.file, test.line) = (Some(location.file), Some(location.line));
                    }
                }
                self.test_ended(&test.name);
                results.add_test(test.attempts(split_attempt(name).1));
            }
            _ => {}
        }
    }

    fn error_line(&mut self, line: &str, results: &mut TestResults) {
        if let Some(tests) = left_out_by_default(line) {
            results.deselected = results.deselected.saturating_add(tests);
        }
    }

    fn finish(&mut self, results: &mut TestResults) {
        for OpenNextestTests { names, ignored } in std::mem::take(&mut self.open).into_values() {
            // An ignored test is listed even if the selection leaves it out, so that it says nothing about this run.
            if self.is_selection {
                continue;
            }
            let ignored = usize::try_from(ignored).unwrap_or(usize::MAX);
            for (index, name) in names.into_iter().enumerate() {
                if index < ignored {
                    results.add_test(TestCase::new(name, TestStatus::Skipped));
                } else {
                    // Nextest lists the ignored ones first: this one was running when the run ended.
                    results.running.push_back(name);
                }
            }
        }
    }
}
