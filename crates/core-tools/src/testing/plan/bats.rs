//! The command of bats.

use super::patterns::escape_regex;
use super::step::{TestResultSource, TestStep};
use crate::ci::project::Project;
use crate::testing::parse::TapParser;
use crate::testing::target::TestTarget;

/// Returns the folder whose files are all tests of a project: the first that has any.
pub(crate) fn bats_folder(project: &Project) -> &'static str {
    let has_tests = |folder: &str| project.has_entry(folder, |name| name.ends_with(".bats"));
    [".", "tests"].into_iter().find(|folder| has_tests(folder)).unwrap_or("test")
}

pub(super) fn test(target: &TestTarget) -> TestStep {
    let default_folder = bats_folder(&target.project);
    let pattern = target.filter.pattern(escape_regex);
    let source = TestResultSource::Stdout(Box::new(TapParser::of_bats()));
    let step = TestStep::new("bats", &["--formatter", "tap", "--timing"], source)
        .option("--filter", pattern.as_deref());
    let step = if target.filter.is_folder { step.args(&["--recursive"]) } else { step };
    step.args(&[target.filter.path().unwrap_or(default_folder)])
}
