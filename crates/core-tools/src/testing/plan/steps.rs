//! The commands of each runner.

use super::arguments::with_arguments;
use super::patterns::{BETWEEN_TITLES, escape_regex, title_pattern};
use super::report_folder::ReportFolder;
use super::step::{ResultSource, TestStep};
use super::{bats, cargo, ctest, dotnet, go, javascript, jvm, mix, project, pytest, rspec};
use crate::ci::node::package_manager;
use crate::testing::error::TestError;
use crate::testing::runner::TestRunner;
use crate::testing::target::{TestFilter, TestTarget};

/// Returns the commands that run the tests of `target`, in their order.
///
/// # Errors
///
/// The runner cannot select what was requested, or would take it for an option.
pub(crate) fn steps(target: &TestTarget, reports: &ReportFolder) -> Result<Vec<TestStep>, TestError> {
    let TestFilter { path, name, pattern, .. } = &target.filter;
    // Also checked here, because a path in a project can begin with `-` where the request did not.
    for text in name.iter().chain(pattern).chain([path]) {
        if text.starts_with('-') {
            return Err(TestError::Option(text.clone()));
        }
    }
    if let Some(command) = &target.project_command {
        return Ok(vec![project::test(command, reports).finish(reports)]);
    }
    let steps = match target.runner {
        TestRunner::Cargo => vec![cargo::test(target)?],
        TestRunner::Nextest => cargo::nextest(target)?,
        TestRunner::Bats => vec![bats::test(target)],
        TestRunner::Pytest => vec![pytest::test(target, reports)],
        TestRunner::Vitest => vec![javascript::vitest(target, reports)],
        TestRunner::Jest => vec![javascript::jest(target, reports)],
        TestRunner::Mocha => vec![javascript::mocha(target, reports)],
        TestRunner::Ava => vec![javascript::ava(target)],
        TestRunner::Playwright => vec![javascript::playwright(target, reports)],
        TestRunner::Node => vec![javascript::node(target, reports)],
        TestRunner::Deno => vec![deno(target, reports)],
        TestRunner::Bun => vec![bun(target, reports)],
        // A script may take further words for anything.
        TestRunner::Npm => vec![all_or_nothing(target, package_manager(&target.project), &["test"])?],
        TestRunner::Go => vec![go::test(target)],
        TestRunner::Dotnet => vec![dotnet::test(target, reports)],
        TestRunner::Maven => vec![jvm::maven(target)],
        TestRunner::Gradle => vec![jvm::gradle(target)],
        TestRunner::Ctest => ctest::steps(target, reports)?,
        TestRunner::Rspec => vec![rspec::test(target, reports)],
        TestRunner::Phpunit => vec![phpunit(target, reports)],
        TestRunner::Mix => vec![mix::test(target, reports)?],
        TestRunner::Zig => vec![all_or_nothing(target, "zig", &["build", "test"])?],
        TestRunner::Swift => vec![swift(target)?],
        TestRunner::Just => vec![all_or_nothing(target, "just", &["test"])?],
        TestRunner::Make => vec![all_or_nothing(target, "make", &["test"])?],
    };
    let steps = with_arguments(steps, target)?;
    Ok(steps.into_iter().map(|step| step.finish(reports)).collect())
}

/// Returns the step of a runner that cannot select tests and reports only its exit code.
fn all_or_nothing(target: &TestTarget, program: &str, arguments: &[&str]) -> Result<TestStep, TestError> {
    if target.filter == TestFilter::default() {
        Ok(TestStep::new(program, arguments, ResultSource::ExitCode))
    } else {
        Err(target.cannot_select("the project's folder"))
    }
}

fn deno(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let junit = format!("--junit-path={}", reports.file("deno.xml"));
    TestStep::new("deno", &["test", &junit], ResultSource::Xml)
        .option("--filter", target.filter.pattern(str::to_owned).as_deref())
        .maybe_arg(target.filter.path())
}

fn bun(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let junit = format!("--reporter-outfile={}", reports.file("bun.xml"));
    let pattern = target.filter.pattern(|name| title_pattern(name, BETWEEN_TITLES));
    TestStep::new("bun", &["test", "--reporter=junit", &junit], ResultSource::Xml)
        .option("--test-name-pattern", pattern.as_deref())
        .maybe_arg(target.filter.path())
}

fn phpunit(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    const OF_PROJECT: &str = "vendor/bin/phpunit";
    let program = if target.project.contains(OF_PROJECT) { OF_PROJECT } else { "phpunit" };
    let pattern = target.filter.pattern(escape_regex);
    TestStep::new(program, &["--log-junit", &reports.file("phpunit.xml")], ResultSource::Xml)
        .option("--filter", pattern.as_deref())
        .maybe_arg(target.filter.path())
}

fn swift(target: &TestTarget) -> Result<TestStep, TestError> {
    if target.filter.path().is_some() {
        return Err(target.cannot_select("the name of a test"));
    }
    let pattern = target.filter.pattern(escape_regex);
    Ok(TestStep::new("swift", &["test"], ResultSource::ExitCode).option("--filter", pattern.as_deref()))
}
