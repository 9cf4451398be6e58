//! The arguments that a request adds to the commands of a runner: its own, and those that select failed tests.

use super::rerun::{Rerun, rerun};
use super::step::{TestStep, TestStepPurpose};
use crate::shell_quote::shell_quote;
use crate::testing::error::TestError;
use crate::testing::runner::TestRunner;
use crate::testing::target::TestTarget;

/// Adds the arguments of the request to the steps that run tests.
pub(super) fn with_arguments(
    mut steps: Vec<TestStep>,
    target: &TestTarget,
) -> Result<Vec<TestStep>, TestError> {
    let runner = target.runner;
    if !target.filter.failed.is_empty() {
        let Rerun { arguments, doctests } = rerun(runner, &target.filter.failed)?;
        steps.retain(|step| match step.purpose {
            TestStepPurpose::Tests => !arguments.is_empty(),
            TestStepPurpose::Doctests => !doctests.is_empty(),
            TestStepPurpose::ProjectCommand | TestStepPurpose::Preparation => true,
        });
        for step in &mut steps {
            match step.purpose {
                TestStepPurpose::Tests => add(step, runner, &arguments),
                TestStepPurpose::Doctests => add(step, TestRunner::Cargo, &doctests),
                TestStepPurpose::ProjectCommand | TestStepPurpose::Preparation => {}
            }
        }
    }
    if !target.arguments.is_empty() {
        if runner.reports_only_exit_code() {
            return Err(TestError::NoArguments(runner));
        }
        // The arguments of nextest are not those of the tests in documentation.
        steps.retain(|step| step.purpose != TestStepPurpose::Doctests);
        for step in steps.iter_mut().filter(|step| step.purpose == TestStepPurpose::Tests) {
            add(step, runner, &target.arguments);
        }
    }
    Ok(steps)
}

/// Adds arguments where the runner takes options.
fn add(step: &mut TestStep, runner: TestRunner, arguments: &[String]) {
    let end = step.arguments.len();
    let at = match runner {
        // What follows the first file is the program's, or another file.
        TestRunner::Node | TestRunner::Phpunit | TestRunner::Bats => 0,
        // The packages come last.
        TestRunner::Go => end.saturating_sub(1),
        TestRunner::Cargo | TestRunner::Nextest => {
            step.arguments.iter().position(|word| word == "--").unwrap_or(end)
        }
        _ => end,
    };
    // Only one `--` separates the options of cargo from those of libtest.
    let has_separator = at < end && matches!(runner, TestRunner::Cargo | TestRunner::Nextest);
    let (options, rest) = match arguments.iter().position(|word| word == "--") {
        Some(separator) if has_separator => (&arguments[..separator], &arguments[separator + 1..]),
        _ => (arguments, &[][..]),
    };
    step.arguments.splice(at..at, options.iter().cloned());
    step.arguments.extend(rest.iter().cloned());
    if !step.display.is_empty() {
        let shown: String = arguments.iter().map(|word| format!(" {}", shell_quote(word))).collect();
        step.display.push_str(&shown);
    }
}
