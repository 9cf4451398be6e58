//! XML reports: `JUnit`'s, as Surefire, Gradle, `CTest`, `PHPUnit`, deno and bun write it, and Visual Studio's
//! TRX.

use super::printed_summary::printed_summary;
use super::text::{FailureLocation, append_line};
use super::trx;
use super::xml_attributes::{number, text};
use crate::testing::results::{
    ContradictedPass, TestCase, TestCounts, TestResults, TestRunProblemKind, TestStatus,
};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Reads a document into `results`. Of one that breaks off, the tests before the break are kept, and the break
/// is a problem.
pub(crate) fn read_xml(document: &[u8], results: &mut TestResults) {
    let mut reader = Reader::from_reader(document);
    reader.config_mut().check_end_names = false;
    let mut state = JunitReader::default();
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                depth += 1;
                state.start(&element);
            }
            Ok(Event::Empty(element)) => {
                state.start(&element);
                state.end(element.local_name().as_ref(), results);
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                state.end(element.local_name().as_ref(), results);
            }
            Ok(Event::Text(text)) => state.add_text(&text.xml10_content().unwrap_or_default()),
            Ok(Event::CData(text)) => state.add_text(&String::from_utf8_lossy(&text)),
            Ok(Event::GeneralRef(reference)) => {
                let name = String::from_utf8_lossy(&reference).into_owned();
                let character = match name.as_str() {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => reference.resolve_char_ref().ok().flatten(),
                };
                state.add_character(character);
            }
            Ok(Event::Eof) if depth == 0 => break,
            Ok(Event::Eof) => {
                results.add_problem(TestRunProblemKind::Crashed, "the runner's XML report breaks off");
                break;
            }
            Err(error) => {
                results.add_problem(
                    TestRunProblemKind::Crashed,
                    format!("the runner's XML report cannot be read: {error}"),
                );
                break;
            }
            Ok(_) => {}
        }
    }
}

/// The number of bytes of text of one element that are read.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The reasons of tests that `CTest` reports as skipped and counts as failed.
const COULD_NOT_RUN: [&str; 6] = [
    "Unable to find",
    "Fixture dependency failed",
    "Required Files Missing",
    "Missing Configuration",
    "Insufficient resources",
    "Invalid resource",
];

/// The elements that are open, and what they hold so far.
#[derive(Default)]
struct JunitReader {
    test: Option<TestCase>,
    /// The number of its attempts beside the one that counts, as Surefire writes them.
    repeats: u64,
    /// The part of the test that text belongs to.
    text_target: Option<JunitTextTarget>,
    text: String,
    output: String,
    /// The open suites, the outermost first.
    suites: Vec<JunitSuite>,
}

/// A suite, and the numbers it declares.
#[derive(Default)]
struct JunitSuite {
    /// The counts in its attributes.
    declared: Option<TestCounts>,
    /// The tests in it and in no suite within it.
    direct: TestCounts,
    /// It contains suites. Its declared counts include theirs in some dialects, and do not in others.
    has_suites: bool,
    /// The number of tests that it counts as skipped and that could not be run.
    not_run: u64,
    /// The number of tests that it counts as errors and that passed.
    risky: u64,
}

impl JunitSuite {
    /// Returns the declared counts, corrected, where they are those of this suite alone; otherwise the tests in
    /// it.
    fn counts(self) -> TestCounts {
        match self.declared {
            Some(mut counts) if !self.has_suites => {
                counts.skipped = counts.skipped.saturating_sub(self.not_run);
                counts.failed = counts.failed.saturating_add(self.not_run).saturating_sub(self.risky);
                counts.passed = counts.passed.saturating_add(self.risky);
                counts
            }
            _ => self.direct,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum JunitTextTarget {
    Error,
    Output,
}

/// Reads the counts in the attributes of a suite. Counts that contradict each other are none.
fn declared_counts(element: &BytesStart<'_>) -> Option<TestCounts> {
    let tests = number(element, "tests")?;
    let failed = number(element, "failures")?.checked_add(number(element, "errors").unwrap_or_default())?;
    let skipped = number(element, "skipped")
        .unwrap_or_default()
        .checked_add(number(element, "disabled").unwrap_or_default())?;
    Some(TestCounts { passed: tests.checked_sub(failed.checked_add(skipped)?)?, failed, skipped })
}

impl JunitReader {
    fn start(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            b"testsuite" => {
                if let Some(parent) = self.suites.last_mut() {
                    parent.has_suites = true;
                }
                self.suites.push(JunitSuite { declared: declared_counts(element), ..JunitSuite::default() });
            }
            b"testcase" => {
                self.repeats = 0;
                self.test = Some(test_case(element));
            }
            b"UnitTestResult" => self.test = Some(trx::test_case(element)),
            name @ (b"failure" | b"error" | b"skipped" | b"rerunFailure" | b"rerunError"
            | b"flakyFailure" | b"flakyError" | b"ErrorInfo") => {
                let Some(test) = &mut self.test else { return };
                if name.starts_with(b"rerun") || name.starts_with(b"flaky") {
                    self.repeats += 1;
                }
                let message = text(element, "message");
                let status = match name {
                    b"failure" | b"ErrorInfo" => Some(TestStatus::Failed),
                    // PHPUnit reports a test that asserts nothing as an error, and its exit code does not.
                    b"error"
                        if text(element, "type").is_some_and(|kind| kind.ends_with("RiskyTestError")) =>
                    {
                        self.suites.iter_mut().for_each(|suite| suite.risky += 1);
                        None
                    }
                    b"error" => Some(TestStatus::Errored),
                    b"skipped"
                        if message.as_deref().is_some_and(|text| {
                            COULD_NOT_RUN.iter().any(|reason| text.starts_with(reason))
                        }) =>
                    {
                        self.suites.iter_mut().for_each(|suite| suite.not_run += 1);
                        Some(TestStatus::Errored)
                    }
                    b"skipped" => Some(TestStatus::Skipped),
                    _ => None,
                };
                // A skip beside a failure is an expected failure.
                if let Some(status) = status
                    .filter(|status| test.status != TestStatus::Skipped || *status == TestStatus::Errored)
                {
                    test.status = status;
                }
                self.text.clear();
                if let Some(message) = message.filter(|message| !message.is_empty()) {
                    append_line(test.error.get_or_insert_default(), &message);
                }
                self.text_target = Some(JunitTextTarget::Error);
            }
            b"system-out" | b"system-err" | b"StdOut" | b"StdErr" if self.test.is_some() => {
                self.text.clear();
                self.text_target = Some(JunitTextTarget::Output);
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        if self.text_target.is_some() && self.text.len() < MAX_TEXT_BYTES {
            self.text.push_str(text);
        }
    }

    fn add_character(&mut self, character: Option<char>) {
        if let Some(character) = character {
            self.add_text(character.encode_utf8(&mut [0; 4]));
        }
    }

    fn end(&mut self, name: &[u8], results: &mut TestResults) {
        match name {
            b"testsuite" => {
                if let Some(suite) = self.suites.pop() {
                    results.add_declared(suite.counts());
                }
            }
            b"testcase" | b"UnitTestResult" => {
                let Some(mut test) = self.test.take() else { return };
                self.text_target = None;
                let output = std::mem::take(&mut self.output);
                if test.status.is_failure() {
                    if test.file.is_none()
                        && let Some(location) = test.error.as_deref().and_then(failure_location)
                    {
                        (test.file, test.line) = (Some(location.file), Some(location.line));
                    }
                    if !output.trim().is_empty() {
                        append_line(test.error.get_or_insert_default(), output.trim());
                    }
                } else if test.status == TestStatus::Passed
                    && let Some(summary) =
                        output.lines().filter_map(printed_summary).find(|summary| summary.has_failures)
                {
                    results.claims.add_contradicted(ContradictedPass { test: test.name.clone(), summary });
                }
                match self.suites.last_mut() {
                    Some(suite) => suite.direct.count(test.status),
                    None => {
                        let mut alone = TestCounts::default();
                        alone.count(test.status);
                        if results.declared.is_some() {
                            results.add_declared(alone);
                        }
                    }
                }
                results.add_test(test.attempts(1 + std::mem::take(&mut self.repeats)));
            }
            b"failure" | b"error" | b"skipped" | b"system-out" | b"system-err" | b"rerunFailure"
            | b"rerunError" | b"flakyFailure" | b"flakyError" | b"Message" | b"StackTrace" | b"StdOut"
            | b"StdErr" => {
                let text = std::mem::take(&mut self.text);
                let Some(test) = &mut self.test else { return };
                match self.text_target {
                    Some(JunitTextTarget::Error) => {
                        let error = test.error.get_or_insert_default();
                        let text = text.trim();
                        // Most writers repeat the message at the head of the text.
                        if text.starts_with(error.as_str()) {
                            error.clear();
                        }
                        if !text.is_empty() {
                            append_line(error, text);
                        }
                    }
                    Some(JunitTextTarget::Output) => append_line(&mut self.output, text.trim()),
                    None => {}
                }
                if name != b"Message" {
                    self.text_target = None;
                }
            }
            _ => {}
        }
    }
}

/// Reads the attributes of a `testcase`.
fn test_case(element: &BytesStart<'_>) -> TestCase {
    let name = text(element, "name").unwrap_or_default();
    let class = text(element, "classname");
    // Deno has the file for the class: a name alone is what selects its tests.
    let file = class.as_deref().and_then(script_file).map(str::to_owned);
    let class = class.filter(|_| file.is_none());
    let class = class.filter(|class| !class.is_empty() && !name.starts_with(class.as_str()));
    let status = match text(element, "status").as_deref() {
        Some("notrun" | "disabled" | "skipped") => TestStatus::Skipped,
        Some("fail" | "failed") => TestStatus::Failed,
        _ => TestStatus::Passed,
    };
    let name = match class {
        Some(class) if class != name => format!("{class}.{name}"),
        _ => name,
    };
    let time = text(element, "time").and_then(|time| time.replace(',', "").parse::<f64>().ok());
    TestCase {
        duration_ms: time.map(|seconds| (seconds * 1_000_000.0).round() / 1000.0),
        file: text(element, "file").or(file),
        line: number(element, "line"),
        ..TestCase::new(name, status)
    }
}

/// Returns the path in the `classname` that Deno writes: `./tests/a_test.ts`.
fn script_file(class: &str) -> Option<&str> {
    const EXTENSIONS: [&str; 6] = [".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs"];
    let path = class.strip_prefix("./").or_else(|| class.starts_with("file://").then_some(class))?;
    EXTENSIONS.iter().any(|extension| path.ends_with(extension)).then_some(path)
}

/// Reads the location of a failure: in a Java stack trace the first frame of a test,
/// `at demo.AdderTest.fails(AdderTest.java:12)`, else a `FILE:LINE` at the beginning of a line.
fn failure_location(error: &str) -> Option<FailureLocation> {
    let in_java_frame = |line: &str| {
        let inner = line.trim().strip_prefix("at ")?.rsplit_once('(')?.1.strip_suffix(')')?;
        FailureLocation::parse(inner).filter(|location| location.file.contains("Test"))
    };
    let at_line_start = |line: &str| {
        FailureLocation::parse(line)
            .filter(|location| location.file.contains('.') && !location.file.contains(' '))
    };
    error.lines().find_map(in_java_frame).or_else(|| error.lines().find_map(at_line_start))
}
