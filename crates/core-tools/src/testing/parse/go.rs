//! The output of `go test -json`: a JSON object a line (`go doc test2json`).

use super::line_parser::LineParser;
use super::text::{FailureLocation, append_line};
use crate::ci::Diagnostic;
use crate::testing::results::{TestCase, TestResults, TestRunProblemKind, TestStatus, TestsNotRun};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoEvent {
    action: String,
    #[serde(default, alias = "ImportPath")]
    package: String,
    #[serde(default)]
    test: String,
    elapsed: Option<f64>,
    #[serde(default)]
    output: String,
}

/// A module of Go: the packages whose import paths begin with its own.
#[derive(Clone, Debug)]
pub(crate) struct GoModule {
    /// Its import path.
    pub(crate) path: String,
    /// Its folder, relative to that of the run; empty for that folder itself.
    pub(crate) folder: String,
}

/// The parser of `go test -json`.
#[derive(Default)]
pub(crate) struct GoParser {
    /// The modules of the run: Go names files without their folders.
    modules: Vec<GoModule>,
    /// The output of each running test, and of each package (under an empty name).
    outputs: HashMap<TestKey, String>,
    /// Tests of which a subtest failed.
    failed_parents: HashSet<TestKey>,
    /// Tests that have begun and not ended, by package. Before version 1.20, Go reports no end of a test that
    /// prints no line end before its result.
    open: HashMap<String, Vec<String>>,
    /// Packages of which a test has begun.
    has_run: HashSet<String>,
    /// Tests that have begun, without those within others. Before version 1.20, Go takes a line that a test prints for the end
    /// of a test.
    begun: HashSet<TestKey>,
    /// Packages with a failed test.
    failed: HashSet<String>,
}

/// A package, and a test of it.
type TestKey = (String, String);

/// The number of tests whose output is kept at once.
const MAX_OUTPUTS: usize = 10_000;

impl GoParser {
    /// Creates a parser of the tests of these modules.
    pub(crate) fn of_modules(modules: Vec<GoModule>) -> Self {
        Self { modules, ..Self::default() }
    }

    /// Returns the path of a file that Go names without its folder.
    fn path_of(&self, package: &str, file: String) -> String {
        if file.contains('/') {
            return file;
        }
        let folder_in = |module: &GoModule| {
            let rest = package.strip_prefix(module.path.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", module.folder))
        };
        // The longest path is that of the innermost module.
        let modules = self.modules.iter().filter_map(|module| Some((module.path.len(), folder_in(module)?)));
        match modules.max_by_key(|(length, _)| *length) {
            Some((_, folder)) if folder.trim_matches('/').is_empty() => file,
            Some((_, folder)) => format!("{}/{file}", folder.trim_start_matches('/')),
            None => file,
        }
    }

    /// Returns where a test failed: in a file of tests where its output names one, as the trace of a panic does
    /// below the frames of Go itself.
    fn location(&self, package: &str, output: &str) -> Option<FailureLocation> {
        let locations: Vec<_> = output
            .lines()
            .filter_map(|line| FailureLocation::parse(line.trim_start()))
            .filter(|location| location.file.ends_with(".go"))
            .collect();
        let own = locations.iter().position(|location| location.file.ends_with("_test.go"));
        let location = locations.into_iter().nth(own.unwrap_or_default())?;
        Some(FailureLocation { file: self.path_of(package, location.file), ..location })
    }

    /// Returns true if the test, or the one around it, has begun. A test that fails without that still fails its package.
    fn has_begun(&self, event: &GoEvent) -> bool {
        let outer = event.test.split('/').next().unwrap_or_default();
        self.begun.contains(&(event.package.clone(), outer.to_owned()))
    }

    fn test_ended(&mut self, event: &GoEvent, status: TestStatus, results: &mut TestResults) {
        let key = (event.package.clone(), event.test.clone());
        if let Some(open) = self.open.get_mut(&event.package) {
            open.retain(|test| *test != event.test);
        }
        let output = self.outputs.remove(&key).unwrap_or_default();
        let name = format!("{}.{}", event.package, event.test);
        let child_failed = self.failed_parents.remove(&key);
        if status.is_failure() {
            self.failed.insert(event.package.clone());
            if let Some((parent, _)) = event.test.rsplit_once('/') {
                self.failed_parents.insert((event.package.clone(), parent.to_owned()));
            }
        }
        let mut test = TestCase::new(name, status);
        test.duration_ms = event.elapsed.map(|seconds| seconds * 1000.0);
        if status != TestStatus::Passed {
            if let Some(location) = self.location(&event.package, &output) {
                (test.file, test.line) = (Some(location.file), Some(location.line));
            }
            // What it printed itself comes first; without any of it the reason is in its subtests.
            let says_nothing = output.lines().all(|line| line.trim_start().starts_with("--- FAIL: "));
            let only_child_failed = child_failed && says_nothing;
            test.error = Some(if only_child_failed { "a subtest of it failed".to_owned() } else { output });
        }
        results.add_test(test);
    }

    fn package_ended(&mut self, event: &GoEvent, results: &mut TestResults) {
        // In reverse, so that subtests end before their parents.
        for test in self.open.remove(&event.package).unwrap_or_default().into_iter().rev() {
            let output = self.outputs.get(&(event.package.clone(), test.clone()));
            let says =
                |word: &str| output.is_some_and(|output| output.contains(&format!("--- {word}: {test} (")));
            let begins = |phrase: &str| {
                output.is_some_and(|output| output.lines().any(|line| line.starts_with(phrase)))
            };
            let status = match event.action.as_str() {
                _ if says("FAIL") => TestStatus::Failed,
                _ if says("SKIP") => TestStatus::Skipped,
                "pass" => TestStatus::Passed,
                _ if says("PASS") => TestStatus::Passed,
                // The process ended beneath it: its output has the reason.
                _ if begins("panic: test timed out after ") => TestStatus::TimedOut,
                _ if begins("panic: ") || begins("fatal error: ") => TestStatus::Errored,
                _ => continue,
            };
            let (action, package) = (event.action.clone(), event.package.clone());
            let ended = GoEvent { action, package, test, elapsed: None, output: String::new() };
            self.test_ended(&ended, status, results);
        }
        let output = self.outputs.remove(&(event.package.clone(), String::new())).unwrap_or_default();
        let has_run = self.has_run.remove(&event.package);
        if event.action == "pass" && !has_run && !output.contains("no tests to run") {
            let why =
                "its test binary ended well without running a test: its `TestMain` does not call `m.Run`";
            TestsNotRun::add(&mut results.not_run, &event.package, why);
        }
        if event.action != "fail" || self.failed.contains(&event.package) {
            return;
        }
        results.add_problem(package_problem(&output), format!("{}: {}", event.package, output.trim()));
    }
}

/// Returns the kind of the problem of a package that failed without a failed test.
fn package_problem(output: &str) -> TestRunProblemKind {
    if output.contains("[build failed]") || output.contains("[setup failed]") {
        TestRunProblemKind::CompileError
    } else {
        TestRunProblemKind::Crashed
    }
}

impl LineParser for GoParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        let Ok(event) = serde_json::from_str::<GoEvent>(line) else {
            // Before Go 1.24 a package that does not compile is plain text.
            if let Some(package) = line.strip_prefix("FAIL\t") {
                results.add_problem(package_problem(package), package.to_owned());
            }
            return;
        };
        match event.action.as_str() {
            "output" if event.output.starts_with("=== ") => {}
            "output" | "build-output" => {
                let key = (event.package, event.test);
                if self.outputs.len() < MAX_OUTPUTS || self.outputs.contains_key(&key) {
                    append_line(self.outputs.entry(key).or_default(), event.output.trim_end_matches('\n'));
                }
            }
            "run" => {
                results.test_started(&format!("{}.{}", event.package, event.test));
                if !self.has_run.contains(&event.package) {
                    self.has_run.insert(event.package.clone());
                }
                if !event.test.contains('/') {
                    self.begun.insert((event.package.clone(), event.test.clone()));
                }
                self.open.entry(event.package.clone()).or_default().push(event.test.clone());
            }
            "pass" | "fail" | "skip" if event.test.is_empty() => self.package_ended(&event, results),
            "pass" | "fail" | "skip" if !self.has_begun(&event) => {}
            "pass" => self.test_ended(&event, TestStatus::Passed, results),
            "fail" => self.test_ended(&event, TestStatus::Failed, results),
            "skip" => self.test_ended(&event, TestStatus::Skipped, results),
            "build-fail" => {
                let output = self.outputs.remove(&(event.package.clone(), String::new())).unwrap_or_default();
                for diagnostic in Diagnostic::from_text(&output) {
                    results.add_diagnostic(diagnostic);
                }
                results.add_problem(
                    TestRunProblemKind::CompileError,
                    format!("{} does not compile", event.package),
                );
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: &mut TestResults) {}
}
