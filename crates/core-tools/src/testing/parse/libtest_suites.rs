//! The suites in the output of libtest, and the decision which of them are real.
//!
//! A test that writes past libtest's capture, or that runs cargo itself, can imitate a suite. So nothing is
//! decided at once about a suite that begins within another. If the outer suite goes on to its own summary,
//! with as many tests as it announced, the inner one was printed by a test, and is left out. If the outer suite
//! has no summary, its process ended in the middle, and what followed was real.

use super::text::FailureLocation;
use crate::testing::results::{TestCase, TestCounts, TestResults, TestRunProblemKind, TestStatus};
use std::collections::HashMap;

/// One suite: the tests of one binary, or a print that looks like it.
#[derive(Default)]
pub(super) struct LibtestSuite {
    /// The binary that it is of.
    binary: String,
    /// Cargo has named the binary just before it, so it is not the print of a test.
    has_header: bool,
    /// The number of tests that it announced.
    expected: u64,
    seen: TestCounts,
    /// The results of a suite that began within another: whether they count depends on the outer one.
    held_back: Vec<TestCase>,
    /// The suites that began and ended within it.
    inner: Vec<LibtestSuite>,
    /// The latest summary that has as many tests as were announced, though not those that were seen.
    summary: Option<TestCounts>,
    /// Its summary has come and fits.
    is_complete: bool,
    /// Failed tests, whose output follows after all results.
    pub(super) failed: Vec<TestCase>,
    /// The index in `failed` of each test.
    pub(super) failed_by_name: HashMap<String, usize>,
    /// The lines are those after `failures:`.
    pub(super) in_details: bool,
    /// The index in `failed` of the test whose output the lines are.
    pub(super) section: Option<usize>,
    /// A test that has begun its line and whose result has not been printed yet.
    pub(super) open_test: Option<String>,
}

/// The depth to which suites within suites are followed, and the number that one suite keeps.
const MAX_INNER: usize = 100;
/// The number of failed tests of a suite whose output is collected.
const MAX_FAILED: usize = 2_000;
/// The number of results of a suite that are held back.
const MAX_HELD_BACK: usize = 20_000;

/// The number of targets whose counts are kept.
const MAX_TARGETS: usize = 1_000;

impl LibtestSuite {
    pub(super) fn new(binary: String, has_header: bool, expected: u64) -> Self {
        Self { binary, has_header, expected, ..Self::default() }
    }
}

/// The suites that have begun and not ended.
#[derive(Default)]
pub(super) struct OpenLibtestSuites {
    /// The innermost suite, whose lines come.
    current: Option<LibtestSuite>,
    /// The suites within which it began, the outermost first.
    outer: Vec<LibtestSuite>,
}

impl OpenLibtestSuites {
    /// Returns the suite whose lines come.
    pub(super) fn current(&mut self) -> Option<&mut LibtestSuite> {
        self.current.as_mut()
    }

    /// Returns true if the outermost suite has a summary that may be its own: what is left of it is only printed.
    pub(super) fn has_summary(&self) -> bool {
        let outermost = self.outer.first().or(self.current.as_ref());
        outermost.is_some_and(|suite| suite.summary.is_some())
    }

    /// Begins a suite, within the current one if there is one. Returns false beyond the depth that is followed:
    /// then none begins.
    pub(super) fn begin(&mut self, suite: LibtestSuite, results: &mut TestResults) -> bool {
        match self.current.take() {
            Some(outer) if self.outer.len() < MAX_INNER => self.outer.push(outer),
            Some(current) => {
                self.current = Some(current);
                return false;
            }
            None => {
                let total = results.expected.get_or_insert_default();
                *total = total.saturating_add(suite.expected);
            }
        }
        self.current = Some(suite);
        true
    }

    /// Ends the suite. One that is not complete has died, unless there is a summary that may be its own.
    fn close(&mut self, results: &mut TestResults, is_complete: bool) {
        let Some(mut suite) = self.current.take() else { return };
        suite.is_complete = is_complete;
        match self.outer.pop() {
            Some(mut outer) => {
                if outer.inner.len() < MAX_INNER {
                    outer.inner.push(suite);
                }
                self.current = Some(outer);
            }
            None => report(suite, results),
        }
    }

    /// Ends all suites that are open.
    pub(super) fn close_all(&mut self, results: &mut TestResults) {
        while self.current.is_some() {
            self.close(results, false);
        }
    }

    /// Reads a summary. It is that of the suite if it has as many tests as the suite announced.
    pub(super) fn summary(&mut self, counts: TestCounts, measured: u64, results: &mut TestResults) {
        // If the suite only seemed to have begun, the summary may be that of the one around it.
        let fits = |suite: &LibtestSuite| counts.total().saturating_add(measured) == suite.expected;
        let Some(suite) = &mut self.current else { return };
        if fits(suite) && suite.seen == counts {
            suite.summary = Some(counts);
            return self.close(results, true);
        }
        let agrees = |outer: &LibtestSuite, suite: &LibtestSuite| {
            let mut seen = outer.seen;
            seen += suite.seen;
            fits(outer) && (outer.seen == counts || seen == counts)
        };
        let Some(outer) = self.outer.iter().rposition(|outer| agrees(outer, suite)) else {
            if fits(suite) {
                suite.summary = Some(counts);
            } else if let Some(outer) = self.outer.iter().rposition(fits) {
                while self.outer.len() > outer {
                    self.close(results, false);
                }
                self.current.iter_mut().for_each(|suite| suite.summary = Some(counts));
            }
            return;
        };
        // The suite only seemed to have begun: its results are those of the one around it.
        let mut misread = self.current.take();
        while self.outer.len() > outer {
            let Some(mut around) = self.outer.pop() else { break };
            if let Some(inner) = misread.take().filter(|_| self.outer.len() == outer && around.seen != counts)
            {
                around.seen += inner.seen;
                for test in inner.held_back.into_iter().chain(inner.failed) {
                    if self.outer.is_empty() && test.status != TestStatus::Failed {
                        results.add_test(test);
                    } else {
                        around.failed.push(test);
                    }
                }
            }
            misread = Some(around);
        }
        self.current = misread;
        if let Some(suite) = &mut self.current {
            suite.summary = Some(counts);
        }
        self.close(results, true);
    }

    /// Returns the file of an integration test, from `Running tests/api.rs (target/…)`. A unit test may be in
    /// any file.
    fn file(&self) -> Option<String> {
        let binary = self.current.as_ref().map_or("", |suite| suite.binary.as_str());
        let file = binary.split(" (").next().unwrap_or_default();
        (!file.starts_with("unittests") && file.ends_with(".rs")).then(|| file.to_owned())
    }

    /// Adds a result to the current suite.
    pub(super) fn test_ended(
        &mut self,
        name: &str,
        status: TestStatus,
        reason: Option<&str>,
        results: &mut TestResults,
    ) {
        let file = self.file();
        let is_inner = !self.outer.is_empty();
        let Some(suite) = &mut self.current else { return };
        let name = name.trim().trim_end_matches(" - should panic");
        suite.seen.count(status);
        let test = TestCase { file, error: reason.map(str::to_owned), ..TestCase::new(name, status) };
        if status == TestStatus::Failed && suite.failed.len() < MAX_FAILED {
            suite.failed_by_name.insert(name.to_owned(), suite.failed.len());
            suite.failed.push(test);
        } else if is_inner {
            if suite.held_back.len() < MAX_HELD_BACK {
                suite.held_back.push(test);
            }
        } else {
            results.add_test(test);
        }
    }
}

/// Adds the results of a suite that is within no other.
fn report(mut suite: LibtestSuite, results: &mut TestResults) {
    // A complete suite had its own results to the end: what looked like suites within it was printed by its
    // tests.
    let mut inner = if suite.is_complete { Vec::new() } else { suite.inner };
    let mut tests = suite.held_back;
    if suite.summary.is_none() {
        // The print of a test may have looked like the beginning of a suite, and then taken the summary of this
        // one.
        let own = inner.iter().rposition(|inner| {
            let mut seen = suite.seen;
            seen += inner.seen;
            !inner.has_header && inner.summary == Some(seen) && seen.total() == suite.expected
        });
        if let Some(own) = own {
            inner.drain(..own);
            let own = inner.remove(0);
            suite.summary = own.summary;
            tests.extend(own.held_back.into_iter().chain(own.failed));
        }
    }
    if suite.has_header && results.suites.len() < MAX_TARGETS {
        results.suites.push((suite.binary.clone(), suite.summary.unwrap_or(suite.seen)));
    }
    if let Some(summary) = suite.summary {
        // The same print may have taken results of this suite. A real one has a header or a summary of its own.
        for part in inner.extract_if(.., |inner| !inner.has_header && inner.summary.is_none()) {
            tests.extend(part.held_back.into_iter().chain(part.failed));
        }
        results.add_declared(summary);
    } else {
        if let Some(name) = suite.open_test {
            results.test_started(&name);
        }
        let missing = suite.expected.saturating_sub(suite.seen.total());
        let message = format!(
            "the test binary {} died with {missing} of its {} tests not reported",
            suite.binary, suite.expected
        );
        results.add_problem(TestRunProblemKind::Crashed, message);
    }
    for mut test in tests.into_iter().chain(suite.failed) {
        if test.status == TestStatus::Failed
            && let Some(location) = test.error.as_deref().and_then(panic_location)
        {
            (test.file, test.line) = (Some(location.file), Some(location.line));
        }
        results.add_test(test);
    }
    for inner in inner {
        report(inner, results);
    }
}

/// Reads the location of a panic: `panicked at src/lib.rs:3:5:`, before Rust 1.73 `panicked at 'why',
/// src/lib.rs:3:5`.
fn panic_location(error: &str) -> Option<FailureLocation> {
    let (_, after) = error.split_once("panicked at ")?;
    let line = after.lines().next()?;
    FailureLocation::parse(line)
        .filter(|location| location.file.ends_with(".rs"))
        .or_else(|| FailureLocation::parse(line.rsplit(", ").next()?))
}
