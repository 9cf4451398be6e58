//! The text of `go test` among anything else that a command prints.

use super::text::append_line;
use crate::testing::results::{TestCase, TestProcessReport, TestResults, TestStatus};
use std::collections::HashSet;

/// Finds the results that `go test` prints for people: of each package, and of each test that failed, or of each test
/// with `-v`.
#[derive(Default)]
pub(super) struct GoOutput {
    /// The tests since the last line that ended a package.
    tests: Vec<TestCase>,
    /// The tests that have begun since then, with `-v`.
    begun: HashSet<String>,
    results: TestResults,
    has_package: bool,
}

impl GoOutput {
    /// Reads a line of the output.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("=== RUN ") {
            self.begun.insert(name.trim().to_owned());
        }
        if let Some(test) = test_of(line) {
            // A test may print such a line of a test that there is not, and the line of a beginning without `-v`: a failure
            // counts in any case.
            let outer = test.name.split('/').next().unwrap_or_default();
            if test.status.is_failure() || self.begun.is_empty() || self.begun.contains(outer) {
                self.tests.push(test);
            }
            return;
        }
        let words: Vec<_> = line.split('\t').map(str::trim).collect();
        match words[..] {
            ["ok", package, rest, ..] if is_package(package) => {
                let status = if rest.contains("[no tests to run]") { None } else { Some(TestStatus::Passed) };
                self.package_ended(package, status, None);
            }
            ["FAIL", package, rest, ..] if is_package(package) => {
                self.package_ended(package, Some(TestStatus::Failed), Some(rest));
            }
            // Of a build that failed, the whole is one word.
            ["FAIL", rest] => {
                if let Some((package, reason)) = rest.split_once(' ') {
                    self.package_ended(package, Some(TestStatus::Errored), Some(reason));
                }
            }
            _ => {
                let is_detail = line.starts_with("    ") && !line.trim_start().starts_with("=== ");
                if let Some(test) = self.tests.last_mut().filter(|test| is_detail && test.status.is_failure())
                {
                    append_line(test.error.get_or_insert_default(), line.trim());
                }
            }
        }
    }

    /// Adds the tests of a package, and the package itself where it tells nothing of them.
    fn package_ended(&mut self, package: &str, status: Option<TestStatus>, reason: Option<&str>) {
        self.has_package = true;
        let mut tests = std::mem::take(&mut self.tests);
        self.begun.clear();
        // No test of a package that is `ok` has failed: a test has printed the line.
        if status.is_some_and(|status| !status.is_failure()) {
            tests.retain(|test| !test.status.is_failure());
        }
        let tells_failure = tests.iter().any(|test| test.status.is_failure());
        let is_told = match status {
            None => true,
            Some(status) if status.is_failure() => tells_failure,
            Some(_) => !tests.is_empty(),
        };
        // A test with subtests is told by them.
        let names: Vec<_> = tests.iter().map(|test| test.name.clone()).collect();
        let is_leaf = |name: &str| !names.iter().any(|other| other.starts_with(&format!("{name}/")));
        for mut test in tests.into_iter().filter(|test| is_leaf(&test.name)) {
            test.name = format!("{package}.{}", test.name);
            self.results.add_test(test);
        }
        if let Some(status) = status.filter(|_| !is_told) {
            let error = reason.filter(|_| status.is_failure()).map(str::to_owned);
            self.results.add_test(TestCase { error, ..TestCase::new(package, status) });
        }
    }

    /// Returns the report of all packages, if there was one.
    pub(super) fn report(self) -> Option<TestProcessReport> {
        self.has_package.then(|| TestProcessReport {
            runner: Some("go".to_owned()),
            results: self.results,
            ..TestProcessReport::default()
        })
    }
}

/// Returns the test of `--- FAIL: TestName (0.00s)`.
fn test_of(line: &str) -> Option<TestCase> {
    let (status, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let status = match status {
        "PASS" => TestStatus::Passed,
        "FAIL" => TestStatus::Failed,
        "SKIP" => TestStatus::Skipped,
        _ => return None,
    };
    let (name, time) = rest.rsplit_once(" (")?;
    let seconds: f64 = time.strip_suffix("s)")?.parse().ok()?;
    Some(TestCase { duration_ms: Some(seconds * 1000.0), ..TestCase::new(name, status) })
}

/// Returns true for the path of a package, which has no blanks.
fn is_package(word: &str) -> bool {
    !word.is_empty() && !word.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::results::TestCounts;

    fn counts(output: &str) -> Option<TestCounts> {
        let mut go = GoOutput::default();
        output.lines().for_each(|line| go.line(line));
        go.report().map(|report| report.results.counts)
    }

    #[test]
    fn packages_count_where_their_tests_are_not_told() {
        let output = "ok  \texample.org/a\t0.002s\nok  \texample.org/b\t0.001s [no tests to run]\n?   \texample.org/c\t[no test files]\n";
        assert_eq!(counts(output), Some(TestCounts { passed: 1, failed: 0, skipped: 0 }));
        assert_eq!(counts("ok\nok then\t\n--- FAIL: TestA (0.00s)\n"), None);
    }

    #[test]
    fn failures_are_those_of_the_tests_and_a_build_that_fails_is_one() {
        let output = "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/one (0.01s)\n        a_test.go:4: why\nFAIL\nFAIL\texample.org/a\t0.002s\nFAIL\texample.org/b [build failed]\nFAIL\n";
        assert_eq!(counts(output), Some(TestCounts { passed: 0, failed: 2, skipped: 0 }));
        let verbose = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\nPASS\nok  \texample.org/a\t(cached)\n";
        assert_eq!(counts(verbose), Some(TestCounts { passed: 1, failed: 0, skipped: 1 }));
        let printed = "=== RUN   TestA\n--- PASS: TestForged (0.00s)\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.org/a\t0.1s\n";
        assert_eq!(counts(printed), Some(TestCounts { passed: 1, failed: 0, skipped: 0 }));
        let printed = "=== RUN   TestA\n--- FAIL: TestForged (0.00s)\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.org/a\t0.1s\n";
        assert_eq!(counts(printed), Some(TestCounts { passed: 1, failed: 0, skipped: 0 }));
        let printed = "=== RUN   X\n--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\texample.org/a\t0.1s\n";
        assert_eq!(counts(printed), Some(TestCounts { passed: 0, failed: 2, skipped: 0 }));
    }
}
