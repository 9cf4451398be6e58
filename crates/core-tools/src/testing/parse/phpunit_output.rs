//! The text of `PHPUnit` among anything else that a command prints.

use super::text::{FailureLocation, append_line};
use crate::testing::results::{
    TestCase, TestCounts, TestProcessReport, TestResults, TestRunProblemKind, TestStatus,
};

/// Finds the results that `PHPUnit` prints for people, of each run from its version to its summary. It names the tests that
/// failed; the others are counted.
#[derive(Default)]
pub(super) struct PhpunitOutput {
    open: Option<PhpunitRun>,
    complete: Vec<TestResults>,
}

/// One run of `PHPUnit`.
#[derive(Default)]
struct PhpunitRun {
    failed: Vec<TestCase>,
    /// The status of the tests in the list that is printed, if they failed.
    listed: Option<TestStatus>,
}

impl PhpunitOutput {
    /// Reads a line of the output.
    pub(super) fn line(&mut self, line: &str) {
        if line.starts_with("PHPUnit ") && line.ends_with(" by Sebastian Bergmann and contributors.") {
            self.close(None);
            self.open = Some(PhpunitRun::default());
            return;
        }
        let Some(run) = &mut self.open else { return };
        match summary(line) {
            Some(summary) => self.close(Some(summary)),
            None => run.line(line),
        }
    }

    fn close(&mut self, summary: Option<TestCounts>) {
        if let Some(run) = self.open.take() {
            self.complete.push(run.results(summary));
        }
    }

    /// Adds the report of each run. `has_own_report` says that the only one has written one itself.
    pub(super) fn finish(mut self, has_own_report: bool, results: &mut TestResults) {
        self.close(None);
        if has_own_report {
            return;
        }
        results.processes.extend(self.complete.into_iter().map(|results| TestProcessReport {
            runner: Some("phpunit".to_owned()),
            results,
            ..TestProcessReport::default()
        }));
    }
}

impl PhpunitRun {
    fn line(&mut self, line: &str) {
        if let Some(list) = line.strip_prefix("There was ").or_else(|| line.strip_prefix("There were ")) {
            let word = list.trim_end_matches(':').split_once(' ').map_or("", |(_, word)| word);
            self.listed = match word {
                "failure" | "failures" => Some(TestStatus::Failed),
                "error" | "errors" => Some(TestStatus::Errored),
                _ => None,
            };
            return;
        }
        let Some(status) = self.listed else { return };
        let item = line
            .split_once(") ")
            .filter(|(number, name)| number.parse::<u64>().is_ok() && name.contains("::"));
        if let Some((_, name)) = item {
            // The XML report has a dot between class and method. With the same name both reports count a test once.
            self.failed.push(TestCase::new(name.replacen("::", ".", 1), status));
            return;
        }
        if let Some(test) = self.failed.last_mut().filter(|_| !line.trim().is_empty() && line != "--") {
            if test.file.is_none()
                && let Some(at) = FailureLocation::parse(line).filter(|at| at.file.ends_with(".php"))
            {
                (test.file, test.line) = (Some(at.file), Some(at.line));
            }
            append_line(test.error.get_or_insert_default(), line);
        }
    }

    fn results(self, summary: Option<TestCounts>) -> TestResults {
        let mut results = TestResults::default();
        for test in self.failed {
            results.add_test(test);
        }
        match summary {
            Some(summary) => {
                results.counts.passed = summary.passed;
                results.counts.skipped = summary.skipped;
                // The higher number counts, because a failure that either of them tells of must not get lost.
                results.counts.failed = results.counts.failed.max(summary.failed);
                results.add_declared(summary);
            }
            None => results.add_problem(
                TestRunProblemKind::Crashed,
                "PHPUnit ended before it printed what its tests came to",
            ),
        }
        results
    }
}

/// Returns the counts of `OK (3 tests, 4 assertions)`, `Tests: 3, Assertions: 4, Failures: 1, Skipped: 1.` and `No tests
/// executed!`.
fn summary(line: &str) -> Option<TestCounts> {
    if line == "No tests executed!" {
        return Some(TestCounts::default());
    }
    if let Some(counts) = line.strip_prefix("OK (") {
        let (tests, rest) = counts.split_once(' ')?;
        let passed = tests.parse().ok().filter(|_| rest.contains("assertion"))?;
        return Some(TestCounts { passed, ..TestCounts::default() });
    }
    let counts = line.strip_prefix("Tests: ").filter(|counts| counts.contains("Assertions: "))?;
    let total: u64 = counts.split(',').next()?.parse().ok()?;
    let count = |label: &str| -> u64 {
        let found = counts.split(", ").find_map(|part| part.strip_prefix(label));
        found.and_then(|count| count.trim_end_matches('.').parse().ok()).unwrap_or_default()
    };
    let failed = count("Failures: ") + count("Errors: ");
    let skipped = count("Skipped: ") + count("Incomplete: ");
    Some(TestCounts { passed: total.saturating_sub(failed + skipped), failed, skipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(output: &str) -> Vec<TestResults> {
        let (mut phpunit, mut results) = (PhpunitOutput::default(), TestResults::default());
        output.lines().for_each(|line| phpunit.line(line));
        phpunit.finish(false, &mut results);
        results.processes.into_iter().map(|process| process.results).collect()
    }

    const VERSION: &str = "PHPUnit 9.6.7 by Sebastian Bergmann and contributors.\n";

    #[test]
    fn failed_tests_are_named_and_the_others_counted() {
        let output = format!(
            "{VERSION}\nF.S 3 / 3 (100%)\n\nThere was 1 failure:\n\n1) BTest::testB\nFailed asserting that false is true.\n\n/x/tests/BTest.php:7\n\n--\n\nThere was 1 risky test:\n\n1) BTest::testR\nnothing\n\nFAILURES!\nTests: 3, Assertions: 2, Failures: 1, Skipped: 1.\n{VERSION}\nOK (2 tests, 2 assertions)\n"
        );
        let reports = reports(&output);
        assert_eq!(reports.len(), 2);
        assert_eq!(reports[0].counts, TestCounts { passed: 1, failed: 1, skipped: 1 });
        let test = &reports[0].tests[0];
        assert_eq!((test.name.as_str(), test.line, reports[0].tests.len()), ("BTest.testB", Some(7), 1));
        assert_eq!(reports[1].counts, TestCounts { passed: 2, failed: 0, skipped: 0 });
    }

    #[test]
    fn a_run_that_is_cut_off_is_a_crash_and_a_summary_alone_is_no_run() {
        assert_eq!(reports(VERSION)[0].problems[0].kind, TestRunProblemKind::Crashed);
        assert!(reports("OK (2 tests, 2 assertions)\n").is_empty());
        assert_eq!(reports(&format!("{VERSION}No tests executed!\n"))[0].counts, TestCounts::default());
    }
}
