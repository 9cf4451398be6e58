//! The output of `cargo test`: libtest's text for each binary, and cargo's messages as JSON between.
//!
//! The counts are compared with each summary, and with cargo's exit code.

use super::libtest_suites::{LibtestSuite, OpenLibtestSuites};
use super::line_parser::LineParser;
use super::text::append_line;
use crate::ci::Diagnostic;
use crate::testing::results::{CargoTarget, TestCounts, TestResults, TestRunProblemKind, TestStatus};
use serde_json::Value;
use std::collections::HashMap;

/// The parser of the output of `cargo test`.
#[derive(Default)]
pub(crate) struct LibtestParser {
    suites: OpenLibtestSuites,
    /// The running binary, as cargo names it: `tests/api.rs`, `unittests src/lib.rs`, `Doc-tests name`.
    binary: String,
    /// The target that the running binary is of, where cargo has told.
    target: Option<CargoTarget>,
    /// Cargo has named a binary whose suite has not begun yet.
    after_header: bool,
    /// The binaries that cargo has built and not run yet, by the names of their files, and the libraries whose
    /// documentation it will test. That has no target: rustdoc runs it.
    built: HashMap<String, Option<CargoTarget>>,
    /// Cargo has listed what it has built: its messages are JSON.
    lists_binaries: bool,
    /// Cargo has run a binary: what is printed from now on may be by a test.
    has_run: bool,
    /// The lines are those after `Caused by:`, with which cargo explains how a binary died.
    in_cause: bool,
}

const RESULT_WORDS: [(&str, TestStatus); 3] =
    [("ok", TestStatus::Passed), ("FAILED", TestStatus::Failed), ("ignored", TestStatus::Skipped)];

/// Reads the result at the end of a line, and the reason why a test was ignored.
fn read_result(text: &str) -> Option<(TestStatus, Option<&str>)> {
    let text = text.trim();
    if let Some(reason) = text.strip_prefix("ignored, ") {
        return Some((TestStatus::Skipped, Some(reason)));
    }
    // With `--report-time` the duration follows.
    let word = text.split_once(" <").map_or(text, |(word, _)| word);
    RESULT_WORDS.iter().find(|(name, _)| *name == word).map(|(_, status)| (*status, None))
}

/// Returns the number before `word` in a summary.
fn number_before(text: &str, word: &str) -> Option<u64> {
    text.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().rsplit(' ').next()?.parse().ok())
}

/// Returns the name by which a header can be recognised: of the file in its parentheses, or of the library.
fn binary_id(header: &str) -> Option<String> {
    match header.strip_prefix("Doc-tests ") {
        Some(library) => Some(doctests_id(library)),
        None => header.rsplit_once('(')?.1.strip_suffix(')')?.rsplit(['/', '\\']).next().map(str::to_owned),
    }
}

fn doctests_id(library: &str) -> String {
    format!("Doc-tests {}", library.trim().replace('-', "_"))
}

/// Returns what cargo will run of an artifact: a binary of tests, the documentation of a library.
fn built_by(message: &str) -> Vec<(String, Option<CargoTarget>)> {
    let Ok(value) = serde_json::from_str::<Value>(message) else { return Vec::new() };
    let is_test = value.pointer("/profile/test").and_then(Value::as_bool) == Some(true);
    let executable = value.get("executable").and_then(Value::as_str).filter(|_| is_test);
    let binary = executable.and_then(|path| path.rsplit(['/', '\\']).next()).map(str::to_owned);
    let has_doctests = value.pointer("/target/doctest").and_then(Value::as_bool) == Some(true);
    let library = value.pointer("/target/name").and_then(Value::as_str).filter(|_| has_doctests);
    let binary = binary.map(|binary| (binary, cargo_target(&value)));
    binary.into_iter().chain(library.map(|library| (doctests_id(library), None))).collect()
}

/// Returns the target of an artifact.
fn cargo_target(artifact: &Value) -> Option<CargoTarget> {
    let text = |pointer| artifact.pointer(pointer).and_then(Value::as_str);
    Some(CargoTarget {
        manifest: text("/manifest_path")?.into(),
        kind: text("/target/kind/0")?.to_owned(),
        name: text("/target/name")?.to_owned(),
        source: text("/target/src_path")?.into(),
    })
}

/// Returns a note on the tests of each target, where several have some: documentation is one of them.
fn counts_by_target(suites: &[(String, TestCounts)]) -> Option<String> {
    const MAX_TOLD: usize = 20;
    let ran: Vec<_> = suites.iter().filter(|(_, counts)| counts.executed() > 0).collect();
    let told = ran.iter().take(MAX_TOLD).map(|(header, counts)| {
        let name = header.split(" (").next().unwrap_or_default();
        let name = match name.strip_prefix("Doc-tests ") {
            Some(library) => format!("documentation of {library}"),
            None => name.trim_start_matches("unittests ").to_owned(),
        };
        format!("{} of {name}", counts.executed())
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let more = if ran.len() > MAX_TOLD { ", ..." } else { "" };
    (ran.len() > 1).then(|| format!("tests by target: {told}{more}"))
}

impl LibtestParser {
    /// Reads cargo's header of a binary. Where it is surely cargo's own, the binary before it has ended.
    fn header(&mut self, header: &str, results: &mut TestResults) {
        let built = binary_id(header).and_then(|id| self.built.remove(&id));
        let is_known = built.is_some();
        if self.lists_binaries && !is_known {
            // A test has run cargo, or prints what it prints.
            return;
        }
        // Without cargo's list only a summary tells that the binary before has ended.
        if is_known || self.suites.has_summary() {
            self.suites.close_all(results);
        }
        self.note_silent_binary(results);
        self.has_run = true;
        self.binary = header.to_owned();
        self.target = built.flatten();
        self.after_header = true;
    }

    /// Notes that a binary was run and reported no suite: it has a harness of its own.
    fn note_silent_binary(&mut self, results: &mut TestResults) {
        if self.after_header && self.suites.current().is_none() {
            let binary = self.binary.split(" (").next().unwrap_or_default();
            results
                .notes
                .push(format!("{binary} reported no tests: all that is known of it is cargo's exit code"));
        }
        self.after_header = false;
    }

    /// Reads a line of a suite before the details of its failures.
    fn result_line(&mut self, line: &str, results: &mut TestResults) {
        let Some(suite) = self.suites.current() else { return };
        if let Some(name) = suite.open_test.take() {
            let word = line.rsplit(' ').next().unwrap_or_default();
            // The test itself may have printed something before the word on its line.
            let ending = RESULT_WORDS.iter().find(|(name, _)| word.ends_with(name));
            match read_result(line).or_else(|| ending.map(|(_, status)| (*status, None))) {
                Some((status, reason)) => return self.suites.test_ended(&name, status, reason, results),
                None => suite.open_test = Some(name),
            }
        }
        // A test that writes past the capture may have printed something before `test`.
        let Some((before, after)) = line.split_once(" ... ") else { return };
        let name = match (before.strip_prefix("test "), before.rfind("test ")) {
            (Some(name), _) => name,
            (None, Some(start)) => &before[start + 5..],
            (None, None) => return,
        };
        match read_result(after) {
            Some((status, reason)) => self.suites.test_ended(name, status, reason, results),
            None if line.starts_with("test ") => {
                if let Some(suite) = self.suites.current() {
                    suite.open_test = Some(name.to_owned());
                }
            }
            None => {}
        }
    }
}

impl LineParser for LibtestParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        if line.starts_with("{\"reason\":") {
            if let Some(diagnostic) = Diagnostic::from_cargo(line) {
                results.add_diagnostic(diagnostic);
            } else if !self.has_run && line.starts_with("{\"reason\":\"compiler-artifact\"") {
                self.built.extend(built_by(line));
                self.lists_binaries |= !self.built.is_empty();
            }
            return;
        }
        let trimmed = line.trim_start();
        let is_header = line.starts_with("     Running ") || line.starts_with("   Doc-tests ");
        if is_header {
            return self.header(trimmed.strip_prefix("Running ").unwrap_or(trimmed), results);
        }
        let in_details = self.suites.current().is_some_and(|suite| suite.in_details);
        if !in_details
            && let Some(count) = line.strip_prefix("running ")
            && let Some((count, "test" | "tests")) = count.split_once(' ')
            && let Ok(expected) = count.parse()
        {
            let suite = LibtestSuite::new(self.binary.clone(), self.after_header, expected);
            if self.suites.begin(suite, results) {
                self.after_header = false;
                if let Some(target) = self.target.take() {
                    results.claims.add_cargo_target(target);
                }
            }
            return;
        }
        if self.suites.current().is_none() {
            // A binary without libtest died, or cargo explains the end of the last one.
            if self.in_cause
                && trimmed.starts_with("process didn't exit successfully")
                && line.contains("(signal:")
            {
                results.add_problem(TestRunProblemKind::Crashed, trimmed.to_owned());
            }
            self.in_cause = trimmed == "Caused by:" || (self.in_cause && !trimmed.is_empty());
            return;
        }
        if let Some(summary) = line.strip_prefix("test result: ")
            && let (Some(passed), Some(failed), Some(skipped)) = (
                number_before(summary, "passed"),
                number_before(summary, "failed"),
                number_before(summary, "ignored"),
            )
        {
            let measured = number_before(summary, "measured").unwrap_or_default();
            let filtered_out = number_before(summary, "filtered out").unwrap_or_default();
            let counts = TestCounts { passed, failed, skipped };
            self.suites.summary(counts, measured, results);
            // Not of a suite that a test printed.
            if self.suites.current().is_none() {
                results.deselected = results.deselected.saturating_add(filtered_out);
            }
            return;
        }
        let Some(suite) = self.suites.current() else { return };
        match line {
            "failures:" | "successes:" if suite.open_test.is_none() => {
                (suite.in_details, suite.section) = (true, None);
            }
            _ if !suite.in_details => self.result_line(line, results),
            _ => {
                let name = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
                if let Some(index) =
                    name.and_then(|name| suite.failed_by_name.get(name.trim_end_matches(" - should panic")))
                {
                    suite.section = Some(*index);
                } else if let Some(test) = suite.section.and_then(|index| suite.failed.get_mut(index)) {
                    append_line(test.error.get_or_insert_default(), line);
                }
            }
        }
    }

    fn finish(&mut self, results: &mut TestResults) {
        self.suites.close_all(results);
        self.note_silent_binary(results);
        results.notes.extend(counts_by_target(&results.suites));
    }
}
