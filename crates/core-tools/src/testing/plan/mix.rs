//! The command of `mix test`.

use super::report_folder::ReportFolder;
use super::step::{ResultSource, TestStep};
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let formatter = reports.file("mix.exs");
    // `mix` itself loads no file; `elixir` loads the formatter and then runs mix.
    let step = TestStep::new(
        "elixir",
        &["-r", &formatter, "-S", "mix", "test", "--formatter", "CoreToolsFormatter"],
        ResultSource::Events,
    );
    let skip = step.arguments.len();
    let only = target.filter.name().map(|name| format!("test:{name}"));
    step.option("--only", only.as_deref())
        .maybe_arg(target.filter.path())
        .events_to(reports)
        .display_as("mix test", skip)
}
