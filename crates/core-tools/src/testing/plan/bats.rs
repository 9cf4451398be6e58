//! The command of bats.

use super::patterns::escape_regex;
use super::step::{TestResultSource, TestStep};
use crate::testing::parse::TapParser;
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget) -> TestStep {
    let has_tests = |folder: &str| target.project.has_entry(folder, |name| name.ends_with(".bats"));
    let folders = [".", "tests"];
    let default_folder = folders.into_iter().find(|folder| has_tests(folder)).unwrap_or("test");
    let pattern = target.filter.pattern(escape_regex);
    let source = TestResultSource::Stdout(Box::new(TapParser::of_bats()));
    let step = TestStep::new("bats", &["--formatter", "tap", "--timing"], source)
        .option("--filter", pattern.as_deref());
    let step = if target.filter.is_folder { step.args(&["--recursive"]) } else { step };
    step.args(&[target.filter.path().unwrap_or(default_folder)])
}
