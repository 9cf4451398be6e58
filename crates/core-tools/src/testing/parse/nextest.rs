//! The output of `cargo nextest run --message-format libtest-json-plus`: a JSON object a line.
//!
//! The totals of its suites contradict each other where a suite is reported twice, so only its tests are counted.

use super::line_parser::LineParser;
use super::text::SourceLocation;
use crate::testing::results::{TestCase, TestResults, TestStatus};
use serde_json::Value;

/// The parser of nextest's output.
#[derive(Default)]
pub(crate) struct NextestParser;

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
                    let prefix = format!("{package}::{binary} ");
                    results.running.retain(|name| !name.starts_with(&prefix));
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
                    let panic = text("stdout").and_then(|output| output.split_once("panicked at "));
                    if let Some(location) = panic.and_then(|(_, after)| SourceLocation::parse(after)) {
                        (test.file, test.line) = (Some(location.file), Some(location.line));
                    }
                }
                results.add_test(test.attempts(split_attempt(name).1));
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &mut TestResults) {}
}
