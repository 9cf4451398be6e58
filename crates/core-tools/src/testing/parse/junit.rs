//! `JUnit`'s XML, as Surefire, Gradle, `CTest`, `PHPUnit`, deno and bun write it, and Visual Studio's TRX.

use super::super::found::{Counts, Found};
use super::super::report::{ProblemKind, Status, TestCase};
use super::{append, place};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Reads a document into `found`. One that breaks off keeps the tests before the break, and is a problem.
pub(in super::super) fn junit(document: &[u8], found: &mut Found) {
    let mut reader = Reader::from_reader(document);
    reader.config_mut().check_end_names = false;
    let mut state = State::default();
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                depth += 1;
                state.start(&element);
            }
            Ok(Event::Empty(element)) => {
                state.start(&element);
                state.end(element.local_name().as_ref(), found);
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                state.end(element.local_name().as_ref(), found);
            }
            Ok(Event::Text(text)) => state.text(&text.xml10_content().unwrap_or_default()),
            Ok(Event::CData(text)) => state.text(&String::from_utf8_lossy(&text)),
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
                state.character(character);
            }
            Ok(Event::Eof) if depth == 0 => break,
            Ok(Event::Eof) => {
                found.problem(ProblemKind::Crashed, "the runner's XML report breaks off");
                break;
            }
            Err(error) => {
                found.problem(
                    ProblemKind::Crashed,
                    format!("the runner's XML report cannot be read: {error}"),
                );
                break;
            }
            Ok(_) => {}
        }
    }
}

/// What `CTest` tells as skipped, and counts as failed.
const COULD_NOT_RUN: [&str; 6] = [
    "Unable to find",
    "Fixture dependency failed",
    "Required Files Missing",
    "Missing Configuration",
    "Insufficient resources",
    "Invalid resource",
];

#[derive(Default)]
struct State {
    test: Option<TestCase>,
    /// Where text goes.
    collecting: Option<Collect>,
    text: String,
    output: String,
    /// The open ones, the outermost first.
    suites: Vec<Suite>,
}

/// A suite.
#[derive(Default)]
struct Suite {
    /// What it says it holds.
    declared: Option<Counts>,
    /// The tests that stand in it, and in no suite within it.
    direct: Counts,
    /// It holds suites, and its numbers may or may not hold theirs.
    nested: bool,
    /// Tests that it counts as skipped and that could not be run.
    not_run: u64,
    /// Tests that it counts as errors and that passed.
    risky: u64,
}

impl Suite {
    fn counts(self) -> Counts {
        match self.declared {
            Some(mut counts) if !self.nested => {
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
enum Collect {
    Error,
    Output,
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).ok().flatten()?;
    Some(match attribute.unescape_value() {
        Ok(value) => value.into_owned(),
        Err(_) => String::from_utf8_lossy(&attribute.value).into_owned(),
    })
}

fn number(element: &BytesStart<'_>, name: &str) -> Option<u64> {
    attribute(element, name)?.trim().parse().ok()
}

/// What a suite says it holds.
fn declared(element: &BytesStart<'_>) -> Option<Counts> {
    let tests = number(element, "tests")?;
    let failed = number(element, "failures")?.checked_add(number(element, "errors").unwrap_or_default())?;
    let skipped = number(element, "skipped")
        .unwrap_or_default()
        .checked_add(number(element, "disabled").unwrap_or_default())?;
    Some(Counts { passed: tests.checked_sub(failed.checked_add(skipped)?)?, failed, skipped })
}

impl State {
    fn start(&mut self, element: &BytesStart<'_>) {
        match element.local_name().as_ref() {
            b"testsuite" => {
                if let Some(parent) = self.suites.last_mut() {
                    parent.nested = true;
                }
                self.suites.push(Suite { declared: declared(element), ..Suite::default() });
            }
            b"testcase" => self.test = Some(test_case(element)),
            b"UnitTestResult" => self.test = Some(trx(element)),
            name @ (b"failure" | b"error" | b"skipped" | b"rerunFailure" | b"rerunError" | b"ErrorInfo") => {
                let Some(test) = &mut self.test else { return };
                let message = attribute(element, "message");
                let status = match name {
                    b"failure" | b"ErrorInfo" => Some(Status::Failed),
                    // PHPUnit's word for a test that asserts nothing; its exit code does not know it.
                    b"error"
                        if attribute(element, "type")
                            .is_some_and(|kind| kind.ends_with("RiskyTestError")) =>
                    {
                        self.suites.iter_mut().for_each(|suite| suite.risky += 1);
                        None
                    }
                    b"error" => Some(Status::Errored),
                    b"skipped"
                        if message.as_deref().is_some_and(|text| {
                            COULD_NOT_RUN.iter().any(|reason| text.starts_with(reason))
                        }) =>
                    {
                        self.suites.iter_mut().for_each(|suite| suite.not_run += 1);
                        Some(Status::Errored)
                    }
                    b"skipped" => Some(Status::Skipped),
                    _ => None,
                };
                // A skip beside a failure is an expected failure.
                if let Some(status) =
                    status.filter(|status| test.status != Status::Skipped || *status == Status::Errored)
                {
                    test.status = status;
                }
                self.text.clear();
                if let Some(message) = message.filter(|message| !message.is_empty()) {
                    append(test.error.get_or_insert_default(), &message);
                }
                self.collecting = Some(Collect::Error);
            }
            b"system-out" | b"system-err" | b"StdOut" | b"StdErr" if self.test.is_some() => {
                self.text.clear();
                self.collecting = Some(Collect::Output);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.collecting.is_some() && self.text.len() < 64 << 10 {
            self.text.push_str(text);
        }
    }

    fn character(&mut self, character: Option<char>) {
        if let Some(character) = character {
            self.text(character.encode_utf8(&mut [0; 4]));
        }
    }

    fn end(&mut self, name: &[u8], found: &mut Found) {
        match name {
            b"testsuite" => {
                if let Some(suite) = self.suites.pop() {
                    found.declare(suite.counts());
                }
            }
            b"testcase" | b"UnitTestResult" => {
                let Some(mut test) = self.test.take() else { return };
                self.collecting = None;
                let output = std::mem::take(&mut self.output);
                if test.status.is_failure() {
                    if test.file.is_none()
                        && let Some((file, line)) = test.error.as_deref().and_then(stack_place)
                    {
                        (test.file, test.line) = (Some(file), Some(line));
                    }
                    if !output.trim().is_empty() {
                        append(test.error.get_or_insert_default(), output.trim());
                    }
                }
                match self.suites.last_mut() {
                    Some(suite) => suite.direct.add(test.status),
                    None => {
                        let mut alone = Counts::default();
                        alone.add(test.status);
                        if found.declared.is_some() {
                            found.declare(alone);
                        }
                    }
                }
                found.push(test);
            }
            b"failure" | b"error" | b"skipped" | b"system-out" | b"system-err" | b"rerunFailure"
            | b"rerunError" | b"Message" | b"StackTrace" | b"StdOut" | b"StdErr" => {
                let text = std::mem::take(&mut self.text);
                let Some(test) = &mut self.test else { return };
                match self.collecting {
                    Some(Collect::Error) => {
                        let error = test.error.get_or_insert_default();
                        let text = text.trim();
                        // Most writers repeat the message at the head of the text.
                        if text.starts_with(error.as_str()) {
                            error.clear();
                        }
                        if !text.is_empty() {
                            append(error, text);
                        }
                    }
                    Some(Collect::Output) => append(&mut self.output, text.trim()),
                    None => {}
                }
                if name != b"Message" {
                    self.collecting = None;
                }
            }
            _ => {}
        }
    }
}

fn test_case(element: &BytesStart<'_>) -> TestCase {
    let name = attribute(element, "name").unwrap_or_default();
    let class = attribute(element, "classname")
        .filter(|class| !class.is_empty() && !name.starts_with(class.as_str()));
    let status = match attribute(element, "status").as_deref() {
        Some("notrun" | "disabled" | "skipped") => Status::Skipped,
        Some("fail" | "failed") => Status::Failed,
        _ => Status::Passed,
    };
    let name = match class {
        Some(class) if class != name => format!("{class}.{name}"),
        _ => name,
    };
    let time = attribute(element, "time").and_then(|time| time.replace(',', "").parse::<f64>().ok());
    TestCase {
        duration_ms: time.map(|seconds| (seconds * 1_000_000.0).round() / 1000.0),
        file: attribute(element, "file"),
        line: number(element, "line"),
        ..TestCase::new(name, status)
    }
}

/// `UnitTestResult` of TRX; its duration is `hh:mm:ss.fffffff`.
fn trx(element: &BytesStart<'_>) -> TestCase {
    let status = match attribute(element, "outcome").as_deref() {
        Some("Passed") => Status::Passed,
        Some("Failed") => Status::Failed,
        Some("Timeout") => Status::TimedOut,
        Some("Error" | "Aborted") => Status::Errored,
        _ => Status::Skipped,
    };
    let duration = attribute(element, "duration").and_then(|text| {
        text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    });
    TestCase {
        duration_ms: duration.map(|seconds| (seconds * 1_000_000.0).round() / 1000.0),
        ..TestCase::new(attribute(element, "testName").unwrap_or_default(), status)
    }
}

/// The last place of a Java stack trace that is a test: `at demo.AdderTest.fails(AdderTest.java:12)`, or a
/// `FILE:LINE` at the head of a line.
fn stack_place(error: &str) -> Option<(String, u64)> {
    let java = error.lines().find_map(|line| {
        let inner = line.trim().strip_prefix("at ")?.rsplit_once('(')?.1.strip_suffix(')')?;
        let (file, line) = place(inner)?;
        file.contains("Test").then_some((file, line))
    });
    java.or_else(|| {
        error
            .lines()
            .find_map(|line| place(line).filter(|(file, _)| file.contains('.') && !file.contains(' ')))
    })
}
