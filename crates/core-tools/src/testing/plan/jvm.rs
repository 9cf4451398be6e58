//! The commands of Maven and Gradle.

use super::patterns::file_stem;
use super::step::{TestResultSource, TestStep};
use crate::testing::target::{TestFilter, TestTarget};

pub(super) fn maven(target: &TestTarget) -> TestStep {
    let step = TestStep::new(
        "mvn",
        &["--batch-mode", "--no-transfer-progress", "test"],
        TestResultSource::XmlInProject(&["target/surefire-reports"]),
    );
    let pattern = target.filter.pattern(str::to_owned);
    let name = pattern.as_deref();
    let filter = match (class(&target.filter), name) {
        (Some(class), Some(name)) => Some(format!("{class}#{name}")),
        (class, name) => class.or_else(|| name.map(str::to_owned)),
    };
    match filter {
        // Modules without the test must not fail: the test is in another.
        Some(filter) => step.args(&[
            &format!("-Dtest={filter}"),
            "-Dsurefire.failIfNoSpecifiedTests=false",
            "-DfailIfNoTests=false",
        ]),
        None => step,
    }
}

pub(super) fn gradle(target: &TestTarget) -> TestStep {
    let program = if target.project.contains("gradlew") { "./gradlew" } else { "gradle" };
    let step = TestStep::new(
        program,
        // A daemon would outlive the run, and with it a test that hangs. Tests that are up to date would not run
        // without `cleanTest`; no option for that is known to every version.
        &["cleanTest", "test", "--continue", "--console=plain", "--no-daemon"],
        TestResultSource::XmlInProject(&["build/test-results/test"]),
    );
    let class = class(&target.filter).map(|class| format!("*{class}"));
    let pattern =
        target.filter.pattern(|name| if class.is_some() { name.to_owned() } else { format!("*{name}*") });
    let filter = match (class, pattern) {
        (Some(class), Some(pattern)) => Some(format!("{class}.{pattern}")),
        (class, pattern) => class.or(pattern),
    };
    step.option("--tests", filter.as_deref())
}

/// Returns the class of the requested file. Neither runner selects a folder.
fn class(filter: &TestFilter) -> Option<String> {
    filter.path().filter(|_| !filter.is_folder).map(file_stem)
}
