//! The command of `RSpec`.

use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep};
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    // The project's own way comes first, because it loads the gems that the specs need.
    let (program, arguments, display): (_, &[&str], _) = if target.project.contains("bin/rspec") {
        ("bin/rspec", &[], "bin/rspec")
    } else if target.project.contains("Gemfile.lock") {
        ("bundle", &["exec", "rspec"], "bundle exec rspec")
    } else {
        ("rspec", &[], "rspec")
    };
    let (formatter, events) = (reports.file("rspec.rb"), reports.events());
    // The first formatter is for people, and writes to standard output.
    let step = TestStep::new(program, arguments, TestResultSource::Events)
        .args(&["--require", &formatter])
        .args(&["--format", "progress", "--format", "CoreToolsFormatter", "--out", &events]);
    let skip = step.arguments.len();
    step.option("--example", target.filter.name())
        .option("--example-matches", target.filter.pattern.as_deref())
        .maybe_arg(target.filter.path())
        .display_as(display, skip)
}
