//! The commands of `CTest`: configure, build, run.

use super::patterns::escape_regex;
use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep, TestStepPurpose};
use crate::ci::project::Project;
use crate::testing::error::TestError;
use crate::testing::parse::CtestParser;
use crate::testing::target::TestTarget;

/// The folders that projects are usually built in.
const BUILD_FOLDERS: [&str; 4] = ["build", "out", "cmake-build-debug", "_build"];

/// The number of bytes of the output of a passed test that the report has: its beginning and its end.
const KEPT_OUTPUT_BYTES: &str = "8192";

/// Returns the folder in which `CTest` finds the tests of a project: its own, or the one that it is built in.
pub(crate) fn ctest_folder(project: &Project) -> &'static str {
    if project.contains("CTestTestfile.cmake") {
        return ".";
    }
    let is_configured = |folder: &&str| project.contains(&format!("{folder}/CMakeCache.txt"));
    BUILD_FOLDERS.into_iter().find(is_configured).unwrap_or("build")
}

pub(super) fn steps(target: &TestTarget, reports: &ReportFolder) -> Result<Vec<TestStep>, TestError> {
    if target.filter.path().is_some() {
        return Err(target.cannot_select("the name of a test"));
    }
    let project = &target.project;
    let mut steps = Vec::new();
    let folder = ctest_folder(project);
    if folder != "." {
        // A configuration that failed leaves a cache, and no rules.
        let has = |file: &str| project.contains(&format!("{folder}/{file}"));
        if !has("CMakeCache.txt") || !(has("Makefile") || has("build.ninja")) {
            steps.push(preparation(&["-S", ".", "-B", folder]));
        }
    }
    steps.push(preparation(&["--build", folder]));
    let junit = reports.file("ctest.xml");
    let arguments = ["--test-dir", folder, "--output-junit", &junit, "--output-on-failure"];
    // A test is a program that ended with exit code 0: its output may say otherwise, at its end.
    let kept_output = ["--test-output-size-passed", KEPT_OUTPUT_BYTES, "--test-output-truncation", "middle"];
    let pattern = target.filter.pattern(escape_regex);
    let step = TestStep::new("ctest", &arguments, TestResultSource::XmlAfterStdout(Box::new(CtestParser)))
        .args(&kept_output);
    steps.push(step.option("-R", pattern.as_deref()));
    Ok(steps)
}

fn preparation(arguments: &[&str]) -> TestStep {
    TestStep::new("cmake", arguments, TestResultSource::ExitCode).purpose(TestStepPurpose::Preparation)
}
