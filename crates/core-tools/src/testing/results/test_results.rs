//! The results of one step of a run, collected while it runs. Their size is bounded whatever a runner prints.

use super::counts::TestCounts;
use super::excerpt::OutputExcerpt;
use super::printed_claims::{PrintedClaims, PrintedSummary};
use super::problem::{TestRunProblem, TestRunProblemKind};
use super::test_case::{TestCase, TestStatus};
use super::tests_not_run::TestsNotRun;
use crate::ci::Diagnostic;
use process_runner::clean;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

/// The number of tests that are kept; the others are counted.
const MAX_TESTS: usize = 20_000;
/// The number of bytes of messages that are kept of all tests together.
const MAX_MESSAGES_BYTES: usize = 8 << 20;
/// The number of bytes that are kept of one message: its beginning and its end.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// The length of a name, in bytes.
const MAX_NAME_BYTES: usize = 2_000;
/// The number of tests that are remembered as running.
const MAX_RUNNING: usize = 1_000;
/// The number of problems, and of diagnostics, that are kept.
const MAX_PROBLEMS: usize = 100;

/// The results of one step of a run. Parsers fill them, and the verdict is drawn from them.
#[derive(Debug, Default)]
pub(crate) struct TestResults {
    pub(crate) tests: Vec<TestCase>,
    pub(crate) counts: TestCounts,
    /// The number of tests that passed after an attempt that failed.
    pub(crate) flaky: u64,
    /// The number of tests that the runner left out because they were not selected, where it tells.
    pub(crate) deselected: u64,
    /// The runner writes its report at its end, and has not.
    pub(crate) report_is_missing: bool,
    /// The tests that the runner has passed over.
    pub(crate) not_run: Vec<TestsNotRun>,
    /// Further facts for the report.
    pub(crate) notes: Vec<String>,
    /// The runner's own totals, where it writes any.
    pub(crate) declared: Option<TestCounts>,
    /// The number of tests to come, where the runner announces it.
    pub(crate) expected: Option<u64>,
    /// Every announced test is reported, whatever becomes of it: fewer reports than announced are a crash.
    pub(crate) reports_whole_plan: bool,
    /// Tests that have begun and not ended, oldest first.
    pub(crate) running: VecDeque<String>,
    pub(crate) problems: Vec<TestRunProblem>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) runner_end: RunnerEndMarker,
    /// A test, a diagnostic, or a part of a message was left out.
    pub(crate) truncated: bool,
    /// The time limit is ending the run: a test that fails from now on was ended by it.
    pub(crate) limit_reached: bool,
    /// The requested test name, where the runner selects by a pattern that other names may match too.
    pub(crate) requested_name: Option<String>,
    /// A test was executed whose name contains the requested one.
    pub(crate) requested_name_executed: bool,
    /// The reports of the processes of a project's own test command; their tests are not among `tests` yet.
    pub(crate) processes: Vec<TestProcessReport>,
    /// The lines with which runners say for people what their tests came to, as a project's own test command printed them.
    pub(crate) summaries: Vec<PrintedSummary>,
    /// The targets of cargo whose tests ran, each with its counts.
    pub(crate) suites: Vec<(String, TestCounts)>,
    /// The passes that rest on printed lines, to be compared with the project's files.
    pub(crate) claims: PrintedClaims,
    /// The first lines with which a script says by hand that a test failed: `FAIL: add`.
    pub(crate) failure_lines: Vec<String>,
    message_bytes: usize,
    /// The number of kept tests, from the first on, that are known to be failures.
    leading_failures: usize,
}

/// The report of one process of a project's test command, which a reporter in it wrote.
#[derive(Debug, Default)]
pub(crate) struct TestProcessReport {
    /// The package whose program it runs, or `node` for a file of the project.
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// The folder that it was started in.
    pub(crate) folder: String,
    /// The script of the package that started it.
    pub(crate) script: Option<String>,
    /// Another process that is known started it: it is no command of a script.
    pub(crate) is_started_by_another: bool,
    /// The runner that was found in it, and that reports its tests.
    pub(crate) runner: Option<String>,
    /// The reason why the runner in it cannot report its tests.
    pub(crate) uninstrumented: Option<String>,
    /// The exit code. Absent until its end, and where a signal ended it.
    pub(crate) exit_code: Option<u32>,
    pub(crate) results: TestResults,
}

impl TestProcessReport {
    /// Returns true for a report that was read from standard output, or from a file that the command was told to
    /// write: of which program it is, nothing says.
    pub(crate) fn is_printed(&self) -> bool {
        self.program.is_empty()
    }
}

/// The marker that a runner writes at its own end, where its format has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunnerEndMarker {
    /// The format has no such marker.
    #[default]
    Unmarked,
    /// The marker has not come: the runner was cut off, or still runs.
    Missing,
    /// The marker has come.
    Reached,
}

impl TestResults {
    /// Creates empty results of a run that was to execute tests of this name.
    pub(crate) fn of_requested(requested_name: Option<String>) -> Self {
        Self { requested_name, ..Self::default() }
    }

    /// Records that a test has begun.
    pub(crate) fn test_started(&mut self, name: &str) {
        if self.running.len() == MAX_RUNNING {
            self.running.pop_front();
        }
        self.running.push_back(OutputExcerpt::new(name, MAX_NAME_BYTES).text);
    }

    /// Records that what began under this name runs no longer. [`add_test`](Self::add_test) does so by itself.
    pub(crate) fn test_finished(&mut self, name: &str) {
        let name = OutputExcerpt::new(name, MAX_NAME_BYTES).text;
        if let Some(index) = self.running.iter().position(|running| *running == name) {
            self.running.remove(index);
        }
    }

    /// Adds a test that has ended.
    pub(crate) fn add_test(&mut self, mut test: TestCase) {
        if self.limit_reached && test.status.is_failure() {
            test.status = TestStatus::TimedOut;
        }
        self.counts.count(test.status);
        self.flaky += u64::from(test.flaky);
        self.requested_name_executed |= test.status != TestStatus::Skipped && self.is_requested(&test.name);
        let name = OutputExcerpt::new(&test.name, MAX_NAME_BYTES);
        test.name = name.text;
        self.truncated |= name.is_cut;
        // A report may claim any duration, and JSON has no infinity.
        test.duration_ms = test.duration_ms.filter(|time| time.is_finite() && *time >= 0.0);
        if !self.running.is_empty() {
            self.test_finished(&test.name);
        }
        if let Some(error) = test.error.take() {
            let room = MAX_MESSAGES_BYTES.saturating_sub(self.message_bytes).min(MAX_MESSAGE_BYTES);
            let error = OutputExcerpt::new(&without_escapes(&error), room);
            self.truncated |= error.is_cut;
            self.message_bytes += error.text.len();
            test.error = Some(error.text).filter(|error| !error.is_empty());
        }
        self.keep(test);
    }

    /// Adds the tests, the problems and the diagnostics of another report, whose totals are dropped: they were
    /// judged with it.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.truncated |= other.truncated;
        let (kept, counts) = (self.counts, other.counts);
        let flaky = self.flaky + other.flaky;
        self.deselected = self.deselected.saturating_add(other.deselected);
        self.notes.extend(other.notes);
        TestsNotRun::merge(&mut self.not_run, other.not_run);
        self.claims.merge(other.claims);
        for test in other.tests {
            self.add_test(test);
        }
        // The counts hold also the tests that are not kept.
        self.counts = kept;
        self.counts += counts;
        self.flaky = flaky;
        for problem in other.problems {
            self.add_problem(problem.kind, problem.message);
        }
        for diagnostic in other.diagnostics {
            self.add_diagnostic(diagnostic);
        }
    }

    /// Takes each failed test of which a later one of the same name passed for an attempt of that one, as runners mean it
    /// that retry tests and report every attempt.
    pub(crate) fn merge_attempts(&mut self) {
        let mut last_pass = HashMap::new();
        for (index, test) in self.tests.iter().enumerate() {
            if test.status == TestStatus::Passed {
                last_pass.insert(test.name.clone(), index);
            }
        }
        let mut failed_attempts: HashMap<usize, u64> = HashMap::new();
        let is_attempt = |index: usize, test: &TestCase| {
            last_pass.get(&test.name).copied().filter(|pass| test.status.is_failure() && *pass > index)
        };
        let attempts: Vec<_> =
            self.tests.iter().enumerate().map(|(index, test)| is_attempt(index, test)).collect();
        for pass in attempts.iter().flatten() {
            *failed_attempts.entry(*pass).or_default() += 1;
        }
        let merged: u64 = failed_attempts.values().sum();
        let tests = std::mem::take(&mut self.tests).into_iter().enumerate();
        self.tests = tests
            .filter(|(index, _)| attempts.get(*index).is_none_or(Option::is_none))
            .map(|(index, test)| match failed_attempts.get(&index) {
                Some(failed) => test.attempts(1 + failed),
                None => test,
            })
            .collect();
        self.leading_failures = 0;
        self.counts.failed = self.counts.failed.saturating_sub(merged);
        self.flaky += u64::try_from(failed_attempts.len()).unwrap_or(u64::MAX);
        if let Some(declared) = &mut self.declared {
            declared.failed = declared.failed.saturating_sub(merged);
        }
    }

    /// Keeps a test. Where there is no room, a failure takes the place of a success.
    fn keep(&mut self, test: TestCase) {
        if self.tests.len() < MAX_TESTS {
            self.tests.push(test);
            return;
        }
        self.truncated = true;
        if !test.status.is_failure() {
            return;
        }
        // The search goes on where it ended the last time, so that all searches together are one pass.
        match (self.leading_failures..self.tests.len()).find(|index| !self.tests[*index].status.is_failure())
        {
            Some(index) => {
                self.leading_failures = index + 1;
                self.tests[index] = test;
            }
            None => self.leading_failures = self.tests.len(),
        }
    }

    fn is_requested(&self, name: &str) -> bool {
        let requested = self.requested_name.as_ref();
        requested.is_some_and(|requested| plain_name(name).contains(&plain_name(requested)))
    }

    /// Records that the format marks the end of a run, which has not come yet.
    pub(crate) fn expect_runner_end(&mut self) {
        if self.runner_end == RunnerEndMarker::Unmarked {
            self.runner_end = RunnerEndMarker::Missing;
        }
    }

    pub(crate) fn add_problem(&mut self, kind: TestRunProblemKind, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            let message = OutputExcerpt::new(&without_escapes(&message.into()), MAX_MESSAGE_BYTES).text;
            self.problems.push(TestRunProblem { kind, message });
        }
    }

    pub(crate) fn add_diagnostic(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_PROBLEMS {
            self.diagnostics.push(diagnostic);
        } else {
            self.truncated = true;
        }
    }

    /// Adds totals of the runner's own: of the whole run, or of one of its suites.
    pub(crate) fn add_declared(&mut self, counts: TestCounts) {
        *self.declared.get_or_insert_default() += counts;
    }
}

/// Returns a text without the colours that a runner prints for a terminal.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if text.contains('\u{1b}') { clean(text) } else { Cow::Borrowed(text) }
}

/// Returns a name without the separators that reports have between the titles of suites and tests.
fn plain_name(name: &str) -> String {
    name.replace(" > ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_are_reported_as_tests_of_one_name_are_one_test() {
        let mut results = TestResults::default();
        for (name, status) in [
            ("flaky", TestStatus::Failed),
            ("flaky", TestStatus::Failed),
            ("flaky", TestStatus::Passed),
            ("lost", TestStatus::Failed),
            ("late", TestStatus::Passed),
            ("late", TestStatus::Failed),
        ] {
            results.add_test(TestCase::new(name, status));
        }
        results.add_declared(results.counts);
        results.merge_attempts();
        assert_eq!(results.counts, TestCounts { passed: 2, failed: 2, skipped: 0 });
        assert_eq!((results.declared, results.flaky), (Some(results.counts), 1));
        let tests: Vec<_> = results.tests.iter().map(|test| (test.name.as_str(), test.attempts)).collect();
        assert_eq!(tests, [("flaky", Some(3)), ("lost", None), ("late", None), ("late", None)]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_failures_are_kept_before_successes() {
        let mut results = TestResults::default();
        for index in 0..MAX_TESTS {
            results.add_test(TestCase::new(format!("test {index}"), TestStatus::Passed));
        }
        let error = Some("é".repeat(1 << 20));
        for index in 0..600 {
            results.add_test(TestCase {
                error: error.clone(),
                ..TestCase::new(format!("bad {index}"), TestStatus::Failed)
            });
        }
        assert_eq!(results.tests.len(), MAX_TESTS);
        assert_eq!(results.counts, TestCounts { passed: 20_000, failed: 600, skipped: 0 });
        assert_eq!(results.tests.iter().filter(|test| test.status.is_failure()).count(), 600);
        let bytes: usize = results.tests.iter().filter_map(|test| test.error.as_ref()).map(String::len).sum();
        assert!(bytes <= MAX_MESSAGES_BYTES + 600 * 64, "{bytes}");
        assert!(results.truncated);
    }
}
