//! The text of `deno test` among anything else that a command prints.

use super::text::append_line;
use crate::testing::results::{
    TestCase, TestCounts, TestProcessReport, TestResults, TestRunProblemKind, TestStatus,
};

/// Finds the results that `deno test` prints for people, of each run from `running 2 tests from ./a_test.ts` to
/// `ok | 2 passed | 0 failed (5ms)`.
#[derive(Default)]
pub(super) struct DenoOutput {
    open: Option<DenoRun>,
    complete: Vec<TestResults>,
}

/// One run of `deno test`.
#[derive(Default)]
struct DenoRun {
    tests: Vec<TestCase>,
    file: Option<String>,
    /// The lines are what a test has printed.
    in_output: bool,
    /// The lines are the messages of the failed tests, after ` ERRORS `.
    in_errors: bool,
    /// The test that the message is of.
    error_of: Option<usize>,
}

impl DenoOutput {
    /// Reads a line of the output.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(file) = file_of(line) {
            let run = self.open.get_or_insert_default();
            // A test may print a line of this form itself, between the marks of its output.
            if !run.in_output {
                run.file = Some(file.trim_start_matches("./").to_owned());
            }
            return;
        }
        let Some(run) = &mut self.open else { return };
        if line.starts_with("-----") && line.ends_with("-----") && line.contains("output") {
            run.in_output = !line.contains("output end");
            return;
        }
        if run.in_output {
            return;
        }
        if let Some(counts) = summary(line) {
            if let Some(run) = self.open.take() {
                self.complete.push(run.results(Some(counts)));
            }
            return;
        }
        run.line(line);
    }

    /// Adds the report of each run. `has_report_of_last` says that the last of them has written one itself.
    pub(super) fn finish(mut self, has_report_of_last: bool, results: &mut TestResults) {
        if let Some(run) = self.open.take() {
            self.complete.push(run.results(None));
        }
        if has_report_of_last {
            self.complete.pop();
        }
        results.processes.extend(self.complete.into_iter().map(|results| TestProcessReport {
            runner: Some("deno".to_owned()),
            results,
            ..TestProcessReport::default()
        }));
    }
}

impl DenoRun {
    fn line(&mut self, line: &str) {
        match line.trim() {
            "ERRORS" => return self.in_errors = true,
            "FAILURES" => return (self.in_errors, self.error_of) = (false, None),
            _ => {}
        }
        if self.in_errors {
            let name = line.rsplit_once(" => ").map(|(name, _)| name);
            // A step is told after the name of its test.
            let is_of = |test: &TestCase| {
                name.is_some_and(|name| name == test.name || name.starts_with(&format!("{} ... ", test.name)))
            };
            if let Some(index) = self.tests.iter().position(|test| test.status.is_failure() && is_of(test)) {
                self.error_of = Some(index);
            } else if let Some(test) = self.error_of.and_then(|index| self.tests.get_mut(index)) {
                append_line(test.error.get_or_insert_default(), line);
            }
            return;
        }
        // What is indented is a step of a test.
        let Some((name, end)) = line.rsplit_once(" ... ").filter(|_| !line.starts_with(' ')) else { return };
        let status = match end.split(" (").next().unwrap_or_default() {
            "ok" => TestStatus::Passed,
            "FAILED" => TestStatus::Failed,
            "ignored" => TestStatus::Skipped,
            "cancelled" => TestStatus::Errored,
            _ => return,
        };
        if end.ends_with(')') {
            self.tests.push(TestCase { file: self.file.clone(), ..TestCase::new(name, status) });
        }
    }

    fn results(self, summary: Option<TestCounts>) -> TestResults {
        let mut results = TestResults::default();
        for test in self.tests {
            results.add_test(test);
        }
        match summary {
            Some(summary) => results.add_declared(summary),
            None => results.add_problem(
                TestRunProblemKind::Crashed,
                "`deno test` ended before it printed what its tests came to",
            ),
        }
        results
    }
}

/// Returns the file of `running 2 tests from ./a_test.ts`.
fn file_of(line: &str) -> Option<&str> {
    let (count, file) = line.strip_prefix("running ")?.split_once(' ')?;
    count.parse::<u64>().ok()?;
    file.strip_prefix("tests from ").or_else(|| file.strip_prefix("test from "))
}

/// Returns the counts of `FAILED | 1 passed (2 steps) | 1 failed (1 step) | 1 ignored (5ms)`.
fn summary(line: &str) -> Option<TestCounts> {
    let counts = line.strip_prefix("ok | ").or_else(|| line.strip_prefix("FAILED | "))?;
    let count = |word: &str| {
        let part = counts
            .split(" | ")
            .find_map(|part| part.split_once(' ').filter(|(_, rest)| rest.split(' ').next() == Some(word)));
        part.and_then(|(count, _)| count.parse().ok())
    };
    Some(TestCounts {
        passed: count("passed")?,
        failed: count("failed")?,
        skipped: count("ignored").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(output: &str, has_report_of_last: bool) -> Vec<TestResults> {
        let (mut deno, mut results) = (DenoOutput::default(), TestResults::default());
        output.lines().for_each(|line| deno.line(line));
        deno.finish(has_report_of_last, &mut results);
        results.processes.into_iter().map(|process| process.results).collect()
    }

    #[test]
    fn each_run_has_its_tests_and_what_they_print_is_none_of_them() {
        let output = "running 3 tests from ./a_test.ts\na ... ok (2ms)\nb ... c ...\n------- output -------\nok | 9 passed | 0 failed (1ms)\nx ... ok (1ms)\n----- output end -----\nb ... c ... FAILED (7ms)\nsteps ...\n  one ... ok (0ms)\n  two ... FAILED (0ms)\nsteps ... FAILED (due to 1 failed step) (1ms)\n\n ERRORS \n\nb ... c => ./a_test.ts:2:6\nerror: Error: why\n\nsteps ... two => ./a_test.ts:4:74\nerror: Error: s\n\n FAILURES \n\nb ... c => ./a_test.ts:2:6\n\nFAILED | 1 passed (1 step) | 2 failed (1 step) (276ms)\nrunning 1 test from ./b_test.ts\nd ... ignored (0ms)\nok | 0 passed | 0 failed | 1 ignored (1ms)\n";
        let reports = reports(output, false);
        assert_eq!(reports.len(), 2);
        assert_eq!(reports[0].counts, TestCounts { passed: 1, failed: 2, skipped: 0 });
        assert_eq!(reports[0].declared, Some(reports[0].counts));
        assert!(reports[0].tests[1].error.as_ref().unwrap().contains("Error: why"));
        assert!(reports[0].tests[2].error.as_ref().unwrap().contains("Error: s"));
        assert_eq!(reports[1].counts, TestCounts { passed: 0, failed: 0, skipped: 1 });
    }

    #[test]
    fn a_run_that_is_cut_off_is_a_crash_and_the_last_one_may_have_a_report_of_its_own() {
        let output = "running 1 test from ./a_test.ts\na ... ok (2ms)\n";
        assert_eq!(reports(output, false)[0].problems[0].kind, TestRunProblemKind::Crashed);
        assert!(reports(output, true).is_empty());
        assert!(reports("ok | 2 passed | 0 failed (1ms)\na ... ok (2ms)\n", false).is_empty());
    }
}
