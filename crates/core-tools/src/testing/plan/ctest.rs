//! The commands of `CTest`: configure, build, run.

use super::patterns::escape_regex;
use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep, TestStepPurpose};
use crate::testing::error::TestError;
use crate::testing::parse::CtestParser;
use crate::testing::target::TestTarget;

/// The folders that projects are usually built in.
const BUILD_FOLDERS: [&str; 4] = ["build", "out", "cmake-build-debug", "_build"];

pub(super) fn steps(target: &TestTarget, reports: &ReportFolder) -> Result<Vec<TestStep>, TestError> {
    if target.filter.path().is_some() {
        return Err(target.cannot_select("the name of a test"));
    }
    let project = &target.project;
    let mut steps = Vec::new();
    let folder = if project.contains("CTestTestfile.cmake") {
        "."
    } else {
        let configured =
            BUILD_FOLDERS.into_iter().find(|folder| project.contains(&format!("{folder}/CMakeCache.txt")));
        let folder = configured.unwrap_or("build");
        // A configuration that failed leaves a cache, and no rules.
        let has_rules =
            ["Makefile", "build.ninja"].iter().any(|file| project.contains(&format!("{folder}/{file}")));
        if configured.is_none() || !has_rules {
            steps.push(preparation(&["-S", ".", "-B", folder]));
        }
        folder
    };
    steps.push(preparation(&["--build", folder]));
    let junit = reports.file("ctest.xml");
    let arguments = ["--test-dir", folder, "--output-junit", &junit, "--output-on-failure"];
    let pattern = target.filter.pattern(escape_regex);
    let step = TestStep::new("ctest", &arguments, TestResultSource::XmlAfterStdout(Box::new(CtestParser)));
    steps.push(step.option("-R", pattern.as_deref()));
    Ok(steps)
}

fn preparation(arguments: &[&str]) -> TestStep {
    TestStep::new("cmake", arguments, TestResultSource::ExitCode).purpose(TestStepPurpose::Preparation)
}
