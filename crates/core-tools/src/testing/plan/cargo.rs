//! The commands of cargo and of nextest.

use super::cargo_targets::CargoSelection;
use super::step::{TestResultSource, TestStep, TestStepPurpose};
use crate::testing::error::TestError;
use crate::testing::parse::{LibtestParser, NextestParser};
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget) -> Result<TestStep, TestError> {
    const ARGUMENTS: [&str; 3] = ["test", "--no-fail-fast", "--message-format=json"];
    let CargoSelection { options, filter } = CargoSelection::of(target)?;
    let step = libtest_step(&ARGUMENTS).args(&options.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(with_filter(step, filter.as_deref()).display_as("cargo test --no-fail-fast", ARGUMENTS.len()))
}

/// Returns the steps of nextest. It runs no tests in documentation: cargo does so after it.
pub(super) fn nextest(target: &TestTarget) -> Result<Vec<TestStep>, TestError> {
    const ARGUMENTS: [&str; 7] = [
        "nextest",
        "run",
        "--no-fail-fast",
        "--message-format",
        "libtest-json-plus",
        "--message-format-version",
        "0.1",
    ];
    let CargoSelection { options, filter } = CargoSelection::of(target)?;
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let selects =
        |word: &String| ["-E", "--filter-expr", "--filterset"].iter().any(|option| word.starts_with(option));
    let is_selection = filter.is_some() || target.arguments.iter().any(selects);
    let parser = if is_selection { NextestParser::of_selection() } else { NextestParser::default() };
    let step = TestStep::new("cargo", &ARGUMENTS, TestResultSource::Stdout(Box::new(parser))).args(&options);
    // A name from a report selects this one test. As a plain word it would match nothing, as the words have a blank
    // between.
    let exact = filter.as_deref().and_then(exact_filterset);
    let step = match &exact {
        Some(filterset) => step.args(&["-E", filterset]),
        None => step.maybe_arg(filter.as_deref()),
    };
    let step = step
        // Nextest refuses this format without the variable, because the format may still change.
        .env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1")
        .display_as("cargo nextest run --no-fail-fast", ARGUMENTS.len());
    let mut steps = vec![step];
    if target.filter.path().is_none() && exact.is_none() {
        let doctests = libtest_step(&["test", "--doc", "--no-fail-fast"]).purpose(TestStepPurpose::Doctests);
        steps.push(with_filter(doctests, filter.as_deref()));
    }
    Ok(steps)
}

/// Returns a step of cargo whose output libtest writes. Cargo names each binary on standard error, so the
/// streams are read as one.
fn libtest_step(arguments: &[&str]) -> TestStep {
    TestStep::new("cargo", arguments, TestResultSource::MergedOutput(Box::new(LibtestParser::default())))
}

fn with_filter(step: TestStep, filter: Option<&str>) -> TestStep {
    match filter {
        Some(filter) => step.args(&["--", filter]),
        None => step,
    }
}

/// Returns the filterset of nextest for `package::binary test`, as its reports have a name, and `None` for any
/// other text.
pub(super) fn exact_filterset(name: &str) -> Option<String> {
    let (binary, test) = name.split_once(' ')?;
    let (package, binary) = binary.split_once("::")?;
    let is_plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':'))
    };
    [package, binary, test]
        .into_iter()
        .all(is_plain)
        .then(|| format!("package(={package}) & binary(={binary}) & test(={test})"))
}
