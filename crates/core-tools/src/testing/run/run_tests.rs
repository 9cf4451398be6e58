//! One run of a project's tests, from the request to the report.

use super::new_files::UntrackedFilesBeforeTests;
use super::step_runner::StepRunner;
use crate::ci::Commands;
use crate::shell_quote::shell_quote;
use crate::testing::error::TestError;
use crate::testing::not_run::TestLister;
use crate::testing::plan::{
    self, ENVIRONMENT_FILE, EnvironmentAddition, PROGRAMS, REPORTERS, ReportFolder, environment_manager,
};
use crate::testing::project_command::commands_not_run;
use crate::testing::report::{StepCommands, TestReport, locate_in_project, merge, present};
use crate::testing::request::RunTests;
use crate::testing::results::{
    FailedTests, TestCase, TestCounts, TestResults, TestRunProblemKind, TestStatus,
};
use crate::testing::runner::TestRunner;
use crate::testing::target::{TestFilter, TestTarget, select};
use crate::testing::verdict::StepVerdict;
use crate::workspace::Workspace;
use process_runner::Limits;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that a program has to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The file by which a project configures nextest.
const NEXTEST_CONFIG: &str = ".config/nextest.toml";

/// Finds the runner of a project, runs it with the environment and confinement of `commands`, and reports.
/// `on_progress` gets a line about the state of the run from time to time.
///
/// Whatever became of the tests is a report, also where the runner is missing, dies, or is ended by the time
/// limit; see [`TestReport::success`].
///
/// # Errors
///
/// Nothing could be run: there is no such path, no runner was found, or it cannot select what was requested.
pub async fn run_tests(
    commands: &Commands,
    request: &RunTests,
    cancel: &CancellationToken,
    on_progress: impl Fn(&str),
) -> Result<TestReport, TestError> {
    let mut target = select_off_runtime(commands.workspace(), request).await?;
    let mut notes = Vec::new();
    let may_choose = request.runner.is_none() && request.failed_tests.is_none();
    if may_choose && target.runner == TestRunner::Cargo {
        // Nextest runs each test in a process of its own, so that other tests pass and fail than with `cargo test`. It is
        // the project's own command only where the project configures it.
        let configures_nextest = target.project.contains(NEXTEST_CONFIG)
            || target.project.ancestors().any(|project| project.contains(NEXTEST_CONFIG));
        if configures_nextest
            && is_installed(commands, &target, "cargo", &["nextest", "--version"], cancel).await
        {
            target.runner = TestRunner::Nextest;
            target.other_runners.insert(0, TestRunner::Cargo);
        } else if configures_nextest {
            notes.push(format!(
                "cargo runs the tests: there is a {NEXTEST_CONFIG}, and cargo-nextest is not installed"
            ));
        }
    }
    choose_interpreter(commands, &mut target, &request.env, &mut notes, cancel).await;
    // Outside the project: a run leaves nothing in it that the runner itself would not.
    let folder = commands.report_folder()?;
    let reports = Workspace::new([folder.path()])?;
    for (name, text) in REPORTERS {
        reports.locate(name)?.write(text.as_bytes())?;
    }
    let steps = plan::steps(&target, &ReportFolder::new(folder.path()))?;
    let mut step_commands = StepCommands::new(target.runner, &steps);
    let command = with_variables(&request.env, &step_commands.display_line());
    let additions: Vec<_> = steps.iter().flat_map(|step| step.additions.iter().cloned()).collect();
    if additions.iter().any(|addition| addition.name() == "PATH") {
        write_programs(folder.path())?;
    }
    reports.locate(ENVIRONMENT_FILE)?.write(words_of_reporters(&additions).to_string().as_bytes())?;
    let untracked_before = UntrackedFilesBeforeTests::list(commands, &target.project, cancel).await;
    let started = Instant::now();
    let mut verdicts: Vec<StepVerdict> = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        let mut counts_before = TestCounts::default();
        for verdict in &verdicts {
            counts_before += verdict.results.counts;
        }
        let runner = StepRunner {
            commands,
            target: &target,
            env: &request.env,
            reports: &reports,
            run_limit: request.time_limit,
            remaining: request.time_limit.saturating_sub(started.elapsed()),
            cancel,
        };
        let on_progress = |results: &TestResults| on_progress(&progress_line(counts_before, results));
        let verdict = runner.run(step, &on_progress).await?;
        step_commands.record(index, &verdict);
        let ends_run = verdict.ends_run;
        verdicts.push(verdict);
        if ends_run {
            break;
        }
    }
    let elapsed = started.elapsed();
    let mut report = merge(target.runner, verdicts);
    report.commands.extend(step_commands.into_commands());
    let lister = TestLister { commands, project: &target.project, env: &request.env, cancel };
    let was_ended = report.error.as_ref().is_some_and(|error| {
        matches!(error.kind, TestRunProblemKind::TimedOut | TestRunProblemKind::Cancelled)
    });
    let is_whole_run = target.filter == TestFilter::default() && target.arguments.is_empty();
    lister.add_only(&mut report);
    if is_whole_run && !was_ended && report.passed + report.failed + report.skipped > 0 {
        if target.project_command.is_none() {
            lister.add_to(&mut report, target.runner).await;
        }
        lister.add_unreported_files(&mut report);
    }
    if let Some(before) = untracked_before
        && let Some(after) = UntrackedFilesBeforeTests::list(commands, &target.project, cancel).await
    {
        report.new_files = after.since(&before);
    }
    locate_in_project(&mut report.tests, &target.project);
    report.command = commands.redact(&command);
    report.folder = target.project.folder().display_path();
    report.duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    notes.extend(choice_notes(&target, request, &additions));
    notes.extend(request.failed_tests.as_ref().and_then(|failed| not_run_again(failed, &report.tests)));
    report.notes.splice(0..0, notes);
    let folder = target.project.folder().to_absolute();
    report.failed_tests = FailedTests::new(report.runner, folder.clone(), &report.tests, report.failed);
    present(&mut report, &folder.to_string_lossy(), |text| commands.redact(text), request.max_bytes);
    Ok(report)
}

/// Selects the tests on a thread of the blocking pool, because the files of a project may be many and long.
async fn select_off_runtime(workspace: &Workspace, request: &RunTests) -> Result<TestTarget, TestError> {
    let (workspace, request) = (workspace.clone(), request.clone());
    match tokio::task::spawn_blocking(move || select(&workspace, &request)).await {
        Ok(target) => target,
        // Passed on, because the tool host answers a panic of any tool in the same way.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(TestError::ShuttingDown),
    }
}

/// Returns a note on those of the failed tests that were not run again: they are gone, or the runner could not select them.
fn not_run_again(failed: &FailedTests, tests: &[TestCase]) -> Option<String> {
    const MAX_NAMED: usize = 10;
    let has_run =
        |name: &String| tests.iter().any(|test| test.name == *name && test.status != TestStatus::Skipped);
    let missing: Vec<&str> = failed.names.iter().filter(|name| !has_run(name)).map(String::as_str).collect();
    let named = missing.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join("; ");
    (!missing.is_empty()).then(|| format!("{} of them did not run by their names: {named}", missing.len()))
}

/// Returns a command with the variables that the request sets, as it would be typed.
fn with_variables(env: &BTreeMap<String, String>, command: &str) -> String {
    let variables = env.iter().map(|(name, value)| format!("{name}={} ", shell_quote(value)));
    variables.collect::<String>() + command
}

/// Returns the words that load our reporters, for a reporter to take out of the environment of the tests.
fn words_of_reporters(additions: &[EnvironmentAddition]) -> serde_json::Value {
    // What loads the reporter of pytest is set by a module in each Python process.
    let of_pytest = serde_json::json!(["PYTEST_PLUGINS", "core_tools_pytest", ","]);
    additions.iter().map(EnvironmentAddition::to_json).chain([of_pytest]).collect()
}

/// Writes the programs that load a reporter, so that a shell can start them.
fn write_programs(reports: &Path) -> Result<(), TestError> {
    let folder = Workspace::new([reports])?;
    for (name, text) in PROGRAMS {
        let program = folder.locate(name)?;
        program.write(text.as_bytes())?;
        #[cfg(unix)]
        std::fs::set_permissions(program.to_absolute(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

/// Returns what a reader of the report should know of the choice of the runner. `additions` load our reporters.
fn choice_notes(target: &TestTarget, request: &RunTests, additions: &[EnvironmentAddition]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(failed) = &request.failed_tests {
        let more = if failed.is_partial { ", of which not all are known by name" } else { "" };
        notes.push(format!(
            "only the {} tests that failed in the last run were run again{more}",
            failed.len()
        ));
    }
    if !request.args.is_empty() && target.runner == TestRunner::Nextest {
        notes.push(
            "tests in documentation were not run: `args` are those of nextest; `runner` `cargo` runs both"
                .to_owned(),
        );
    }
    // Cargo's tests are those of nextest.
    let is_other = |other: &&TestRunner| (target.runner, **other) != (TestRunner::Nextest, TestRunner::Cargo);
    let names: Vec<_> = target.other_runners.iter().filter(is_other).map(|runner| runner.name()).collect();
    if !names.is_empty() && request.runner.is_none() {
        notes.push(format!(
            "the project also has tests of {}, which were not run; `runner` chooses",
            names.join(", ")
        ));
    }
    if target.filter == TestFilter::default() {
        let not_run = commands_not_run(&target.project, target.runner);
        if !not_run.is_empty() {
            notes.push(format!("the project also has commands that were not run: {}", not_run.join(", ")));
        }
    }
    notes.extend(target.project_command.iter().flat_map(|command| command.notes.iter().cloned()));
    if additions.iter().any(|addition| addition.name() == "PATH") {
        notes.push("environment: a script sets `NODE_OPTIONS` itself, so that a `node` before those of `PATH` loads our reporter".to_owned());
    }
    let names: Vec<_> = additions
        .iter()
        .filter(|addition| addition.name() != "PATH")
        .map(|addition| format!("`{}`", addition.name()))
        .collect();
    if let Some((last, others)) = names.split_last() {
        let names =
            if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
        let have = if others.is_empty() { "has" } else { "have" };
        notes.push(format!("environment: that of a terminal, and our reporter beside what {names} {have}"));
    }
    notes
}

/// Finds out which managers of Python environments can be used, and notes where one that the project names cannot.
async fn choose_interpreter(
    commands: &Commands,
    target: &mut TestTarget,
    env: &BTreeMap<String, String>,
    notes: &mut Vec<String>,
    cancel: &CancellationToken,
) {
    if !matches!(target.runner, TestRunner::Pytest | TestRunner::Unittest) {
        return;
    }
    while let Some(manager) = environment_manager(target) {
        // It would create `.venv` in the project, where the user has chosen no other place.
        const ENVIRONMENT: &str = "UV_PROJECT_ENVIRONMENT";
        let names_place = env.contains_key(ENVIRONMENT) || commands.inherited_variable(ENVIRONMENT).is_some();
        let would_create = manager == "uv" && !names_place;
        if would_create {
            notes.push(
                "`uv.lock` is there and `.venv` is not, and a run of tests creates none: `uv sync` does; the tests ran in the active environment"
                    .to_owned(),
            );
        } else if is_installed(commands, target, manager, &["--version"], cancel).await {
            return;
        } else {
            notes.push(format!(
                "{manager}, which the project uses, is not installed: the tests ran in the active environment"
            ));
        }
        target.unusable_managers.push(manager);
    }
}

/// Returns true if a program starts and ends well with arguments that ask for its version. A plug-in of cargo is a
/// program of its own, which only cargo finds.
async fn is_installed(
    commands: &Commands,
    target: &TestTarget,
    program: &str,
    arguments: &[&str],
    cancel: &CancellationToken,
) -> bool {
    let Ok(command) = commands.command_in(program, target.project.folder()) else { return false };
    let command =
        command.args(arguments).limits(Limits::default().timeout(VERSION_TIMEOUT)).cancel(cancel.clone());
    commands.runner().run(command).await.is_ok_and(|output| output.success())
}

fn progress_line(mut counts: TestCounts, results: &TestResults) -> String {
    counts += results.counts;
    let of = results.expected.map_or_else(String::new, |expected| format!(" of {expected}"));
    let running = results.running.back().map_or_else(String::new, |name| format!("; running {name}"));
    format!("{}{of} tests done, {} failed{running}", counts.total(), counts.failed)
}
