//! The tests of a project that its runner passes over without a word, found by a look at the project's files after a run
//! of all tests.

mod bats;
mod cargo;
mod cargo_sources;
mod ctest;
mod go;
mod only;
mod own_harness;
mod test_files;
mod unittest;
mod unreported_files;

use crate::ci::Commands;
use crate::ci::project::Project;
use crate::testing::plan::ctest_folder;
use crate::testing::report::TestReport;
use crate::testing::results::TestsNotRun;
use crate::testing::runner::TestRunner;
use process_runner::Limits;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that cargo and go have to list what they run.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes of such a list that are read.
const MAX_LIST_BYTES: usize = 8 << 20;

/// The tools with which a runner is asked for what it runs.
pub(crate) struct TestLister<'a> {
    pub(crate) commands: &'a Commands,
    pub(crate) project: &'a Project,
    /// The variables of the run.
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) cancel: &'a CancellationToken,
}

impl TestLister<'_> {
    /// Adds to the report of a run of all tests by `runner` those that it left out.
    pub(crate) async fn add_to(&self, report: &mut TestReport, runner: TestRunner) {
        let mut found = Vec::new();
        match runner {
            TestRunner::Cargo | TestRunner::Nextest => {
                report.notes.extend(own_harness::note(self.project));
                let unverified = own_harness::unverified(self.project, &report.claims.cargo_targets);
                report.add_unverified(unverified);
                // Without dependencies and offline, cargo reads only the manifests of the workspace, which takes
                // milliseconds.
                const ARGUMENTS: [&str; 5] = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
                if let Some(metadata) = self.output("cargo", &ARGUMENTS).await {
                    cargo::not_run(self.project, &metadata, &mut found);
                }
            }
            TestRunner::Go => {
                if let Some(files) = self.output("go", &["list", "-e", "-f", go::FORMAT, "./..."]).await {
                    go::not_run(self.project, &files, &mut found);
                }
                let flags = self.output("go", &["env", "GOFLAGS"]).await.unwrap_or_default();
                report.notes.extend(go::note_on_flags(&flags));
            }
            TestRunner::Bats => bats::not_run(self.project, &mut found),
            TestRunner::Ctest if report.success == Some(true) => {
                ctest::not_run(self.project, &report.tests, &mut found);
                self.add_contradicted(report).await;
            }
            TestRunner::Unittest => unittest::not_run(self.project, &mut found),
            _ => {}
        }
        TestsNotRun::merge(&mut report.not_run, found);
    }

    /// Adds to the report of a run of all tests, also one by the project's own command, the files that look like tests and
    /// of which none was reported.
    pub(crate) fn add_unreported_files(&self, report: &mut TestReport) {
        let mut found = Vec::new();
        unreported_files::not_run(self.project, report, &mut found);
        let is_of_gradle = report.runner == TestRunner::Gradle.name() && !found.is_empty();
        if is_of_gradle && !unreported_files::selects_tests(self.project) {
            // Gradle runs all of them, and it succeeds where a test ends its process.
            report.add_unverified(Some(
                "not verified: the build selects no tests, and reported none of some files: a test that calls `System.exit(0)` ends the others, and Gradle calls that a success"
                    .to_owned(),
            ));
        }
        TestsNotRun::merge(&mut report.not_run, found);
    }

    /// Takes back the success of a run of `CTest` in which a program ended with exit code 0 and printed that tests failed. A
    /// test whose properties say how it is judged is left alone.
    async fn add_contradicted(&self, report: &mut TestReport) {
        if report.claims.contradicted.is_empty() {
            return;
        }
        let folder = ctest_folder(self.project);
        let arguments = ["--test-dir", folder, "--show-only=json-v1"];
        let listed = self.output("ctest", &arguments).await.unwrap_or_default();
        let unverified = ctest::contradicted(&report.claims.contradicted, &listed);
        report.add_unverified(unverified);
    }

    /// Adds to a report what of a run by bun was left out: bun itself does not tell.
    pub(crate) fn add_only(&self, report: &mut TestReport) {
        if report.runner == TestRunner::Bun.name() {
            report.notes.extend(only::only_note(self.project, &report.tests, report.runner));
        }
    }

    /// Returns what a program prints, if it succeeds and all of it was read.
    async fn output(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let command = self.commands.command_in(program, self.project.folder()).ok()?;
        let command = command
            .args(arguments)
            .envs(self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .limits(Limits::default().timeout(LIST_TIMEOUT).capture(MAX_LIST_BYTES))
            .cancel(self.cancel.clone());
        let output = self.commands.runner().run(command).await.ok()?;
        // A cut list would report tests as passed over that did run.
        (output.success() && !output.stdout.truncated()).then(|| output.stdout.text().into_owned())
    }
}
