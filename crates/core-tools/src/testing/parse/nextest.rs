//! `cargo nextest run --message-format libtest-json-plus`: a JSON object a line.
//!
//! The totals of its suites contradict each other where a suite is told twice; only its tests are counted.

use super::super::found::Found;
use super::super::report::{Status, TestCase};
use super::{Lines, place};
use serde_json::Value;

/// The parser.
#[derive(Default)]
pub(in super::super) struct Nextest;

/// `package::binary$test` as nextest shows it: `package::binary test`. One that was tried again ends as
/// `package::binary$test#3`.
fn shown(name: &str) -> String {
    let tried = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let name = match name.rsplit_once('#') {
        Some((name, number)) if tried(number) => name,
        _ => name,
    };
    name.replacen('$', " ", 1)
}

impl Lines for Nextest {
    fn line(&mut self, line: &str, found: &mut Found) {
        if !line.starts_with('{') {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        match (text("type"), text("event"), text("name")) {
            (Some("suite"), Some("started"), _) => {
                let count = event.get("test_count").and_then(Value::as_u64).unwrap_or_default();
                let expected = found.expected.get_or_insert_default();
                *expected = expected.saturating_add(count);
            }
            // Ignored tests that are not selected begin and never end.
            (Some("suite"), Some(_), _) => {
                let part = |key: &str| event.pointer(&format!("/nextest/{key}")).and_then(Value::as_str);
                if let (Some(package), Some(binary)) = (part("crate"), part("test_binary")) {
                    let prefix = format!("{package}::{binary} ");
                    found.running.retain(|name| !name.starts_with(&prefix));
                }
            }
            (Some("test"), Some("started"), Some(name)) => found.start(&shown(name)),
            (Some("test"), Some(event_name), Some(name)) => {
                let status = match event_name {
                    "ok" => Status::Passed,
                    "ignored" => Status::Skipped,
                    "timeout" => Status::TimedOut,
                    "failed" if text("reason") == Some("time limit exceeded") => Status::TimedOut,
                    _ => Status::Failed,
                };
                let mut test = TestCase::new(shown(name), status);
                test.duration_ms = event.get("exec_time").and_then(Value::as_f64).map(|time| time * 1000.0);
                if status.is_failure() {
                    let parts = [text("reason"), text("message"), text("stdout")];
                    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
                    test.error = Some(parts.join("\n"));
                    let panic = text("stdout").and_then(|output| output.split_once("panicked at "));
                    if let Some((file, line)) = panic.and_then(|(_, after)| place(after)) {
                        (test.file, test.line) = (Some(file), Some(line));
                    }
                }
                found.push(test);
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &mut Found) {}
}
