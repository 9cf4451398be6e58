//! One report of all steps of a run.

use super::test_report::TestReport;
use crate::testing::results::{TestCommand, TestCounts, TestRunProblem, TestRunProblemKind, TestsNotRun};
use crate::testing::runner::TestRunner;
use crate::testing::verdict::StepVerdict;

/// Merges the verdicts on all steps of a run into one report.
///
/// A step without tests is no problem beside one that executed some: a package without a library has no tests
/// in its documentation.
pub(crate) fn merge(runner: TestRunner, steps: Vec<StepVerdict>) -> TestReport {
    let mut report = TestReport::new(runner.name());
    let has_executed_tests =
        steps.iter().any(|step| step.results.counts.executed() > 0 && !has_no_tests(step));
    let mut output = Vec::new();
    let mut counts = TestCounts::default();
    let mut is_unverified = false;
    for step in steps {
        // nextest has nothing to run where all tests are in documentation, which is the next step.
        let found_none =
            runner == TestRunner::Nextest && step.exit_code == TestRunner::Nextest.no_tests_exit_code();
        let is_empty = has_executed_tests && (has_no_tests(&step) || found_none);
        counts += step.results.counts;
        report.flaky = report.flaky.saturating_add(step.results.flaky);
        report.deselected = report.deselected.saturating_add(step.results.deselected);
        report.notes.extend(step.results.notes);
        TestsNotRun::merge(&mut report.not_run, step.results.not_run);
        report.claims.merge(step.results.claims);
        report.truncated |= step.results.truncated;
        report.tests.extend(step.results.tests);
        report.diagnostics.extend(step.results.diagnostics);
        // The first failure stays.
        if report.exit_code.is_none_or(|code| code == 0) && !is_empty {
            report.exit_code = step.exit_code;
        }
        let problem =
            step.problem.filter(|problem| problem.kind != TestRunProblemKind::NoTests || !has_executed_tests);
        report.commands.extend(step.commands);
        is_unverified |= step.is_unverified;
        let explains_itself = problem.is_none() && step.explains_itself;
        if !explains_itself && !step.output.trim().is_empty() {
            output.push(step.output);
        }
        report.error = graver(report.error.take(), problem);
    }
    (report.passed, report.failed, report.skipped) = (counts.passed, counts.failed, counts.skipped);
    let has_failed = report.error.is_some() || report.failed > 0;
    report.success = match (has_failed, has_executed_tests) {
        (false, _) if is_unverified => None,
        (false, true) => Some(true),
        _ => Some(false),
    };
    if let Some(runner) = only_runner(&report.commands) {
        report.runner = runner.name();
    } else if !report.commands.is_empty() && runner.runs_any_node_project() {
        report.runner = TestRunner::Npm.name();
    }
    report.output = Some(output.join("\n")).filter(|output| !output.is_empty());
    report
}

/// Returns the runner that reported all tests of a project's own command, if it is one.
fn only_runner(commands: &[TestCommand]) -> Option<TestRunner> {
    let mut names = commands.iter().filter_map(|command| command.runner.as_deref());
    let first = names.next()?;
    names.all(|name| name == first).then(|| TestRunner::from_name(first)).flatten()
}

fn has_no_tests(step: &StepVerdict) -> bool {
    step.problem.as_ref().is_some_and(|problem| problem.kind == TestRunProblemKind::NoTests)
}

/// Returns the problem whose kind hides the other, the earlier one if they are alike.
fn graver(earlier: Option<TestRunProblem>, later: Option<TestRunProblem>) -> Option<TestRunProblem> {
    match (earlier, later) {
        (Some(earlier), Some(later)) if later.kind < earlier.kind => Some(later),
        (earlier, later) => earlier.or(later),
    }
}
