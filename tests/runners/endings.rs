//! Runs that do not end well: a test hangs, or the runner dies beneath it. What came before is kept, what was
//! running is named where the runner tells it, and no process is left.

use crate::support::Sample;
use core_tools::testing::{ProblemKind, RunTests, Status, TestReport};
use std::fs;
use std::time::Duration;

/// A project with a test that passes and then one that does not end well.
struct Project {
    runner: &'static str,
    /// What it needs beside the runner.
    program: &'static str,
    /// Its files; `@END@` stands for what the second test does.
    files: &'static [(&'static str, &'static str)],
    /// A test of it, with `@SECONDS@` for how long to sleep, that hangs.
    hang: &'static str,
    /// One that ends the runner, by signal 9.
    kill: &'static str,
    /// The runner tells a test before it runs, so that one that hangs is named.
    names_what_runs: bool,
    /// The runner tells each test as soon as it has ended. Some gather for a while what they tell, so the second
    /// test waits for 3 s before it ends the runner.
    tells_at_once: bool,
}

const CARGO: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const RUST: &str = "
#[test]
fn a_passes() {}
#[test]
fn b_does_not_end() {
    // After the other, whatever the order.
    std::thread::sleep(std::time::Duration::from_millis(300));
    std::fs::write(\"began\", \"\").unwrap();
    @END@
}
";
const RUST_HANG: &str = "std::process::Command::new(\"sleep\").arg(\"@SECONDS@\").status().unwrap();";
const RUST_KILL: &str = "std::process::Command::new(\"sh\").args([\"-c\", \"@KILL@\"]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(100));";
const JS_HANG: &str = "await hang('@SECONDS@')";
const JS_KILL: &str = "require('child_process').execSync('@KILL@'); await hang('100')";
/// Ends the runner itself, from a test: the engine starts it at the head of a session of its own.
const KILL: &str = "kill -9 $(ps -o sid= $$)";

const fn project(runner: &'static str) -> Project {
    Project {
        runner,
        program: runner,
        files: &[],
        hang: "",
        kill: "",
        names_what_runs: true,
        tells_at_once: true,
    }
}

impl Project {
    fn set_up(&self, end: &str) -> Option<Sample> {
        let sample = Sample::empty(self.program)?;
        for (path, text) in self.files {
            sample.write(path, &text.replace("@END@", end));
        }
        Some(sample)
    }

    /// A limit that a run that does not hang stays below, also on a machine that has other things to do.
    fn limit(&self) -> Option<Duration> {
        let sample = self.set_up("")?;
        let report = self.run(&sample, Duration::from_secs(600));
        assert_eq!(report.failed, 0, "{}", report.to_text());
        assert!(sample.path().join("began").exists());
        Some(Duration::from_secs(5 + 2 * report.duration_ms.div_ceil(1000)))
    }

    fn run(&self, sample: &Sample, time_limit: Duration) -> TestReport {
        let runner = Some(self.runner.to_owned());
        sample.try_run(&RunTests { runner, time_limit, ..RunTests::default() }).unwrap()
    }

    fn hangs(&self) {
        let Some(limit) = self.limit() else { return };
        let seconds = integration_tests::unique_seconds();
        let Some(sample) = self.set_up(&self.hang.replace("@SECONDS@", &seconds)) else { return };
        let report = self.run(&sample, limit);
        assert!(sample.path().join("began").exists(), "the test began: {}", report.to_text());
        let problem = report.error.as_ref().unwrap();
        assert_eq!(problem.kind, ProblemKind::TimedOut, "{}", report.to_text());
        assert_eq!(problem.message, format!("Test runner timed out after {}s", limit.as_secs()));
        self.keeps_what_came(&report);
        if self.names_what_runs {
            assert_eq!(report.tests[0].status, Status::TimedOut, "what hung is named: {}", report.to_text());
            assert!(report.tests[0].name.contains("does"), "{}", report.to_text());
        }
        leaves_nothing(&sample, &format!("sleep {seconds}"));
    }

    fn is_killed(&self) {
        let Some(sample) = self.set_up(&self.kill.replace("@KILL@", KILL)) else { return };
        let report = self.run(&sample, Duration::from_secs(90));
        assert!(sample.path().join("began").exists(), "the test began: {}", report.to_text());
        let problem = report.error.as_ref().unwrap();
        assert_eq!(problem.kind, ProblemKind::Crashed, "{}", report.to_text());
        self.keeps_what_came(&report);
        if self.names_what_runs {
            assert!(
                report.tests.iter().any(|test| test.name.contains("does") && test.status == Status::Errored),
                "what ran is named: {}",
                report.to_text()
            );
        }
        leaves_nothing(&sample, "no such mark, the folder tells them");
    }

    fn keeps_what_came(&self, report: &TestReport) {
        assert!(!report.success);
        let kept = u64::from(self.tells_at_once);
        // Where what the test waits for is ended before the runner, the test may still pass.
        assert!(report.passed >= kept, "what came before is kept: {}", report.to_text());
    }
}

/// No process is left that says `mark`, or that runs in the folder of the project.
fn leaves_nothing(sample: &Sample, mark: &str) {
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

            const PROJECT: Project = $project;

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
    cargo: Project {
        files: &[("Cargo.toml", CARGO), ("src/lib.rs", RUST)],
        hang: RUST_HANG,
        kill: RUST_KILL,
        // libtest tells a test when it has ended.
        names_what_runs: false,
        ..project("cargo")
    };
    nextest: Project {
        program: "cargo-nextest",
        files: &[("Cargo.toml", CARGO), ("src/lib.rs", RUST)],
        hang: RUST_HANG,
        kill: RUST_KILL,
        ..project("nextest")
    };
    pytest: Project {
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
    bats: Project {
        files: &[(
            "tests/a.bats",
            "@test \"a\" {\n  true\n}\n@test \"does not end\" {\n  touch began\n  @END@\n}\n",
        )],
        hang: "setsid sleep @SECONDS@ &\n  sleep @SECONDS@",
        kill: "sleep 3; @KILL@; sleep 100",
        names_what_runs: false,
        ..project("bats")
    };
    node: Project {
        files: &[
            ("package.json", "{}"),
            (
                "a.test.js",
                "const { test } = require('node:test');
const hang = (seconds) => new Promise((done) => require('child_process').spawn('sleep', [seconds]).on('exit', done));
test('a', () => {});
test('does not end', async () => { require('fs').writeFileSync('began', ''); await new Promise((done) => setTimeout(done, 3000)); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("node")
    };
    mocha: Project {
        files: &[
            ("package.json", "{\"devDependencies\":{\"mocha\":\"*\"}}"),
            (
                "test/a.cjs",
                "const hang = (seconds) => require('child_process').execFileSync('sleep', [seconds]);
it('a', () => {});
it('does not end', async () => { require('fs').writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("mocha")
    };
    jest: Project {
        files: &[
            ("package.json", "{\"devDependencies\":{\"jest\":\"*\"}}"),
            (
                "a.test.js",
                "const hang = (seconds) => require('child_process').execFileSync('sleep', [seconds]);
test('a', () => {});
test('does not end', async () => { require('fs').writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("jest")
    };
    vitest: Project {
        files: &[
            ("package.json", "{\"type\":\"module\",\"devDependencies\":{\"vitest\":\"*\"}}"),
            (
                "a.test.js",
                "import { test } from 'vitest';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const hang = (seconds) => execFileSync('sleep', [seconds]);
test('a', () => {});
test('does not end', async () => { await new Promise((done) => setTimeout(done, 3000)); writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: "execFileSync('sh', ['-c', '@KILL@']); hang('100')",
        ..project("vitest")
    };
    ava: Project {
        files: &[
            ("package.json", "{\"type\":\"module\",\"devDependencies\":{\"ava\":\"*\"}}"),
            (
                "test.js",
                "import test from 'ava';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
const hang = (seconds) => execFileSync('sleep', [seconds]);
test.serial('a', (t) => t.pass());
test.serial('does not end', async (t) => { t.pass(); await new Promise((done) => setTimeout(done, 3000)); writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: "execFileSync('sh', ['-c', '@KILL@']); hang('100')",
        // TAP tells a test when it has ended.
        names_what_runs: false,
        ..project("ava")
    };
    playwright: Project {
        program: "@playwright/test",
        files: &[
            ("package.json", "{\"devDependencies\":{\"@playwright/test\":\"*\"}}"),
            (
                "a.spec.js",
                "const { test } = require('@playwright/test');
const hang = (seconds) => require('child_process').execFileSync('sleep', [seconds]);
test('a', () => {});
test('does not end', async () => { await new Promise((done) => setTimeout(done, 3000)); require('fs').writeFileSync('began', ''); @END@ });\n",
            ),
        ],
        hang: JS_HANG,
        kill: JS_KILL,
        ..project("playwright")
    };
    rspec: Project {
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
    go: Project {
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
        kill: "time.Sleep(3 * time.Second)\n\texec.Command(\"sh\", \"-c\", \"@KILL@\").Run()\n\ttime.Sleep(100 * time.Second)",
        ..project("go")
    };
    ctest: Project {
        files: &[(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\nenable_testing()
add_test(NAME a COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME does_not_end COMMAND sh -c \"touch ${CMAKE_SOURCE_DIR}/began; @END@\")\n",
        )],
        hang: "sleep @SECONDS@",
        kill: "kill -9 $PPID; sleep 100",
        ..project("ctest")
    };
    make: Project {
        files: &[("Makefile", "test:\n\t@touch began\n\t@@END@\n")],
        hang: "sleep @SECONDS@",
        kill: "kill -9 $$(ps -o sid= $$$$); sleep 100",
        names_what_runs: false,
        tells_at_once: false,
        ..project("make")
    };
    maven: Project {
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
        kill: "Thread.sleep(1000); new ProcessBuilder(\"sh\", \"-c\", \"@KILL@\").start().waitFor(); Thread.sleep(100_000);",
        // Surefire writes a file when a class of tests has ended.
        names_what_runs: false,
        ..project("maven")
    };
}
