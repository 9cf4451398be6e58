//! The commands of each runner.

use super::arguments::with_arguments;
use super::patterns::{BETWEEN_TITLES, escape_regex, phpunit_pattern, title_pattern};
use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep, TestStepPurpose};
use super::{bats, cargo, ctest, dotnet, go, javascript, jvm, mix, project, pytest, rspec};
use crate::ci::node::package_manager;
use crate::testing::detect::is_django;
use crate::testing::error::TestError;
use crate::testing::project_command::{ProjectCommand, django};
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
        TestRunner::Npm => {
            let arguments = ["test"];
            let command = ProjectCommand::new(package_manager(&target.project), &arguments, Vec::new());
            vec![project::test(&whole(target, command)?, reports)]
        }
        TestRunner::Go => vec![go::test(target)],
        TestRunner::Dotnet => vec![dotnet::test(target, reports)],
        TestRunner::Maven => vec![jvm::maven(target)],
        TestRunner::Gradle => vec![jvm::gradle(target)],
        TestRunner::Ctest => ctest::steps(target, reports)?,
        TestRunner::Rspec => vec![rspec::test(target, reports)],
        TestRunner::Phpunit => vec![phpunit(target, reports)],
        TestRunner::Mix => vec![mix::test(target, reports)?],
        TestRunner::Swift => vec![swift(target)?],
        TestRunner::Unittest if is_django(&target.project) => {
            let pattern = target.filter.pattern(str::to_owned);
            vec![project::test(&django(&target.project, target.filter.path(), pattern.as_deref()), reports)]
        }
        TestRunner::Unittest => vec![pytest::unittest(target, reports)],
        // They have a command of their own for all of the project's tests, and no other.
        TestRunner::Zig
        | TestRunner::Just
        | TestRunner::Make
        | TestRunner::Tox
        | TestRunner::Nox
        | TestRunner::Rake
        | TestRunner::Script
            if !target.arguments.is_empty() =>
        {
            return Err(TestError::NoArguments(target.runner));
        }
        TestRunner::Zig
        | TestRunner::Just
        | TestRunner::Make
        | TestRunner::Tox
        | TestRunner::Nox
        | TestRunner::Rake
        | TestRunner::Script => return Err(target.cannot_select("the project's folder")),
    };
    let steps = with_arguments(steps, target)?;
    Ok(steps.into_iter().map(|step| step.finish(reports)).collect())
}

/// Returns the command of a runner that cannot select tests, if all of them are to run.
fn whole(target: &TestTarget, command: ProjectCommand) -> Result<ProjectCommand, TestError> {
    if target.filter == TestFilter::default() {
        Ok(command)
    } else {
        Err(target.cannot_select("the project's folder"))
    }
}

fn deno(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let junit = format!("--junit-path={}", reports.file("deno.xml"));
    TestStep::new("deno", &["test"], TestResultSource::Xml)
        .flags(&target.flags)
        .args(&[&junit])
        .option("--filter", target.filter.pattern(str::to_owned).as_deref())
        .maybe_arg(target.filter.path())
}

fn bun(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let junit = format!("--reporter-outfile={}", reports.file("bun.xml"));
    let pattern = target.filter.pattern(|name| title_pattern(name, BETWEEN_TITLES));
    TestStep::new("bun", &["test", "--reporter=junit", &junit], TestResultSource::Xml)
        .option("--test-name-pattern", pattern.as_deref())
        .maybe_arg(target.filter.path())
}

fn phpunit(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    const OF_PROJECT: &str = "vendor/bin/phpunit";
    let program = if target.project.contains(OF_PROJECT) { OF_PROJECT } else { "phpunit" };
    let pattern = target.filter.pattern(phpunit_pattern);
    TestStep::new(program, &["--log-junit", &reports.file("phpunit.xml")], TestResultSource::Xml)
        .option("--filter", pattern.as_deref())
        .maybe_arg(target.filter.path())
}

fn swift(target: &TestTarget) -> Result<TestStep, TestError> {
    if target.filter.path().is_some() {
        return Err(target.cannot_select("the name of a test"));
    }
    let pattern = target.filter.pattern(escape_regex);
    let source = TestResultSource::ProcessEvents { xml_of: None };
    let step = TestStep::new("swift", &["test"], source).option("--filter", pattern.as_deref());
    Ok(step.purpose(TestStepPurpose::ProjectCommand))
}
