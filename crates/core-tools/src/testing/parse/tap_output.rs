//! TAP documents among anything else that a command prints.

use super::line_parser::LineParser;
use super::tap::TapParser;
use crate::testing::results::{PrintedSummary, TestCase, TestProcessReport, TestResults, TestRunProblemKind};

/// Finds the TAP documents in the output of a command, and reads their tests.
///
/// A program that prints `ok` is not TAP: a document has a version line or a plan, and its first test has the
/// number 1.
#[derive(Default)]
pub(super) struct TapOutput {
    open: Option<TapDocument>,
    complete: Vec<TestResults>,
    /// A failed test of what is no whole document.
    stray_failure: Option<String>,
}

#[derive(Default)]
struct TapDocument {
    parser: TapParser,
    results: TestResults,
    has_version: bool,
    has_plan: bool,
    /// The number of tests in the plan.
    planned: u64,
    has_bailed_out: bool,
    tests: u64,
    first_failure: Option<String>,
}

/// The kinds of lines that a document consists of, as far as they say where one begins.
enum TapLine {
    Version,
    Plan {
        tests: u64,
    },
    Test {
        number: Option<u64>,
    },
    /// `ok` and nothing else, as `prove -v` ends a file, too.
    Ok,
    BailOut,
    Other,
}

impl TapLine {
    fn of(line: &str) -> Self {
        if line.starts_with("TAP version ") {
            return Self::Version;
        }
        if let Some(count) = line.strip_prefix("1..") {
            let end = count.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_plan = end.len() < count.len() && (end.trim().is_empty() || end.trim().starts_with('#'));
            // A number that is too large stays a plan that no run can fulfil, and is reported as such.
            let tests = count[..count.len() - end.len()].parse().unwrap_or(u64::MAX);
            return if is_plan { Self::Plan { tests } } else { Self::Other };
        }
        if line.starts_with("Bail out!") {
            return Self::BailOut;
        }
        if line == "ok" {
            return Self::Ok;
        }
        let Some(rest) = line.strip_prefix("not ok").or_else(|| line.strip_prefix("ok")) else {
            return Self::Other;
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Self::Other;
        }
        let rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        Self::Test { number: rest[..digits].parse().ok() }
    }
}

impl TapOutput {
    /// Reads a line of the output.
    pub(super) fn line(&mut self, text: &str) {
        match TapLine::of(text) {
            TapLine::Version => {
                self.close();
                self.open = Some(TapDocument { has_version: true, ..TapDocument::default() });
            }
            TapLine::Plan { tests } => {
                if self.open.as_ref().is_some_and(|document| document.has_plan) {
                    self.close();
                }
                let document = self.open.get_or_insert_default();
                (document.has_plan, document.planned) = (true, tests);
            }
            // Beyond the plan it is the word of `prove -v` on the whole file.
            TapLine::Ok
                if self
                    .open
                    .as_ref()
                    .is_some_and(|document| document.has_plan && document.tests >= document.planned) =>
            {
                return self.close();
            }
            TapLine::Ok => match &mut self.open {
                Some(document) if document.has_version || document.has_plan => document.tests += 1,
                _ => return,
            },
            TapLine::BailOut => {
                if let Some(document) = &mut self.open {
                    document.has_bailed_out = true;
                }
            }
            TapLine::Test { number: Some(1) } => {
                if self.open.as_ref().is_some_and(|document| document.tests > 0) {
                    self.close();
                }
                self.open.get_or_insert_default().tests += 1;
            }
            TapLine::Test { number } => match &mut self.open {
                Some(document) if number.is_some() || document.has_version || document.has_plan => {
                    document.tests += 1;
                }
                _ => {
                    // Such as what a filter leaves of a document.
                    if number.is_some() && text.starts_with("not ok ") && self.stray_failure.is_none() {
                        self.stray_failure = Some(text.to_owned());
                    }
                    return;
                }
            },
            TapLine::Other => {}
        }
        if let Some(TapDocument { parser, results, first_failure, .. }) = &mut self.open {
            parser.line(text, results);
            if results.counts.failed > 0 && first_failure.is_none() {
                *first_failure = Some(text.to_owned());
            }
        }
    }

    fn close(&mut self) {
        let Some(mut document) = self.open.take() else { return };
        if document.has_version || (document.has_plan && document.tests > 0) {
            document.parser.finish(&mut document.results);
            if !document.has_plan && !document.has_bailed_out {
                let message = format!(
                    "the TAP on standard output has no plan (`1..N`) after its {} tests: it was cut off",
                    document.tests
                );
                document.results.add_problem(TestRunProblemKind::Crashed, message);
            }
            self.complete.push(document.results);
        } else {
            self.stray_failure = self.stray_failure.take().or(document.first_failure);
        }
    }

    /// Adds a report of the tests that no process has reported itself: a runner may print TAP for people as well.
    pub(super) fn finish(&mut self, results: &mut TestResults) {
        self.close();
        let stray =
            self.stray_failure.take().map(|line| PrintedSummary { runner: "tap", has_failures: true, line });
        results.summaries.extend(stray);
        for document in std::mem::take(&mut self.complete) {
            let is_reported =
                |test: &TestCase| results.processes.iter().any(|process| reports(process, test));
            // A runner that prints TAP and writes events has told of each test twice.
            if !document.tests.is_empty() && document.tests.iter().all(is_reported) {
                continue;
            }
            let report = TestProcessReport {
                runner: Some("tap".to_owned()),
                results: document,
                ..TestProcessReport::default()
            };
            results.processes.push(report);
        }
    }
}

/// Returns true if a process has reported a test that its TAP names as well, alone or as the suite around it.
fn reports(process: &TestProcessReport, printed: &TestCase) -> bool {
    // Reporters separate suites in different ways, and a comparison must not depend on that.
    let plain = |name: &str| name.replace(" > ", " ").replace(" › ", " ").replace(" - ", " ");
    let printed = plain(&printed.name);
    process.runner.as_deref().is_some_and(|runner| runner != "tap")
        && (process.results.problems.iter().any(|problem| problem.message.contains(&printed))
            || process.results.tests.iter().any(|test| {
                let name = plain(&test.name);
                let file = test.file.as_deref().unwrap_or_default();
                name.starts_with(&printed) || printed.ends_with(&name) || file.ends_with(&printed)
            }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::results::TestCounts;

    fn counts(output: &str) -> Vec<(u64, u64, u64)> {
        let (mut tap, mut results) = (TapOutput::default(), TestResults::default());
        output.lines().for_each(|line| tap.line(line));
        tap.finish(&mut results);
        let counts = results.processes.iter().map(|process| process.results.counts);
        counts.map(|TestCounts { passed, failed, skipped }| (passed, failed, skipped)).collect()
    }

    #[test]
    fn tap_is_found_among_other_lines_and_each_document_alone() {
        let output =
            "> test\nTAP version 13\n# a\nok 1 b\nnot ok 2 c\n\n1..2\n# tests 2\nbye\n1..1\nok 1 - d\n";
        assert_eq!(counts(output), [(1, 1, 0), (1, 0, 0)]);
        assert_eq!(counts("ok 1 a\nok 2 b # SKIP\n1..2\nok 1 c\n1..1\n"), [(1, 0, 1), (1, 0, 0)]);
    }

    #[test]
    fn the_word_of_prove_on_a_file_is_no_test() {
        // `prove -v` of two files, one with its plan at the end.
        let output = "t/a.t .. \n1..2\nok 1\nok 2\nok\nt/b.t .. \nok 1 - c\nnot ok 2 - d\n1..2\nok\nAll tests successful.\n";
        assert_eq!(counts(output), [(2, 0, 0), (1, 1, 0)]);
        assert_eq!(counts("1..2\nok\nok\nok\n"), [(2, 0, 0)]);
    }

    #[test]
    fn a_document_without_a_plan_was_cut_off() {
        for (output, is_cut_off) in [
            ("TAP version 13\n# a\nok 1 a\n# b\nError: boom\n", true),
            ("TAP version 13\n# b\n", true),
            ("TAP version 13\nok 1 a\n1..1\n", false),
            ("TAP version 13\nok 1 a\nBail out! no disk\n", false),
        ] {
            let (mut tap, mut results) = (TapOutput::default(), TestResults::default());
            output.lines().for_each(|line| tap.line(line));
            tap.finish(&mut results);
            let problems = &results.processes[0].results.problems;
            let found = problems.iter().any(|problem| problem.kind == TestRunProblemKind::Crashed);
            assert_eq!(found, is_cut_off, "{output}");
        }
    }

    #[test]
    fn a_program_that_prints_ok_is_no_report() {
        for output in ["ok\n", "ok then\nnot ok at all\n", "ok 1 file copied\n", "1..3 go\nok\n", "1..2\n"] {
            assert_eq!(counts(output), [], "{output}");
        }
    }
}
