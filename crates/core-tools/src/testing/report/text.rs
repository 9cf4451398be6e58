//! A report as text for people and for models: first what failed, by name, then why.

use super::test_report::TestReport;
use crate::testing::results::{OutputExcerpt, TestCase, TestStatus};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The number of bytes of the list of failed tests.
const MAX_NAMES_BYTES: usize = 8_000;
/// The number of bytes of the messages of all failed tests together.
const MAX_DETAILS_BYTES: usize = 16_000;
/// The number of bytes that the message of one failed test has, however many there are.
const MIN_DETAIL_BYTES: usize = 400;
/// The number of skipped tests that are listed.
const MAX_SKIPPED: usize = 10;

impl TestReport {
    /// Returns the report as text, for people and for clients that show only text: the counts, the names of all failed
    /// tests, one line each, and then the message of each, of which none takes the room of the others.
    pub fn to_text(&self) -> String {
        let mut text = self.headline();
        for (count, what) in
            [(self.flaky, "flaky: passed after an attempt that failed"), (self.deselected, "not selected")]
        {
            if count > 0 {
                let _ = write!(text, "\n{count} {what}");
            }
        }
        if let Some(error) = &self.error {
            let _ = write!(text, "\nerror: {}", error.message);
        }
        let failures: Vec<_> = self.tests.iter().filter(|test| test.status.is_failure()).collect();
        if failures.len() > 1 {
            self.write_names(&failures, &mut text);
        }
        self.write_commands(&mut text);
        for diagnostic in &self.diagnostics {
            let _ = write!(text, "\n{diagnostic}");
        }
        for tests in &self.not_run {
            let _ = write!(text, "\nnot run: {tests}");
        }
        for note in &self.notes {
            let _ = write!(text, "\nnote: {note}");
        }
        self.write_details(&failures, &mut text);
        self.write_flaky_and_skipped(&mut text);
        self.write_new_files(&mut text);
        if let Some(output) = &self.output {
            let _ = write!(text, "\n--- output ---\n{}", output.trim_end());
        }
        let _ = write!(text, "\n$ {}", self.command);
        text
    }

    fn headline(&self) -> String {
        format!(
            "{}: {} passed, {} failed, {} skipped in {}.{:03} s ({}, exit code {})",
            match self.success {
                Some(true) => "ok",
                Some(false) => "FAILED",
                None if self.passed == 0 => {
                    "NOTHING VERIFIED (the command succeeded and reported no test that was executed)"
                }
                None =>
                    "NOT VERIFIED (the command succeeded, and what became of a part of its tests is not known)",
            },
            self.passed,
            self.failed,
            self.skipped,
            self.duration_ms / 1000,
            self.duration_ms % 1000,
            self.runner,
            self.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        )
    }

    /// Writes the names of the failed tests, one line each, and how many more there are.
    fn write_names(&self, failures: &[&TestCase], text: &mut String) {
        let end = text.len() + MAX_NAMES_BYTES;
        let mut listed = 0;
        for test in failures {
            let line = line_of(test);
            if text.len() + line.len() > end {
                break;
            }
            let _ = write!(text, "\n{line}");
            listed += 1;
        }
        let more = self.failed.saturating_sub(listed);
        if more > 0 {
            let _ = write!(text, "\n... and {more} more failed tests, whose names are left out");
        }
    }

    fn write_commands(&self, text: &mut String) {
        let explains =
            self.commands.len() > 1 || self.commands.iter().any(|command| command.runner.is_none());
        for command in self.commands.iter().filter(|_| explains) {
            let _ = write!(text, "\ncommand: {command}");
        }
    }

    /// Writes the messages of the failed tests, each in its share of the room.
    fn write_details(&self, failures: &[&TestCase], text: &mut String) {
        let share = MAX_DETAILS_BYTES / failures.len().max(1);
        // Names and the indentation of short lines come on top of the messages.
        let end = text.len() + 2 * MAX_DETAILS_BYTES;
        let mut told = 0;
        let mut names_by_message: HashMap<&str, &str> = HashMap::new();
        let mut shown_functions: HashSet<&str> = HashSet::new();
        for test in failures {
            // Beyond this number, a share would be too short to say what was wrong.
            if text.len() >= end || told * MIN_DETAIL_BYTES >= MAX_DETAILS_BYTES {
                break;
            }
            told += 1;
            let header = if failures.len() > 1 { format!("--- {} ---", test.name) } else { line_of(test) };
            let Some(error) = &test.error else {
                // With several failures, the list of names has told of this one already.
                if failures.len() == 1 {
                    let _ = write!(text, "\n{header}");
                }
                continue;
            };
            let _ = write!(text, "\n{header}");
            let max_bytes = share.max(MIN_DETAIL_BYTES);
            // The tests of one function have its source in common, which is most of a message of pytest.
            let function = test.name.split_once('[').map_or(test.name.as_str(), |(function, _)| function);
            let is_shown = shown_functions.contains(function);
            // One broken fixture fails many tests with one message. It takes its room once.
            match (names_by_message.get(error.as_str()), assertion(error).filter(|_| is_shown)) {
                (Some(name), _) => {
                    let _ = write!(text, "\n    the same as {name}");
                }
                (None, Some(assertion)) => {
                    write_indented(&OutputExcerpt::new(&assertion, max_bytes).text, text);
                }
                (None, None) => write_indented(&OutputExcerpt::new(error, max_bytes).text, text),
            }
            names_by_message.entry(error).or_insert(&test.name);
            shown_functions.insert(function);
        }
        let more = failures.len() - told;
        if more > 0 {
            let _ = write!(
                text,
                "\n... the messages of {more} more failed tests are left out; `test_path` runs one of them alone"
            );
        }
    }

    fn write_flaky_and_skipped(&self, text: &mut String) {
        for test in self.tests.iter().filter(|test| test.flaky) {
            let _ = write!(text, "\n{}", line_of(test));
        }
        let mut skipped = self.tests.iter().filter(|test| test.status == TestStatus::Skipped);
        for test in skipped.by_ref().take(MAX_SKIPPED) {
            let _ = write!(text, "\n{}", line_of(test));
            if let Some(error) = &test.error {
                write_indented(error, text);
            }
        }
        let more = skipped.count();
        if more > 0 {
            let _ = write!(text, "\n... and {more} more skipped tests");
        }
    }

    fn write_new_files(&self, text: &mut String) {
        if !self.new_files.is_empty() {
            let _ = write!(
                text,
                "\nleft in the repository, untracked, by this run: {}",
                self.new_files.join(", ")
            );
        }
    }
}

/// Returns the lines of a message of pytest that say what was wrong, without the source around them.
fn assertion(message: &str) -> Option<String> {
    let lines: Vec<&str> = message.lines().filter(|line| line.starts_with("E ")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns status, name and place of a test on one line.
fn line_of(test: &TestCase) -> String {
    let status = if test.flaky { "flaky" } else { test.status.name() };
    let mut line = format!("{status}: {}", test.name.replace('\n', " "));
    if let Some(attempts) = test.attempts {
        let _ = write!(line, " [attempt {attempts}]");
    }
    if let Some(file) = &test.file {
        let _ = write!(line, " ({file}");
        if let Some(number) = test.line {
            let _ = write!(line, ":{number}");
        }
        if let Some(place) = &test.raised_at {
            let _ = write!(line, "; raised at {place}");
        }
        line.push(')');
    }
    line
}

fn write_indented(message: &str, text: &mut String) {
    for line in message.lines() {
        let _ = write!(text, "\n    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failures: usize, message: &str) -> TestReport {
        let mut report = TestReport::new("nextest");
        report.command = "cargo nextest run".to_owned();
        for index in 0..failures {
            let test = TestCase::new(format!("test {index}"), TestStatus::Failed);
            let error = Some(format!("{index}: {message}"));
            report.tests.push(TestCase { error, file: Some("src/lib.rs".into()), line: Some(7), ..test });
        }
        report.failed = failures as u64;
        report
    }

    #[test]
    fn all_failed_tests_are_named_before_the_first_message() {
        let text = report(20, &"a long difference\n".repeat(400)).to_text();
        let first_message = text.find("a long difference").unwrap();
        for index in 0..20 {
            let line = format!("\nfailed: test {index} (src/lib.rs:7)\n");
            assert!(text.find(&line).unwrap() < first_message, "{index}: {text}");
            assert!(text.contains(&format!("\n--- test {index} ---\n    {index}: a long")), "{text}");
        }
        assert!(text.len() < 30_000, "{} bytes", text.len());
    }

    #[test]
    fn one_failure_stands_with_its_message_and_a_repeated_message_is_told_once() {
        insta::assert_snapshot!(report(1, "why\nhow").to_text(), @r"
        FAILED: 0 passed, 1 failed, 0 skipped in 0.000 s (nextest, exit code none)
        failed: test 0 (src/lib.rs:7)
            0: why
            how
        $ cargo nextest run
        ");
        let mut same = report(2, "");
        same.tests.iter_mut().for_each(|test| test.error = Some("one cause".to_owned()));
        let text = same.to_text();
        assert!(text.contains("--- test 1 ---\n    the same as test 0"), "{text}");
        assert_eq!(text.matches("one cause").count(), 1);
    }

    #[test]
    fn of_thousands_of_failures_and_skips_the_first_are_told_and_the_others_counted() {
        let mut many = report(5_000, &"m".repeat(2_000));
        let skipped = |index| TestCase::new(format!("skipped {index}"), TestStatus::Skipped);
        many.tests.extend((0..30).map(skipped));
        let text = many.to_text();
        assert!(text.len() < 50_000, "{} bytes", text.len());
        let listed = text.lines().filter(|line| line.starts_with("failed: ")).count();
        assert!(text.contains(&format!("... and {} more failed tests", 5_000 - listed)), "{text}");
        assert!(text.contains("more failed tests are left out; `test_path`"), "{text}");
        assert!(text.contains("... and 20 more skipped tests"), "{text}");
    }

    #[test]
    fn the_source_of_a_test_with_parameters_stands_once() {
        let mut report = TestReport::new("pytest");
        for parameter in ["1", "2"] {
            let test = TestCase::new(format!("a.py::f[{parameter}]"), TestStatus::Failed);
            let error = Some(format!("def f(x):\n>   assert x == 3\nE   assert {parameter} == 3"));
            report.tests.push(TestCase { error, ..test });
        }
        report.failed = 2;
        let text = report.to_text();
        assert_eq!(text.matches("def f(x):").count(), 1, "{text}");
        assert!(text.contains("E   assert 1 == 3") && text.contains("E   assert 2 == 3"), "{text}");
    }
}
