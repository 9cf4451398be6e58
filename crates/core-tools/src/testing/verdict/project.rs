//! The verdict on a project's own test command: each report that was found in it, and above them its exit code.

use super::command_list::CommandList;
use super::exit::RunnerExit;
use super::explain::explain_failure;
use super::ignored_failure::{failed_test_command, ignored_failures_note};
use super::judge::judge;
use super::skipped_environments::skipped_environments;
use crate::shell_quote::shell_join;
use crate::testing::plan::TestStep;
use crate::testing::results::{
    PrintedSummary, RunnerEndMarker, TestCommand, TestCounts, TestProcessReport, TestResults, TestRunProblem,
    TestRunProblemKind,
};
use crate::testing::runner::TestRunner;
use std::path::Path;

/// The exit code of a shell that did not find a program.
const NOT_FOUND_CODE: u32 = 127;

/// The verdict on a project's own test command.
pub(super) struct ProjectVerdict {
    pub(super) problem: Option<TestRunProblem>,
    pub(super) commands: Vec<TestCommand>,
    /// It succeeded, and no test is known to have been executed, or what became of some is not known.
    pub(super) is_unverified: bool,
    /// The failed tests explain the verdict without the output.
    pub(super) explains_itself: bool,
}

/// Judges the reports of the processes of `step`, moves their tests into `results`, and weighs the exit code of
/// the whole command above them.
pub(super) fn judge_project_command(
    step: &TestStep,
    folder: &Path,
    results: &mut TestResults,
    exit: RunnerExit,
    text: &str,
) -> ProjectVerdict {
    let processes = std::mem::take(&mut results.processes);
    let mut list = CommandList::new(&step.parts, folder, &processes);
    let mut problems: Vec<TestRunProblem> = results.problems.clone();
    let mut failed_runner = None;
    let mut has_foreign_tap = false;
    for (index, mut process) in processes.into_iter().enumerate() {
        let Some(runner) = process.runner.clone() else {
            failed_runner = failed_runner.or_else(|| runner_without_report(&process, exit));
            list.add_without_report(index, &process);
            results.notes.append(&mut process.results.notes);
            continue;
        };
        if !list.may_have_printed(&process, &runner) {
            has_foreign_tap |= runner == "tap";
            continue;
        }
        let problem = judge_process(&mut process, &runner, exit, text);
        list.add_report(index, &process, &runner, problem.as_ref());
        problems.extend(problem);
        results.absorb(process.results);
    }
    let counts = results.counts;
    // Only what looks like a success is searched for traces of a failure. Otherwise the failure is known already.
    if exit == RunnerExit::Exited(0) && counts.failed == 0 && problems.is_empty() {
        let of_cargo = || list.runs_cargo().then(|| cargo_failure(text)).flatten();
        let of_prove = || list.runs_prove().then(|| prove_failure(text)).flatten();
        let beside_report = || list.failed_beside_its_report();
        let of_summary = || printed_failure(&results.summaries, &list, counts);
        let of_command = || failed_test_command(&list.ignored_failures);
        // The surest trace comes first: how a process ended, then the lines of cargo and prove, then printed summaries.
        problems.extend(
            failed_runner
                .or_else(beside_report)
                .or_else(of_cargo)
                .or_else(of_prove)
                .or_else(of_summary)
                .or_else(of_command),
        );
    }
    // Among tests that ran, a runner that found none is not why the run as a whole has none.
    for problem in problems.iter_mut().filter(|_| results.counts.executed() > 0) {
        if problem.kind == TestRunProblemKind::NoTests {
            problem.kind = TestRunProblemKind::RunnerFailed;
        }
    }
    let failed_silently = list.failed_without_report();
    let problem = match exit {
        RunnerExit::Exited(code) => {
            exit_problem(step, code, problems, counts, failed_silently.as_deref(), text)
        }
        exit => judge(results, exit, None),
    };
    let may_be_verified = exit == RunnerExit::Exited(0) && problem.is_none();
    let unverified =
        may_be_verified.then(|| unverified_note(results, &list, has_foreign_tap, text)).flatten();
    let is_unverified = may_be_verified && (counts.executed() == 0 || unverified.is_some());
    results.notes.extend(unverified);
    results.notes.extend(skipped_environments(text));
    ProjectVerdict {
        explains_itself: problem.is_none() && failed_silently.is_none() && !is_unverified,
        problem,
        commands: list.into_commands(),
        is_unverified,
    }
}

/// Returns what is wrong with the report of one process, whatever the whole command came to.
fn judge_process(
    process: &mut TestProcessReport,
    runner: &str,
    exit: RunnerExit,
    text: &str,
) -> Option<TestRunProblem> {
    let is_printed = process.is_printed();
    let results = &mut process.results;
    let own_exit = match (process.exit_code, exit) {
        (Some(code), _) => RunnerExit::Exited(code),
        // The end of its report is there, and its exit code is not: it agrees with the report.
        (None, RunnerExit::Exited(_)) if is_printed || results.runner_end == RunnerEndMarker::Reached => {
            RunnerExit::Exited(u32::from(results.counts.failed > 0))
        }
        (None, RunnerExit::Exited(_)) => RunnerExit::Unknown,
        (None, exit) => exit,
    };
    if let (true, Some(runner)) = (own_exit != RunnerExit::Exited(0), TestRunner::from_name(runner)) {
        let explained = explain_failure(runner, text, results);
        results.problems.extend(explained);
    }
    let problem = judge(results, own_exit, None)?;
    // A runner that is content without tests is none of our business; the whole command says whether it counts.
    (problem.kind != TestRunProblemKind::NoTests || own_exit != RunnerExit::Exited(0)).then_some(problem)
}

/// Returns the problem of a test runner that failed or was killed before it reported, although the whole command
/// succeeded: `mocha a.js; mocha b.js`.
fn runner_without_report(process: &TestProcessReport, exit: RunnerExit) -> Option<TestRunProblem> {
    const RUNNERS: [&str; 12] = [
        "ava", "jasmine", "jest", "jest-cli", "mocha", "pytest", "qunit", "tap", "tape", "unittest", "uvu",
        "vitest",
    ];
    let has = |word: &str| process.arguments.iter().any(|argument| argument == word);
    let program = process.program.rsplit('/').next().unwrap_or_default();
    let is_runner = match process.program.as_str() {
        "node" => has("--test"),
        "playwright" | "@playwright/test" => has("test"),
        _ => RUNNERS.contains(&program),
    };
    if !is_runner || !matches!(exit, RunnerExit::Exited(_)) {
        return None;
    }
    let command = shell_join(std::iter::once(&program.to_owned()).chain(&process.arguments));
    match process.exit_code {
        Some(0) => None,
        Some(code) => {
            let message = format!(
                "`{command}` failed with exit code {code} without a failed test, though the whole command ended with exit code 0"
            );
            Some(TestRunProblem::new(TestRunProblemKind::RunnerFailed, message))
        }
        None => {
            let message = format!("`{command}` was ended before it reported a test");
            Some(TestRunProblem::new(TestRunProblemKind::Crashed, message))
        }
    }
}

/// Returns the problem that cargo names on a line of its own: what it cannot build has no tests that report.
fn cargo_failure(text: &str) -> Option<TestRunProblem> {
    const OTHERS: [&str; 4] = [
        "error: failed to parse manifest",
        "error: failed to run custom build command",
        "error: test failed, to rerun",
        "error: no test target named",
    ];
    let starts =
        |phrases: &[&str]| text.lines().find(|line| phrases.iter().any(|phrase| line.starts_with(phrase)));
    let broken = starts(&["error: could not compile `"]).map(|line| (TestRunProblemKind::CompileError, line));
    let (kind, line) = broken.or_else(|| Some((TestRunProblemKind::RunnerFailed, starts(&OTHERS)?)))?;
    Some(TestRunProblem::new(kind, line))
}

/// Returns the problem that prove tells of a file which failed beside its tests: it died before them, or after.
fn prove_failure(text: &str) -> Option<TestRunProblem> {
    text.lines().any(|line| line == "Result: FAIL").then(|| {
        let message = "prove ended with `Result: FAIL`, though none of the tests that it printed failed";
        TestRunProblem::new(TestRunProblemKind::RunnerFailed, message)
    })
}

/// Returns the problem that a runner without a reporter of ours has printed that tests failed.
fn printed_failure(
    summaries: &[PrintedSummary],
    list: &CommandList<'_>,
    counts: TestCounts,
) -> Option<TestRunProblem> {
    let failure = summaries.iter().find(|summary| summary.has_failures)?;
    list.may_have_unreported_tests(counts.executed() == 0).then(|| {
        let message = format!(
            "the output has `{}`, which {} prints if tests failed; no test of it was reported, and the exit code of the whole command is 0",
            failure.line, failure.runner
        );
        TestRunProblem::new(TestRunProblemKind::Mismatch, message)
    })
}

/// Returns what a command that succeeded leaves open, although it may have reported tests: others of which nothing is known.
fn unverified_note(
    results: &TestResults,
    list: &CommandList<'_>,
    has_foreign_tap: bool,
    text: &str,
) -> Option<String> {
    let TestResults { summaries, failure_lines, .. } = results;
    let unknown = list.unknown_outcomes();
    if !unknown.is_empty() {
        let commands = unknown.join(", ");
        return Some(format!(
            "not verified: nothing reported the tests of {commands}, and the test command succeeds whether or not they fail"
        ));
    }
    if let Some(note) = ignored_failures_note(&list.ignored_failures) {
        return Some(note);
    }
    if let Some(failure) = summaries.iter().find(|summary| summary.has_failures)
        && list.may_have_started_a_runner()
    {
        return Some(format!(
            "not verified: the output has `{}`, which {} prints if tests failed, and no report accounts for it: a command that reported no test may have started it, or a test printed it",
            failure.line, failure.runner
        ));
    }
    let unreported = summaries.iter().find(|summary| {
        // Of files and of tests, or of those that passed and those that failed.
        let lines = if ["jest", "mocha", "vitest"].contains(&summary.runner) { 2 } else { 1 };
        let printed = summaries.iter().filter(|other| other.runner == summary.runner).count();
        printed > lines * list.reports_of(summary.runner)
    });
    if let Some(summary) = unreported.filter(|_| list.hides_a_silent_command()) {
        return Some(format!(
            "not verified: the output has `{}`, as {} prints it, and no test of it was reported",
            summary.line, summary.runner
        ));
    }
    if let Some(line) = text
        .lines()
        .find(|line| rule_ignored_by_make(line).is_some_and(|rule| list.hides_a_command_of_rule(rule)))
    {
        return Some(format!(
            "not verified: make ignored that a command failed, and nothing reported its tests: `{line}`"
        ));
    }
    if let Some(line) = failure_lines.first().filter(|_| list.has_script_that_hides_failures()) {
        return Some(format!(
            "not verified: the output has `{line}`, and a script that reported no test may have printed it: the script can end with exit code 0 after a failure"
        ));
    }
    let has_reports = list.commands.iter().any(|command| command.runner.is_some());
    (has_foreign_tap && !has_reports).then(|| {
        "not verified: TAP is on standard output, and none of the commands runs tests: it may be that of an earlier run"
            .to_owned()
    })
}

/// Returns the rule of a command whose failure make ignored, if `line` is that message of make:
/// `make: [Makefile:5: unit] Error 1 (ignored)`.
fn rule_ignored_by_make(line: &str) -> Option<&str> {
    let (program, message) = line.split_once(": [")?;
    let program = program.split('[').next().unwrap_or_default();
    let (place, error) = message.split_once("] ")?;
    let is_of_make = ["make", "gmake", "mingw32-make"].contains(&program);
    (is_of_make && error.ends_with(" (ignored)")).then(|| place.rsplit(": ").next().unwrap_or(place))
}

/// Returns the problem of a command that ended with an exit code, which outranks the reports in it.
fn exit_problem(
    step: &TestStep,
    code: u32,
    problems: Vec<TestRunProblem>,
    counts: TestCounts,
    failed_silently: Option<&str>,
    text: &str,
) -> Option<TestRunProblem> {
    let gravest = problems.into_iter().min_by_key(|problem| problem.kind);
    if gravest.is_some() {
        return gravest;
    }
    if code == 0 {
        return (counts.failed > 0).then(|| {
            let message = format!(
                "the exit code of `{}` is 0, though {} tests failed in it",
                step.display, counts.failed
            );
            TestRunProblem::new(TestRunProblemKind::Mismatch, message)
        });
    }
    if counts.failed > 0 {
        return None;
    }
    let command = &step.display;
    // make prints the exit code of the shell that did not find a program, and ends with another exit code itself.
    if counts.total() == 0
        && (code == NOT_FOUND_CODE || text.contains("Error 127"))
        && let Some(line) =
            text.lines().find(|line| line.contains("not found") || line.contains("No such file"))
    {
        let is_of_node = ["npm", "pnpm", "yarn", "bun"].contains(&step.program.as_str());
        let advice = if is_of_node {
            format!(". Its dependencies are usually installed so: {} install", step.program)
        } else {
            String::new()
        };
        let message = format!("{}{advice}", line.trim());
        return Some(TestRunProblem::new(TestRunProblemKind::RunnerMissing, message));
    }
    let culprit = failed_silently.map_or_else(String::new, |command| format!(": {command} failed"));
    let message = match counts.total() {
        0 => format!("`{command}` failed with exit code {code} and reported no test{culprit}"),
        total => format!(
            "`{command}` failed with exit code {code}, though none of the {total} tests that were reported failed{culprit}"
        ),
    };
    Some(TestRunProblem::new(TestRunProblemKind::RunnerFailed, message))
}
