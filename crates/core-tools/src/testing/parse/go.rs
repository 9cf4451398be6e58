//! `go test -json`: a JSON object a line (`go doc test2json`).

use super::super::found::Found;
use super::super::report::{ProblemKind, Status, TestCase};
use super::{Lines, append, place};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default, alias = "ImportPath")]
    package: String,
    #[serde(default)]
    test: String,
    elapsed: Option<f64>,
    #[serde(default)]
    output: String,
}

/// The parser.
#[derive(Default)]
pub(in super::super) struct Go {
    /// What each running test, and each package (under an empty name), printed.
    outputs: HashMap<(String, String), String>,
    /// Tests that have subtests, and those of which one failed.
    parents: HashSet<(String, String)>,
    failed_within: HashSet<(String, String)>,
    /// Tests that have begun and not ended, by package. Of one that prints no line end before its result Go says
    /// nothing more before version 1.20.
    open: HashMap<String, Vec<String>>,
    /// Packages with a failed test.
    failed: HashSet<String>,
}

impl Go {
    fn end_of_test(&mut self, event: &Event, status: Status, found: &mut Found) {
        let key = (event.package.clone(), event.test.clone());
        if let Some(open) = self.open.get_mut(&event.package) {
            open.retain(|test| *test != event.test);
        }
        let output = self.outputs.remove(&key).unwrap_or_default();
        let name = format!("{}.{}", event.package, event.test);
        let is_parent = self.parents.remove(&key);
        let child_failed = self.failed_within.remove(&key);
        if status.is_failure() {
            self.failed.insert(event.package.clone());
            if let Some((parent, _)) = event.test.rsplit_once('/') {
                self.failed_within.insert((event.package.clone(), parent.to_owned()));
            }
        }
        // A test with subtests is told by them, unless it failed by itself.
        if is_parent && (!status.is_failure() || child_failed) {
            found.finish(&name);
            return;
        }
        let mut test = TestCase::new(name, status);
        test.duration_ms = event.elapsed.map(|seconds| seconds * 1000.0);
        if status != Status::Passed {
            let place = output
                .lines()
                .find_map(|line| place(line.trim_start()).filter(|(file, _)| file.ends_with(".go")));
            if let Some((file, line)) = place {
                (test.file, test.line) = (Some(file), Some(line));
            }
            test.error = Some(output);
        }
        found.push(test);
    }

    fn end_of_package(&mut self, event: &Event, found: &mut Found) {
        // Subtests before what they are within.
        for test in self.open.remove(&event.package).unwrap_or_default().into_iter().rev() {
            let output = self.outputs.get(&(event.package.clone(), test.clone()));
            let says =
                |word: &str| output.is_some_and(|output| output.contains(&format!("--- {word}: {test} (")));
            let status = match event.action.as_str() {
                _ if says("FAIL") => Status::Failed,
                _ if says("SKIP") => Status::Skipped,
                "pass" => Status::Passed,
                _ if says("PASS") => Status::Passed,
                _ => continue,
            };
            let (action, package) = (event.action.clone(), event.package.clone());
            let ended = Event { action, package, test, elapsed: None, output: String::new() };
            self.end_of_test(&ended, status, found);
        }
        let output = self.outputs.remove(&(event.package.clone(), String::new())).unwrap_or_default();
        if event.action != "fail" || self.failed.contains(&event.package) {
            return;
        }
        let build = output.contains("[build failed]") || output.contains("[setup failed]");
        let kind = if build { ProblemKind::CompileError } else { ProblemKind::Crashed };
        found.problem(kind, format!("{}: {}", event.package, output.trim()));
    }
}

impl Lines for Go {
    fn line(&mut self, line: &str, found: &mut Found) {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            // Before Go 1.24 a package that does not compile is plain text.
            if let Some(package) = line.strip_prefix("FAIL\t") {
                let kind = if package.contains("[build failed]") || package.contains("[setup failed]") {
                    ProblemKind::CompileError
                } else {
                    ProblemKind::Crashed
                };
                found.problem(kind, package.to_owned());
            }
            return;
        };
        match event.action.as_str() {
            "output" if event.output.starts_with("=== ") => {}
            "output" | "build-output" => {
                let key = (event.package, event.test);
                if self.outputs.len() < 10_000 || self.outputs.contains_key(&key) {
                    append(self.outputs.entry(key).or_default(), event.output.trim_end_matches('\n'));
                }
            }
            "run" => {
                found.start(&format!("{}.{}", event.package, event.test));
                self.open.entry(event.package.clone()).or_default().push(event.test.clone());
                let mut name = event.test.as_str();
                while let Some((parent, _)) = name.rsplit_once('/') {
                    self.parents.insert((event.package.clone(), parent.to_owned()));
                    name = parent;
                }
            }
            "pass" | "fail" | "skip" if event.test.is_empty() => self.end_of_package(&event, found),
            "pass" => self.end_of_test(&event, Status::Passed, found),
            "fail" => self.end_of_test(&event, Status::Failed, found),
            "skip" => self.end_of_test(&event, Status::Skipped, found),
            "build-fail" => {
                found.problem(ProblemKind::CompileError, format!("{} does not compile", event.package));
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &mut Found) {}
}
