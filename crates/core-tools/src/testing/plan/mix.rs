//! The command of `mix test`.

use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep};
use crate::testing::error::TestError;
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> Result<TestStep, TestError> {
    if target.filter.pattern.is_some() {
        return Err(target.cannot_select("a file, or the name of a test, as `test_path`"));
    }
    let formatter = reports.file("mix.exs");
    // `mix` itself loads no file; `elixir` loads the formatter and then runs mix.
    let step = TestStep::new(
        "elixir",
        &["-r", &formatter, "-S", "mix", "test", "--formatter", "CoreToolsFormatter"],
        TestResultSource::Events,
    );
    let skip = step.arguments.len();
    let only = target.filter.name().map(only);
    let step = step.option("--only", only.as_deref()).maybe_arg(target.filter.path());
    Ok(step.events_to(reports).display_as("mix test", skip))
}

/// Returns the value of `--only` for a test, whose name reports have as `SampleTest test adds` or
/// `SampleTest test group adds`: the module is no part of the tag.
pub(super) fn only(name: &str) -> String {
    const KINDS: [&str; 4] = ["test", "doctest", "property", "feature"];
    let is_test = |own: &str| own.split_once(' ').is_some_and(|(kind, _)| KINDS.contains(&kind));
    let own = match name.split_once(' ') {
        Some((module, own)) if module.starts_with(char::is_uppercase) && is_test(own) => own,
        _ => name,
    };
    format!("test:{own}")
}
