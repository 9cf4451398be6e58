//! The verdict on one step of a run.

use super::exit::RunnerExit;
use super::explain::explain_failure;
use super::judge::judge;
use super::project::judge_project_command;
use crate::ci::{CommandError, Diagnostic};
use crate::testing::plan::{TestStep, TestStepPurpose};
use crate::testing::results::{TestCommand, TestResults, TestRunProblem, TestRunProblemKind};
use crate::testing::runner::TestRunner;
use process_runner::{Output, SpawnError, SpawnErrorKind};
use std::path::Path;
use std::time::Duration;

/// The verdict on one step of a run, and what it rests on.
pub(crate) struct StepVerdict {
    pub(crate) results: TestResults,
    pub(crate) problem: Option<TestRunProblem>,
    pub(crate) exit_code: Option<u32>,
    /// The text that the step printed for people.
    pub(crate) output: String,
    /// The next steps have no chance: the run ends here.
    pub(crate) ends_run: bool,
    /// The commands of a project's own test command.
    pub(crate) commands: Vec<TestCommand>,
    /// It succeeded without a report of any test that was executed, or without one of some that may have been.
    pub(crate) is_unverified: bool,
    /// The tests alone explain the verdict, without the output.
    pub(crate) explains_itself: bool,
}

/// A step that ran, and what a verdict on it needs to know.
pub(crate) struct TestStepRun<'a> {
    pub(crate) runner: TestRunner,
    pub(crate) step: &'a TestStep,
    /// The folder of the project.
    pub(crate) folder: &'a Path,
    /// The time limit of the whole run.
    pub(crate) run_limit: Duration,
}

impl StepVerdict {
    /// Judges a step that ran.
    pub(crate) fn new(run: &TestStepRun<'_>, mut results: TestResults, output: &Output) -> Self {
        let &TestStepRun { runner, step, folder, run_limit } = run;
        let text = printed_for_people(output);
        let exit = RunnerExit::new(output, run_limit);
        if step.purpose == TestStepPurpose::ProjectCommand {
            let mut project = judge_project_command(step, folder, &mut results, exit, &text);
            if project.is_unverified && step.program == "make" && made_nothing(&text) {
                let message = "no test was executed: make had nothing to do";
                project.problem = Some(TestRunProblem::new(TestRunProblemKind::NoTests, message));
                project.is_unverified = false;
            }
            return Self {
                results,
                problem: project.problem,
                exit_code: output.code(),
                output: ends_of_both(output),
                ends_run: true,
                commands: project.commands,
                is_unverified: project.is_unverified,
                explains_itself: project.explains_itself,
            };
        }
        if !output.success() {
            if results.diagnostics.is_empty() && may_have_diagnostics(&results) {
                let diagnostics = match runner {
                    TestRunner::Deno => Diagnostic::from_deno(&text),
                    _ => Diagnostic::from_text(&text),
                };
                for diagnostic in diagnostics {
                    results.add_diagnostic(diagnostic);
                }
            }
            results.problems.extend(explain_failure(runner, &text, &results));
        }
        // The plug-in test-retry writes each attempt as a test. Without it, a build with a failed test fails.
        if runner == TestRunner::Gradle && exit == RunnerExit::Exited(0) {
            results.merge_attempts();
        }
        let problem = problem(runner, step, &mut results, exit, &text);
        // Failed tests do not end the run: a later step, such as the doctests, has other tests.
        let ends_run = match exit {
            RunnerExit::Exited(_) => {
                results.counts.total() == 0 && problem.as_ref().is_some_and(prevents_next_step)
            }
            _ => true,
        };
        Self {
            results,
            explains_itself: problem.is_none(),
            problem,
            exit_code: output.code(),
            output: ends_of_both(output),
            ends_run,
            commands: Vec::new(),
            is_unverified: false,
        }
    }

    /// Judges a step whose program did not start.
    pub(crate) fn not_started(runner: TestRunner, error: SpawnError) -> Self {
        let is_missing =
            matches!(error.kind, SpawnErrorKind::NotFound { .. } | SpawnErrorKind::BadInterpreter { .. });
        let text = CommandError::from(process_runner::Error::Spawn(error)).to_string();
        let problem = if is_missing {
            let message = format!("{text} It is usually installed so: {}", runner.installation());
            TestRunProblem::new(TestRunProblemKind::RunnerMissing, message)
        } else {
            TestRunProblem::new(TestRunProblemKind::RunnerFailed, text)
        };
        Self {
            results: TestResults::default(),
            problem: Some(problem),
            exit_code: None,
            output: String::new(),
            ends_run: true,
            commands: Vec::new(),
            is_unverified: false,
            explains_itself: true,
        }
    }
}

/// Returns true if what was printed may be the messages of a compiler. Beside tests that ran it may be what one of
/// them printed, unless the runner says that something does not compile, such as one of several packages.
fn may_have_diagnostics(results: &TestResults) -> bool {
    let does_not_compile = |problem: &TestRunProblem| problem.kind == TestRunProblemKind::CompileError;
    results.counts.total() == 0 || results.problems.iter().any(does_not_compile)
}

/// Returns false for a problem beside which the next step still makes sense: the tests may be there.
fn prevents_next_step(problem: &TestRunProblem) -> bool {
    !matches!(problem.kind, TestRunProblemKind::NoTests | TestRunProblemKind::Mismatch)
}

fn problem(
    runner: TestRunner,
    step: &TestStep,
    results: &mut TestResults,
    exit: RunnerExit,
    text: &str,
) -> Option<TestRunProblem> {
    match step.purpose {
        TestStepPurpose::Preparation => return preparation_problem(runner, step, results, exit),
        TestStepPurpose::Doctests if has_no_library(results, exit, text) => {
            let message = "there is no library, and so no documentation to test";
            return Some(TestRunProblem::new(TestRunProblemKind::NoTests, message));
        }
        TestStepPurpose::Doctests | TestStepPurpose::Tests | TestStepPurpose::ProjectCommand => {}
    }
    judge(results, exit, runner.no_tests_exit_code())
}

fn preparation_problem(
    runner: TestRunner,
    step: &TestStep,
    results: &mut TestResults,
    exit: RunnerExit,
) -> Option<TestRunProblem> {
    match exit {
        RunnerExit::Exited(0) => None,
        RunnerExit::Exited(code) => {
            let message = format!("`{}` failed with exit code {code}", step.display);
            Some(TestRunProblem::new(TestRunProblemKind::CompileError, message))
        }
        exit => judge(results, exit, runner.no_tests_exit_code()),
    }
}

fn has_no_library(results: &TestResults, exit: RunnerExit, text: &str) -> bool {
    exit != RunnerExit::Exited(0)
        && results.counts.total() == 0
        && text.lines().any(|line| line.starts_with("error: no library targets found"))
}

/// Returns true if all that make printed is that there is nothing to make.
///
/// The message is in the user's language. But what make runs is printed, prints something itself, or is silent,
/// and never begins a line with `make: `. What follows there in brackets is a command that failed.
fn made_nothing(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    let is_of_make = |line: &str| {
        let message = line.strip_prefix("make: ").or_else(|| line.strip_prefix("gmake: "));
        message.is_some_and(|message| !message.starts_with('['))
    };
    lines.peek().is_some() && lines.all(is_of_make)
}

/// Returns what the runner printed without JSON: standard output, then standard error, where errors usually are.
fn printed_for_people(output: &Output) -> String {
    let (stdout, stderr) = printed_streams(output);
    join_streams(&stdout, &stderr)
}

/// Returns the same for a report, which keeps only its end: where both streams are long, the end of each, as the cause
/// may be in either.
fn ends_of_both(output: &Output) -> String {
    /// The number of bytes of both streams together.
    const MAX_BYTES: usize = 7_900;
    let (stdout, stderr) = printed_streams(output);
    let half = MAX_BYTES / 2;
    // What one does not need is the other's.
    let stdout_bytes = MAX_BYTES - stderr.len().min(half);
    let stderr_bytes = MAX_BYTES - stdout.len().min(half);
    join_streams(end_of(&stdout, stdout_bytes), end_of(&stderr, stderr_bytes))
}

/// Returns the text of both streams without the lines of JSON on standard output.
fn printed_streams(output: &Output) -> (String, String) {
    let stdout = output.stdout.clean();
    let stdout: Vec<_> = stdout.lines().filter(|line| !line.starts_with('{')).collect();
    (stdout.join("\n"), output.stderr.clean().trim_end_matches('\n').to_owned())
}

fn join_streams(stdout: &str, stderr: &str) -> String {
    let streams = [stdout, stderr].into_iter().filter(|text| !text.is_empty());
    streams.collect::<Vec<_>>().join("\n")
}

/// Returns the last lines of a text, of at most so many bytes together.
fn end_of(text: &str, max_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    match text[start..].find('\n') {
        Some(end) if start > 0 => &text[start + end + 1..],
        _ => &text[start..],
    }
}
