//! Runs that do not end well: a test hangs, or the runner dies beneath it. What came before is kept, what was
//! running is named where the runner tells it, and no process is left.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind, TestStatus};
use std::fs;
use std::time::Duration;

/// A project with tests that pass and then one that does not end well.
struct BadEndingProject {
    runner: &'static str,
    /// The program that it needs beside the runner.
    program: &'static str,
    /// Its files; `@END@` stands for what the last test does. Where the runner writes TAP, two tests come before that
    /// one: the result of a test is complete when that of the next one comes.
    files: &'static [(&'static str, &'static str)],
    /// The code with which a test hangs: a `sleep` for `@SECONDS@`.
    hang: &'static str,
    /// The code with which a test kills the runner: `@KILL@` for a shell.
    kill: &'static str,
    /// True if the runner reports that a test starts, so that one that hangs is named.
    reports_starts: bool,
    /// True if the runner reports that a test has ended while others still run.
    reports_each_end: bool,
}

/// The first time limit of a run with a test that hangs, in seconds, and the last one that is tried.
const LIMITS: std::ops::RangeInclusive<u64> = 4..=64;

const CARGO: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const RUST: &str = "
#[test]
fn a_passes() {}
#[test]
fn b_does_not_end() {
    std::fs::write(\"began\", \"\").unwrap();
    @END@
}
";
const RUST_HANG: &str = "std::process::Command::new(\"sleep\").arg(\"@SECONDS@\").status().unwrap();";
const RUST_KILL: &str = "std::process::Command::new(\"sh\").args([\"-c\", \"@KILL@\"]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(100));";
// Both leave the thread free to pass on what the runner has to report.
const JS_HANG: &str = "await run('sleep @SECONDS@')";
const JS_KILL: &str = "await run('@KILL@'); await run('sleep 100')";
/// Kills the runner from one of its tests, once the engine has read what came before: the engine starts the runner at the
/// head of a session of its own.
const KILL: &str = "until [ -e reported ]; do sleep 0.05; done; kill -9 $(ps -o sid= $$)";

const fn project(runner: &'static str) -> BadEndingProject {
    BadEndingProject {
        runner,
        program: runner,
        files: &[],
        hang: "",
        kill: "",
        reports_starts: true,
        reports_each_end: true,
    }
}

impl BadEndingProject {
    fn set_up(&self, end: &str) -> Option<SampleProject> {
        let sample = SampleProject::empty(self.program)?;
        for (path, text) in self.files {
            sample.write(path, &text.replace("@END@", end));
        }
        Some(sample)
    }

    fn request(&self, time_limit: Duration) -> RunTests {
        RunTests::new().runner(self.runner).time_limit(time_limit)
    }

    /// The limit ends the run, whatever it is, and no process is left. How long a runner takes until it has reported the
    /// test that hangs depends on the machine, so the limit is doubled until the runner has.
    fn hangs(&self) {
        let seconds = integration_tests::unique_seconds();
        let Some(sample) = self.set_up(&self.hang.replace("@SECONDS@", &seconds)) else { return };
        let mut limit = *LIMITS.start();
        loop {
            let report = sample.try_run(&self.request(Duration::from_secs(limit))).unwrap();
            leaves_nothing(&sample, &format!("sleep {seconds}"));
            let problem = report.error.as_ref().unwrap();
            assert_eq!(problem.kind, TestRunProblemKind::TimedOut, "{}", report.to_text());
            assert!(!report.is_success());
            if sample.path().join("began").exists() && self.has_reported_the_hang(&report) {
                assert_eq!(problem.message, format!("Test runner timed out after {limit}s"));
                return;
            }
            limit *= 2;
            assert!(LIMITS.contains(&limit), "the runner did not report in time: {}", report.to_text());
        }
    }

    fn has_reported_the_hang(&self, report: &TestReport) -> bool {
        let hanging = report.tests.first().filter(|test| test.status == TestStatus::TimedOut);
        self.keeps_what_came(report)
            && (!self.reports_starts || hanging.is_some_and(|test| test.name.contains("does")))
    }

    fn is_killed(&self) {
        let Some(sample) = self.set_up(&self.kill.replace("@KILL@", KILL)) else { return };
        let on_progress = |state: &str| {
            let has_ended = state.starts_with("1 ") || !self.reports_each_end;
            let has_started = state.contains("; running ") || !self.reports_starts;
            if has_ended && has_started {
                sample.write("reported", "");
            }
        };
        // The workers of vitest report at most every 100 ms, and may keep the last report until there is another one, which a
        // test that hangs never makes. Such a run ends at its limit and says nothing of what is tested here.
        let mut limit = 30;
        let report = loop {
            let request = self.request(Duration::from_secs(limit));
            let report = sample.try_run_with_progress(&request, on_progress).unwrap();
            limit *= 2;
            if sample.path().join("reported").exists() || limit > 120 {
                break report;
            }
        };
        assert!(sample.path().join("began").exists(), "the test began: {}", report.to_text());
        let problem = report.error.as_ref().unwrap();
        assert_eq!(problem.kind, TestRunProblemKind::Crashed, "{}", report.to_text());
        assert!(!report.is_success());
        assert!(self.keeps_what_came(&report), "what came before is kept: {}", report.to_text());
        if self.reports_starts {
            assert!(
                report
                    .tests
                    .iter()
                    .any(|test| test.name.contains("does") && test.status == TestStatus::Errored),
                "what ran is named: {}",
                report.to_text()
            );
        }
        leaves_nothing(&sample, "no such mark, the folder tells them");
    }

    fn keeps_what_came(&self, report: &TestReport) -> bool {
        // Where what the last test waits for is ended before the runner, that one may still pass.
        report.passed >= u64::from(self.reports_each_end)
    }
}

/// No process is left that says `mark`, or that runs in the folder of the project.
fn leaves_nothing(sample: &SampleProject, mark: &str) {
    integration_tests::wait_until_gone(mark, Duration::from_secs(10));
    let folder = sample.path().canonicalize().unwrap();
    let left = || {
        fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path())).filter(|process| {
            fs::read_link(process.join("cwd")).is_ok_and(|current| current.starts_with(&folder))
        })
    };
    integration_tests::wait_until(Duration::from_secs(10), "the processes in the folder end", || {
        left().next().is_none()
    });
}

macro_rules! endings {
    ($($name:ident: $project:expr;)*) => {$(
        mod $name {
            use super::*;

            const PROJECT: BadEndingProject = $project;

            #[test]
            fn a_test_that_hangs_is_ended_by_the_limit_and_leaves_no_process() {
                PROJECT.hangs();
            }

            #[test]
            fn a_runner_that_is_killed_is_a_crash_that_keeps_what_came_before() {
                PROJECT.is_killed();
            }
        }
    )*};
}

endings! {
    cargo: BadEndingProject {
        files: &[("Cargo.toml", CARGO), ("src/lib.rs", RUST)],
        hang: RUST_HANG,
        kill: RUST_KILL,
        // libtest reports a test when it has ended.
        reports_starts: false,
        ..project("cargo")
    };
    nextest: BadEndingProject {
        program: "cargo-nextest",
        files: &[("Cargo.toml", CARGO), ("src/lib.rs", RUST)],
        hang: RUST_HANG,
        kill: RUST_KILL,
        ..project("nextest")
    };
    pytest: BadEndingProject {
        files: &[
            ("pytest.ini", "[pytest]\n"),
            (
                "test_a.py",
                "import os, subprocess\ndef test_a():\n    pass\ndef test_does_not_end():\n    open('began', 'w').close()\n    @END@\n",
            ),
        ],
        hang: "subprocess.run(['sh', '-c', 'setsid sleep @SECONDS@ & sleep @SECONDS@'])",
        kill: "subprocess.run('@KILL@', shell=True)",
        ..project("pytest")
    };
    bats: BadEndingProject {
        files: &[(
            "tests/a.bats",
            "@test \"a\" {\n  true\n}\n@test \"b\" {\n  true\n}\n@test \"does not end\" {\n  touch began\n  @END@\n}\n",
        )],
        hang: "setsid sleep @SECONDS@ &\n  sleep @SECONDS@",
        kill: "@KILL@; sleep 100",
        reports_starts: false,
        ..project("bats")
    };
    node: BadEndingProject {
        files: &[
            ("package.json", "{}"),
            (
                "a.test.js",
                "const { test } = require('node:test');
const run = (script) => new Promise((done) => require('child_process').exec(script, done));
test('a', () => {});
test('does not end', async () => { require('fs').writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("node")
    };
    mocha: BadEndingProject {
        files: &[
            ("package.json", "{\"devDependencies\":{\"mocha\":\"*\"}}"),
            (
                "test/a.cjs",
                "const run = (script) => new Promise((done) => require('child_process').exec(script, done));
it('a', () => {});
it('does not end', async () => { require('fs').writeFileSync('began', ''); @END@ }).timeout(0);\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("mocha")
    };
    jest: BadEndingProject {
        files: &[
            ("package.json", "{\"devDependencies\":{\"jest\":\"*\"}}"),
            (
                "a.test.js",
                "const run = (script) => new Promise((done) => require('child_process').exec(script, done));
test('a', () => {});
test('does not end', async () => { require('fs').writeFileSync('began', ''); @END@ }, 600000);\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("jest")
    };
    vitest: BadEndingProject {
        files: &[
            ("package.json", "{\"type\":\"module\",\"devDependencies\":{\"vitest\":\"*\"}}"),
            (
                "a.test.js",
                "import { test } from 'vitest';
import { exec } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const run = (script) => new Promise((done) => exec(script, done));
test('a', () => {});
test('does not end', async () => { writeFileSync('began', ''); @END@ }, 600000);\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("vitest")
    };
    ava: BadEndingProject {
        files: &[
            ("package.json", "{\"type\":\"module\",\"devDependencies\":{\"ava\":\"*\"}}"),
            (
                "test.js",
                "import test from 'ava';
import { exec } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const run = (script) => new Promise((done) => exec(script, done));
test.serial('a', (t) => t.pass());
test.serial('b', (t) => t.pass());
test.serial('does not end', async (t) => { t.timeout(600000); t.pass(); writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        // TAP reports a test when it has ended.
        reports_starts: false,
        ..project("ava")
    };
    playwright: BadEndingProject {
        program: "@playwright/test",
        files: &[
            ("package.json", "{\"devDependencies\":{\"@playwright/test\":\"*\"}}"),
            (
                "a.spec.js",
                "const { test } = require('@playwright/test');
const run = (script) => new Promise((done) => require('child_process').exec(script, done));
test('a', () => {});
test('does not end', async () => { test.setTimeout(0); require('fs').writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("playwright")
    };
    rspec: BadEndingProject {
        files: &[(
            "spec/a_spec.rb",
            "RSpec.describe 'it' do
  it('passes') {}
  it('does not end') { File.write('began', ''); @END@ }
end\n",
        )],
        hang: "system('sleep @SECONDS@')",
        kill: "system('@KILL@')",
        ..project("rspec")
    };
    go: BadEndingProject {
        files: &[
            ("go.mod", "module example.org/sample\n\ngo 1.18\n"),
            (
                "a_test.go",
                "package sample\n\nimport (\n\t\"os\"\n\t\"os/exec\"\n\t\"testing\"\n\t\"time\"\n)\n
var _ = exec.Command
var _ = time.Sleep\n
func TestA(t *testing.T) {}\n
func TestDoesNotEnd_does(t *testing.T) {\n\tos.WriteFile(\"began\", nil, 0o600)\n\t@END@\n}\n",
            ),
        ],
        hang: "exec.Command(\"sleep\", \"@SECONDS@\").Run()",
        kill: "exec.Command(\"sh\", \"-c\", \"@KILL@\").Run()\n\ttime.Sleep(100 * time.Second)",
        ..project("go")
    };
    ctest: BadEndingProject {
        files: &[(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\nenable_testing()
add_test(NAME a COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME does_not_end COMMAND sh -c \"touch ${CMAKE_SOURCE_DIR}/began; @END@\")\n",
        )],
        hang: "sleep @SECONDS@",
        kill: "until [ -e ${CMAKE_SOURCE_DIR}/reported ]; do sleep 0.05; done; kill -9 $PPID; sleep 100",
        ..project("ctest")
    };
    make: BadEndingProject {
        files: &[("Makefile", "test:\n\t@touch began\n\t@@END@\n")],
        hang: "sleep @SECONDS@",
        kill: "kill -9 $$(ps -o sid= $$$$); sleep 100",
        reports_starts: false,
        reports_each_end: false,
        ..project("make")
    };
    maven: BadEndingProject {
        program: "mvn",
        files: &[
            (".mvn/maven.config", include_str!("projects/maven/.mvn/maven.config")),
            ("settings.xml", include_str!("projects/maven/settings.xml")),
            ("pom.xml", include_str!("projects/maven/pom.xml")),
            ("src/test/java/ATest.java", "class ATest {\n    @org.junit.jupiter.api.Test\n    void a() {}\n}\n"),
            (
                "src/test/java/BTest.java",
                "class BTest {\n    @org.junit.jupiter.api.Test\n    void doesNotEnd() throws Exception {
        new java.io.File(\"began\").createNewFile();\n        @END@\n    }\n}\n",
            ),
        ],
        hang: "new ProcessBuilder(\"sleep\", \"@SECONDS@\").start().waitFor();",
        // The engine reads the reports of Surefire at the end, so this waits for the report of the other class.
        kill: "var report = java.nio.file.Path.of(\"target/surefire-reports/TEST-ATest.xml\");
        while (!java.nio.file.Files.exists(report) || !java.nio.file.Files.readString(report).trim().endsWith(\"</testsuite>\")) Thread.sleep(50);
        new ProcessBuilder(\"sh\", \"-c\", \"kill -9 $(ps -o sid= $$)\").start().waitFor(); Thread.sleep(100_000);",
        // Surefire writes a file when a class of tests has ended.
        reports_starts: false,
        ..project("maven")
    };
}
