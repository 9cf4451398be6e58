//! The answer as text: first what failed, by name, and where in the project's own code; each command with its own counts;
//! what a run left behind.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport};
use std::process::Command;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

fn text(report: &TestReport) -> String {
    report.to_text()
}

#[test]
fn all_failed_tests_are_named_before_any_message() {
    let sample = sample!("pytest");
    let tests: String = (0..20)
        .map(|index| format!("def test_{index}():\n    assert 'x' * 5000 + '{index}' == 'y' * 5000\n"))
        .collect();
    sample.write("pytest.ini", "[pytest]\n").write("test_a.py", &tests);
    let report = sample.run("", "");
    let text = text(&report);
    let first_message = text.find("    def test_0").unwrap_or(text.len());
    for index in 0..20 {
        let line = format!("failed: test_a.py::test_{index} (test_a.py:{})", index * 2 + 1);
        assert!(text.find(&line).is_some_and(|at| at < first_message), "{line}\n{text}");
    }
    assert!(text.len() < 40_000, "{} bytes", text.len());
    assert_eq!(report.tests.iter().filter(|test| test.status.is_failure()).count(), 20);
}

#[test]
fn tests_and_tests_in_documentation_are_told_apart_and_what_ran_after_a_failure_says_so() {
    let sample = sample!("cargo-nextest");
    sample
        .write("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
        .write(
            "src/lib.rs",
            "/// ```\n/// assert_eq!(sample::one(), 1);\n/// ```\npub fn one() -> u8 { 1 }\n#[test]\nfn fails() { assert_eq!(one(), 2) }\n#[test]\nfn passes() {}\n",
        );
    let report = sample.run("nextest", "");
    let counts: Vec<_> = report
        .commands
        .iter()
        .map(|command| (command.runner.as_deref(), command.passed, command.failed, command.exit_code))
        .collect();
    assert_eq!(
        counts,
        [(Some("nextest"), 1, 1, Some(100)), (Some("cargo"), 1, 0, Some(0))],
        "{}",
        text(&report)
    );
    let note = report.commands[1].note.as_deref();
    assert_eq!(note, Some("it ran although the command before it had failed"));
    assert_eq!(report.command, "cargo nextest run --no-fail-fast; cargo test --doc --no-fail-fast");
    assert!(
        text(&report).contains("command: `cargo test --doc --no-fail-fast`: 1 passed, 0 failed"),
        "{}",
        text(&report)
    );
}

#[test]
fn a_failure_in_a_dependency_is_located_in_the_line_of_the_project_that_led_there() {
    let sample = sample!("node");
    sample
        .write("package.json", "{\"devDependencies\":{\"mocha\":\"*\"}}")
        .write("node_modules/check/index.js", "module.exports = () => {\n  throw new Error('checked');\n};\n")
        .write("lib/cart.js", "exports.total = () => {\n  return require('check')();\n};\n")
        .write(
            "a.test.js",
            "const { total } = require('./lib/cart');\nrequire('node:test').test('a', () => total());\n",
        );
    let report = sample.run("node", "");
    assert_eq!((report.failed, report.tests[0].file.as_deref()), (1, Some("a.test.js")), "{}", text(&report));
    let cargo = sample!("cargo");
    cargo
        .write("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nstrict = { path = \".cargo/strict\" }\n[workspace]\n")
        .write(".cargo/strict/src/lib.rs", "pub fn check(ok: bool) {\n    if !ok {\n        panic!(\"strict\")\n    }\n}\n")
        .write("src/lib.rs", "#[test]\nfn a() {\n    strict::check(false);\n}\n");
    std::fs::write(
        cargo.path().join(".cargo/strict/Cargo.toml"),
        "[package]\nname = \"strict\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    let request = RunTests::new().runner("cargo").env("RUST_BACKTRACE", "1");
    let report = cargo.try_run(&request).unwrap();
    let test = &report.tests[0];
    assert_eq!((test.file.as_deref(), test.line), (Some("src/lib.rs"), Some(3)), "{}", text(&report));
    assert!(test.raised_at.as_ref().unwrap().ends_with("strict/src/lib.rs:3"), "{test:?}");
    assert!(report.command.starts_with("RUST_BACKTRACE=1 cargo test"), "{}", report.command);
}

#[test]
fn a_variable_of_the_request_reaches_the_tests_beside_our_reporter() {
    let sample = sample!("node");
    sample.write("package.json", "{\"scripts\":{\"test\":\"node --test\"}}").write(
        "a.test.js",
        "const assert = require('node:assert');\nrequire('node:test').test('a', () => {\n  assert.equal(process.env.MODE, 'strict');\n  assert.match(process.env.NODE_OPTIONS, /--stack-trace-limit=33/);\n});\n",
    );
    assert_eq!(sample.try_run(&RunTests::new()).unwrap().failed, 1);
    let request = RunTests::new().env("MODE", "strict").env("NODE_OPTIONS", "--stack-trace-limit=33");
    let report = sample.try_run(&request).unwrap();
    assert!(report.is_success(), "{}", text(&report));
    assert!(report.command.starts_with("MODE=strict NODE_OPTIONS="), "{}", report.command);
}

#[test]
fn the_untracked_files_that_a_run_leaves_are_named() {
    let sample = sample!("node");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=dev", "-c", "user.email=dev@example.com"]).args(arguments);
        assert!(command.current_dir(sample.path()).output().unwrap().status.success(), "{arguments:?}");
    };
    sample.write("package.json", "{\"scripts\":{\"test\":\"node --test\"}}").write(".gitignore", "ignored\n").write(
        "a.test.js",
        "const fs = require('node:fs');\nrequire('node:test').test('a', () => {\n  for (const name of ['left.txt', 'ignored']) fs.writeFileSync(name, '');\n  fs.mkdirSync('out', { recursive: true });\n  fs.writeFileSync('out/a', '');\n});\n",
    );
    let outside = sample.try_run(&RunTests::new()).unwrap();
    assert!(outside.is_success() && outside.new_files.is_empty(), "{}", text(&outside));
    for left in ["left.txt", "ignored", "out/a"] {
        std::fs::remove_file(sample.path().join(left)).unwrap();
    }
    git(&["init", "-q", "."]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "all"]);
    sample.write("before.txt", "");
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!(report.new_files, ["left.txt", "out/"], "{}", text(&report));
    assert!(text(&report).contains("left in the repository, untracked, by this run: left.txt, out/"));
    assert!(sample.try_run(&RunTests::new()).unwrap().new_files.is_empty(), "they were there before");
}
