//! The verdict on the results of a runner and its exit. The exit code outranks every report.

use super::exit::RunnerExit;
use crate::ci::DiagnosticSeverity;
use crate::testing::results::{
    RunnerEndMarker, TestCase, TestResults, TestRunProblem, TestRunProblemKind, TestStatus,
};
use process_runner::signal_name;
use std::time::Duration;

/// Returns what is wrong with the run as a whole, if anything is. Tests that have not ended are ended.
///
/// `no_tests_code` is the exit code with which the runner says that no test was selected. The checks come in
/// the order of [`TestRunProblemKind`]: the first problem hides the later ones.
pub(crate) fn judge(
    results: &mut TestResults,
    exit: RunnerExit,
    no_tests_code: Option<u32>,
) -> Option<TestRunProblem> {
    let unfinished = end_running_tests(results, exit);
    results.notes.extend(not_run(results));
    let code = match exit {
        RunnerExit::Exited(code) => code,
        RunnerExit::TimedOut(limit) => {
            let message = format!("Test runner timed out after {}s", seconds(limit));
            return Some(TestRunProblem::new(TestRunProblemKind::TimedOut, message));
        }
        RunnerExit::Cancelled => {
            return Some(TestRunProblem::new(TestRunProblemKind::Cancelled, "the run was cancelled"));
        }
        RunnerExit::Signaled(signal) => {
            let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
            return Some(TestRunProblem::new(
                TestRunProblemKind::Crashed,
                format!("the runner was ended by {name}"),
            ));
        }
        RunnerExit::Unknown => {
            return Some(TestRunProblem::new(
                TestRunProblemKind::Crashed,
                "how the runner ended is not known",
            ));
        }
    };
    reported_problem(results)
        .or_else(|| failed_before_tests(results, code, no_tests_code))
        .or_else(|| missing_report(results, code))
        .or_else(|| unmarked_end(results, code, &unfinished))
        .or_else(|| contradiction(results, code))
        .or_else(|| nothing_executed(results))
        .or_else(|| incomplete_success(results, code, &unfinished))
        .or_else(|| requested_name_missing(results))
}

/// Returns a note on planned tests that were not run, as after `--bail`, `-x` or a hook that failed. Without a failure they
/// are a problem, and no note.
fn not_run(results: &TestResults) -> Option<String> {
    let planned = results.expected.filter(|_| results.reports_whole_plan)?;
    let missing = planned.checked_sub(results.counts.total()).filter(|missing| *missing > 0)?;
    let has_failed = results.counts.failed > 0 || !results.problems.is_empty();
    has_failed.then(|| format!("at least {missing} of the {planned} planned tests did not run"))
}

/// Ends the tests that were running when the process ended, and returns their names.
fn end_running_tests(results: &mut TestResults, exit: RunnerExit) -> Vec<String> {
    let outcome = match exit {
        RunnerExit::TimedOut(_) => {
            Some((TestStatus::TimedOut, "it was running when the time limit ended the run"))
        }
        RunnerExit::Cancelled => Some((TestStatus::Errored, "it was running when the run was cancelled")),
        // The runner itself came to its end: what it left open has an end that it did not report.
        _ if results.runner_end == RunnerEndMarker::Reached => None,
        _ => Some((TestStatus::Errored, "it was running when its process ended")),
    };
    let names: Vec<_> = results.running.drain(..).collect();
    if let Some((status, error)) = outcome {
        for name in &names {
            results
                .add_test(TestCase { error: Some(error.to_owned()), ..TestCase::new(name.as_str(), status) });
        }
    }
    names
}

/// Returns the gravest problem that the parser found in the report, and how many others there are of its kind.
fn reported_problem(results: &TestResults) -> Option<TestRunProblem> {
    let mut problem = results.problems.iter().min_by_key(|problem| problem.kind)?.clone();
    let others = results.problems.iter().filter(|other| other.kind == problem.kind).count() - 1;
    if others > 0 {
        problem.message.push_str(&format!(" (and {others} more)"));
    }
    Some(problem)
}

fn failed_before_tests(
    results: &TestResults,
    code: u32,
    no_tests_code: Option<u32>,
) -> Option<TestRunProblem> {
    if results.diagnostics.iter().any(|diagnostic| diagnostic.severity == DiagnosticSeverity::Error) {
        let message = "the project or its tests do not compile; see diagnostics";
        return Some(TestRunProblem::new(TestRunProblemKind::CompileError, message));
    }
    let is_code_for_no_tests = code != 0 && no_tests_code == Some(code);
    (is_code_for_no_tests && results.counts.executed() == 0).then(|| no_tests(results.counts.skipped))
}

/// Returns the problem that a runner which seems content has not come as far as its report: a test has ended its
/// process.
fn missing_report(results: &TestResults, code: u32) -> Option<TestRunProblem> {
    (code == 0 && results.report_is_missing).then(|| {
        let message = "the runner ended with exit code 0 before it wrote its report: what its tests came to is not known";
        TestRunProblem::new(TestRunProblemKind::Crashed, message)
    })
}

/// Returns the problem that the process ended before the runner's own end.
fn unmarked_end(results: &TestResults, code: u32, unfinished: &[String]) -> Option<TestRunProblem> {
    let is_cut_off = match results.runner_end {
        RunnerEndMarker::Missing => true,
        RunnerEndMarker::Unmarked => !unfinished.is_empty(),
        RunnerEndMarker::Reached => false,
    };
    is_cut_off.then(|| {
        let message = format!("the tests' process ended with exit code {code} before the tests had ended");
        TestRunProblem::new(TestRunProblemKind::Crashed, message)
    })
}

/// Returns the contradiction between exit code, report of each test, and the runner's own summary.
fn contradiction(results: &TestResults, code: u32) -> Option<TestRunProblem> {
    let counts = results.counts;
    if code == 0 && counts.failed > 0 {
        let message =
            format!("the runner's exit code is 0, but its own report has {} failed tests", counts.failed);
        return Some(TestRunProblem::new(TestRunProblemKind::Mismatch, message));
    }
    if let Some(declared) = results.declared.filter(|declared| *declared != counts) {
        let message = format!("the runner's summary says {declared}; its report of each test says {counts}");
        return Some(TestRunProblem::new(TestRunProblemKind::Mismatch, message));
    }
    if code == 0 || counts.failed > 0 {
        return None;
    }
    let total = counts.total();
    let message = if total == 0 {
        format!("the runner failed with exit code {code} and reported no test")
    } else {
        format!("the runner's exit code is {code}, though none of the {total} tests it reported failed")
    };
    Some(TestRunProblem::new(TestRunProblemKind::RunnerFailed, message))
}

fn nothing_executed(results: &TestResults) -> Option<TestRunProblem> {
    (results.counts.executed() == 0).then(|| no_tests(results.counts.skipped))
}

/// Returns the problem of a run that looks like a success and is not whole.
fn incomplete_success(results: &TestResults, code: u32, unfinished: &[String]) -> Option<TestRunProblem> {
    let counts = results.counts;
    if code != 0 || counts.failed > 0 {
        return None;
    }
    if let Some(name) = unfinished.first() {
        let message = format!("the runner ended with exit code 0 before its test `{name}` had ended");
        return Some(TestRunProblem::new(TestRunProblemKind::Crashed, message));
    }
    let planned = results.expected.filter(|_| results.reports_whole_plan).unwrap_or_default();
    (planned > counts.total()).then(|| {
        let message = format!("{planned} tests were planned and {} reported", counts.total());
        TestRunProblem::new(TestRunProblemKind::Crashed, message)
    })
}

/// Returns the problem that none of the executed tests has the requested name: the pattern matched others.
fn requested_name_missing(results: &TestResults) -> Option<TestRunProblem> {
    let name = results.requested_name.as_ref()?;
    if results.requested_name_executed || results.counts.failed > 0 {
        return None;
    }
    let passed = results.counts.passed;
    let message = format!("none of the {passed} tests that were executed is named `{name}`");
    Some(TestRunProblem::new(TestRunProblemKind::NoTests, message))
}

fn no_tests(skipped: u64) -> TestRunProblem {
    let message = match skipped {
        0 => "no test was executed: there is none, or none that `test_path` names".to_owned(),
        1 => "no test was executed: the only one is skipped".to_owned(),
        skipped => format!("no test was executed: all {skipped} are skipped"),
    };
    TestRunProblem::new(TestRunProblemKind::NoTests, message)
}

/// Returns a time in seconds, with a fraction where there is one.
fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { time.as_secs().to_string() } else { time.as_secs_f64().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::results::TestCounts;

    fn kind(results: &mut TestResults, code: u32) -> Option<TestRunProblemKind> {
        judge(results, RunnerExit::Exited(code), None).map(|problem| problem.kind)
    }

    fn results(statuses: &[TestStatus]) -> TestResults {
        let mut results = TestResults::default();
        for status in statuses {
            results.add_test(TestCase::new("test", *status));
        }
        results
    }

    #[test]
    fn no_test_executed_is_never_a_pass() {
        assert_eq!(kind(&mut results(&[]), 0), Some(TestRunProblemKind::NoTests));
        assert_eq!(kind(&mut results(&[TestStatus::Skipped]), 0), Some(TestRunProblemKind::NoTests));
        assert_eq!(kind(&mut results(&[TestStatus::Passed]), 0), None);
    }

    #[test]
    fn the_exit_code_outranks_the_report() {
        assert_eq!(kind(&mut results(&[TestStatus::Passed]), 1), Some(TestRunProblemKind::RunnerFailed));
        assert_eq!(kind(&mut results(&[TestStatus::Failed]), 0), Some(TestRunProblemKind::Mismatch));
        assert_eq!(kind(&mut results(&[TestStatus::Failed]), 1), None);
    }

    #[test]
    fn a_summary_that_disagrees_is_a_mismatch() {
        let mut results = results(&[TestStatus::Passed]);
        results.add_declared(TestCounts { passed: 2, failed: 0, skipped: 0 });
        assert_eq!(kind(&mut results, 0), Some(TestRunProblemKind::Mismatch));
    }

    #[test]
    fn a_test_without_an_end_is_a_crash_whatever_the_exit_code() {
        let mut results = results(&[TestStatus::Passed]);
        results.runner_end = RunnerEndMarker::Missing;
        results.test_started("last");
        assert_eq!(kind(&mut results, 0), Some(TestRunProblemKind::Crashed));
        assert_eq!(results.tests[1].status, TestStatus::Errored);
    }

    #[test]
    fn the_time_limit_is_given_in_seconds_and_names_what_was_running() {
        let mut results = results(&[TestStatus::Passed]);
        results.test_started("hangs");
        let problem = judge(&mut results, RunnerExit::TimedOut(Duration::from_secs(120)), None);
        assert_eq!(problem.unwrap().message, "Test runner timed out after 120s");
        assert_eq!(
            (results.tests[1].name.as_str(), results.tests[1].status),
            ("hangs", TestStatus::TimedOut)
        );
    }
}
