//! Failures that stand on the output, or in an exit code, and that no report accounts for: a command that reports nothing
//! hides the runner that it starts. In each fixture the command ends with exit code 0 in a terminal.

use crate::support::SampleProject;
use crate::swallowed::{Files, fails_as, run_make, run_script};
use core_tools::testing::{TestReport, TestRunProblemKind};
use std::path::Path;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

const MOCHA_PASSES: &str = "it('passes', () => {});\n";

/// A program that runs a command with an environment in which nothing of ours is left, and ends well.
fn starter(command: &str) -> String {
    format!(
        "require('child_process').spawnSync({command:?}, {{ shell: true, stdio: 'inherit', env: {{ PATH: process.env.PATH, HOME: process.env.HOME }} }});\n"
    )
}

/// The run is no success, and the report has these words.
#[track_caller]
fn is_no_success(report: &TestReport, words: &str) {
    let text = report.to_text();
    assert_ne!(report.success, Some(true), "{text}");
    assert!(text.contains(words), "{words}\n{text}");
}

/// The command succeeded, and the report says that this is not verified, with these words.
#[track_caller]
fn is_not_verified(report: &TestReport, words: &str) {
    let text = report.to_text();
    assert_eq!((report.success, report.error.as_ref()), (None, None), "{text}");
    assert!(text.starts_with("NOT VERIFIED"), "{text}");
    assert!(report.notes.iter().any(|note| note.contains(words)), "{words}\n{text}");
}

#[test]
fn the_printed_failure_of_a_runner_of_javascript_that_a_program_starts_is_no_success() {
    let failing = "it('fails', () => { throw new Error('why'); });\n";
    check_runners_of_javascript(&[
        ("mocha a.js", "a.js", failing, "`1 failing`"),
        ("mocha --reporter tap a.js", "a.js", failing, "1 failed"),
        ("jest --testRegex a.js", "a.js", failing, "1 failed, 1 total`"),
    ]);
}

#[test]
fn the_printed_failure_of_vitest_ava_or_node_that_a_program_starts_is_no_success() {
    let of_vitest = "import { it } from 'vitest';\nit('fails', () => { throw new Error('why'); });\n";
    let of_ava = "import test from 'ava';\ntest('fails', t => t.fail());\n";
    let of_node = "require('node:test')('fails', () => { throw 1; });\n";
    check_runners_of_javascript(&[
        ("vitest run", "a.test.mjs", of_vitest, "1 failed"),
        ("ava a.mjs", "a.mjs", of_ava, "`1 test failed`"),
        ("node --test --test-reporter=spec a.js", "a.js", of_node, "`ℹ fail 1`"),
    ]);
}

/// Runs programs that start a failing runner: its command, a file with its text, and the words of the report.
fn check_runners_of_javascript(runners: &[(&str, &str, &str, &str)]) {
    for &(command, file, text, words) in runners {
        let sample = sample!("mocha");
        sample.write("run.js", &starter(command)).write(file, text);
        let report = run_script(&sample, "node run.js && mocha b.js", &[("b.js", MOCHA_PASSES)]);
        is_no_success(&report, words);
        assert_eq!(report.passed, 1, "{}", report.to_text());
        if command == "mocha a.js" {
            is_no_success(&run_script(&sample, "mocha b.js && node run.js", &[]), words);
        }
    }
}

#[test]
fn the_printed_failure_of_a_runner_of_python_or_ruby_that_a_program_starts_is_no_success() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pytest = format!("{}/.venv/bin/python -m pytest -q -p no:cacheprovider", root.display());
    let unittest = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.fail()\n";
    let minitest =
        "require 'minitest/autorun'\nclass T < Minitest::Test\n  def test_a; assert false; end\nend\n";
    let spec = "RSpec.describe('a') { it('x') { raise 'x' } }\n";
    check_runners(&[
        ("pytest", &pytest, &[("test_a.py", "def test_a(): assert 0\n")], "`1 failed in "),
        ("python3", "python3 -m unittest test_a", &[("test_a.py", unittest)], "`FAILED (failures=1)`"),
        ("ruby", "ruby a.rb", &[("a.rb", minitest)], "1 failures"),
        ("rspec", "rspec a_spec.rb", &[("a_spec.rb", spec)], "`1 example, 1 failure`"),
    ]);
}

#[test]
fn the_printed_failure_of_prove_go_or_cargo_that_a_program_starts_is_no_success() {
    let go = "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Fail() }\n";
    let of_go: &Files = &[("g/go.mod", "module example.org/g\n\ngo 1.19\n"), ("g/a_test.go", go)];
    let cargo = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    let of_cargo: &Files = &[("c/Cargo.toml", cargo), ("c/src/lib.rs", "#[test] fn a() { panic!() }\n")];
    check_runners(&[
        ("prove", "prove a.t", &[("a.t", "use Test::More tests => 1; ok(0);\n")], "`Result: FAIL`"),
        ("go", "cd g && go test ./...", of_go, "`FAIL\texample.org/g\t"),
        ("cargo", "cd c && cargo test --offline", of_cargo, "`test result: FAILED. "),
    ]);
}

/// Runs programs that start a failing runner, if it is installed: its program, its command, its files, and the words of
/// the report.
fn check_runners(runners: &[(&str, &str, &Files, &str)]) {
    for &(program, command, files, words) in runners {
        if SampleProject::empty(program).is_none() {
            continue;
        }
        let sample = sample!("mocha");
        sample.write("run.js", &starter(command)).write("b.js", MOCHA_PASSES);
        let report = run_script(&sample, "node run.js && mocha b.js", files);
        is_no_success(&report, words);
        assert_eq!(report.passed, 1, "{}", report.to_text());
    }
}

#[test]
fn tap_of_which_a_filter_leaves_the_failures_is_no_success() {
    let sample = sample!("mocha");
    let tap = "console.log('TAP version 13\\nok 1 - a\\nnot ok 2 - b\\n1..2');\n";
    let files: &Files = &[("t.js", tap), ("b.js", MOCHA_PASSES)];
    let report = run_script(&sample, "node t.js | grep 'not ok'; mocha b.js", files);
    is_no_success(&report, "`not ok 2 - b`");
}

#[test]
fn what_a_test_prints_is_no_failure_where_every_command_has_reported() {
    let sample = sample!("mocha");
    let test = "it('a', () => { console.log('  1 failing'); console.log('Tests:       1 failed, 1 total'); console.log('not ok 2 - b'); });\n";
    let report = run_script(
        &sample,
        "echo start && mocha b.js && mocha c.js",
        &[("b.js", test), ("c.js", MOCHA_PASSES)],
    );
    assert_eq!((report.success, report.passed), (Some(true), 2), "{}", report.to_text());
    // Beside a program that may have started anything, the two cannot be told apart.
    let report = run_script(&sample, "node x.js && mocha b.js", &[("x.js", "")]);
    is_not_verified(&report, "the output has `1 failing`, which mocha prints");
    // Without such words, that program is none of our business.
    let report = run_script(&sample, "node x.js && mocha c.js", &[]);
    assert_eq!(report.success, Some(true), "{}", report.to_text());
}

#[test]
fn a_command_of_node_that_failed_is_no_success_however_the_script_goes_on() {
    let asserts = "require('assert').equal(1, 2);\n";
    let passes = "require('node:test')('passes', () => {});\n";
    let files: &Files =
        &[("test/1.js", asserts), ("test/2.js", passes), ("b.test.js", passes), ("checks.js", asserts)];
    let sample = sample!("node");
    let fails = |report: &TestReport| {
        fails_as(report, TestRunProblemKind::RunnerFailed);
        let message = &report.error.as_ref().unwrap().message;
        assert!(message.contains("`node test/1.js` failed with exit code 1"), "{message}");
        assert_eq!(report.passed, 1, "{}", report.to_text());
    };
    fails(&run_make(&sample, &["node test/1.js; node test/2.js"], files));
    fails(&run_make(&sample, &["node --test test/2.js; node test/1.js || true"], &[]));
    // What does not look like a test may be one.
    for recipe in [
        "node checks.js; node --test b.test.js",
        "node checks.js || node b.test.js",
        "-node checks.js\n\tnode --test b.test.js",
    ] {
        is_not_verified(&run_make(&sample, &[recipe], &[]), "`node checks.js` failed with exit code 1");
    }
    std::fs::remove_file(sample.path().join("Makefile")).unwrap();
    fails(&run_script(&sample, "for f in test/*.js; do node $f; done", &[]));
}

#[test]
fn a_script_of_python_that_failed_is_no_success_however_the_recipe_goes_on() {
    let test = "import unittest\nclass T(unittest.TestCase):\n    def test_b(self): pass\n";
    let sample = sample!("python3");
    let files: &Files = &[
        ("test_b.py", test),
        ("tests/a.py", "assert 1 == 2\n"),
        ("checks.py", "import sys\nsys.exit(3)\n"),
        ("b.py", "import sys\nsys.exit(0)\n"),
    ];
    let report = run_make(&sample, &["-python3 checks.py", "python3 -m unittest test_b"], files);
    is_not_verified(&report, "`python checks.py` failed with exit code 3");
    let recipe = "for f in tests/*.py b.py; do python3 $$f; done; python3 -m unittest test_b";
    let report = run_make(&sample, &[recipe], &[]);
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    let message = &report.error.as_ref().unwrap().message;
    assert!(message.contains("`python tests/a.py` failed with exit code 1"), "{message}");
    let report = run_make(&sample, &["python3 b.py; python3 -m unittest test_b"], &[]);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
}

#[test]
fn each_command_of_a_loop_counts() {
    let asserts = "require('assert').equal(1, 2);\n";
    let passes = "require('node:test')('passes', () => {});\n";
    let sample = sample!("node");
    let files: &Files = &[("test/1.js", passes), ("test/2.js", asserts), ("test/3.js", passes)];
    let report = run_script(&sample, "for f in test/*.js; do node $f; done", files);
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    sample.write("test/2.js", "process.kill(process.pid, 'SIGKILL');\n");
    let report = run_script(&sample, "for f in test/*.js; do node $f; done", &[]);
    fails_as(&report, TestRunProblemKind::Crashed);
}

#[test]
fn a_failure_that_the_script_wants_is_none() {
    let files: &Files = &[
        ("bad.js", "process.exit(3);\n"),
        ("server.js", "setInterval(() => {}, 1000);\n"),
        ("b.test.js", "require('node:test')('passes', () => {});\n"),
        // A test of a program that is to fail.
        (
            "cli.js",
            "const { status } = require('child_process').spawnSync('node', ['bad.js']);\nrequire('assert').equal(status, 3);\n",
        ),
    ];
    let sample = sample!("node");
    for script in [
        "! node bad.js && node --test b.test.js",
        "if node bad.js; then exit 1; fi; node --test b.test.js",
        "node cli.js && node --test b.test.js",
        "node server.js & node --test b.test.js; kill $$!",
    ] {
        let report = run_make(&sample, &[script], files);
        assert_eq!((report.success, report.passed), (Some(true), 1), "{script}: {}", report.to_text());
    }
}

/// A script that checks twice, and whose checks print how they went.
const CHECKS: &str =
    "check() {\n  if [ \"$2\" = \"$3\" ]; then echo \"ok: $1\"; else echo \"FAIL: $1\"; exit 1; fi\n}\n";

#[test]
fn what_a_script_prints_of_a_failure_that_it_hides_is_not_verified() {
    let test = "import unittest\nclass T(unittest.TestCase):\n    def test_b(self): pass\n";
    for (script, words) in [
        (format!("trap \"exit 0\" EXIT\nset -e\n{CHECKS}check add 2 3\ncheck sub 1 1\n"), "`FAIL: add`"),
        (format!("end() {{\n  exit 0\n}}\ntrap end EXIT\nset -e\n{CHECKS}check add 2 3\n"), "`FAIL: add`"),
        ("# it's one\nset -e\n(echo '2 checks passed, 1 failed'; exit 1) || true\n".to_owned(), "1 failed`"),
    ] {
        let sample = sample!("python3");
        sample.write("checks.sh", &script);
        let recipe = ["python3 -m unittest test_b", "sh checks.sh"];
        let report = run_make(&sample, &recipe, &[("test_b.py", test)]);
        is_not_verified(&report, words);
        assert_eq!(report.passed, 1, "{}", report.to_text());
    }
    // A script without such a line, and one that passes each failure on.
    for script in [
        format!("trap \"exit 0\" EXIT\nset -e\n{CHECKS}check add 2 2\n"),
        "set -e\n# FAIL\ntrue\necho 'FAILED stands here only'\n".to_owned(),
    ] {
        let sample = sample!("python3");
        sample.write("checks.sh", &script);
        let report =
            run_make(&sample, &["python3 -m unittest test_b", "sh checks.sh"], &[("test_b.py", test)]);
        assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    }
}
