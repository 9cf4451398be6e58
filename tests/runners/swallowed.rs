//! Failures that the project's own command hides from its exit code, and texts that look like reports and are none. In each
//! fixture the command ends with exit code 0 in a terminal.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind, TestStatus};
use serde_json::json;
use std::path::Path;
use std::process::Command;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

/// The files of a project: path and text.
pub(crate) type Files = [(&'static str, &'static str)];

/// Runs the tests of a project, whose own command ends with exit code 0.
#[track_caller]
fn run(sample: &SampleProject, command: &[&str], files: &Files) -> TestReport {
    for (path, text) in files {
        sample.write(path, text);
    }
    let output = Command::new(command[0]).args(&command[1..]).current_dir(sample.path()).output().unwrap();
    assert!(output.status.success(), "the fixture ends well: {}", String::from_utf8_lossy(&output.stderr));
    sample.try_run(&RunTests::new()).unwrap()
}

/// The same for the script `test` of a `package.json`.
#[track_caller]
pub(crate) fn run_script(sample: &SampleProject, script: &str, files: &Files) -> TestReport {
    sample.write("package.json", &json!({"private": true, "scripts": {"test": script}}).to_string());
    run(sample, &["npm", "test"], files)
}

/// The same for the target `check` of a makefile.
#[track_caller]
pub(crate) fn run_make(sample: &SampleProject, recipe: &[&str], files: &Files) -> TestReport {
    let lines: String = recipe.iter().map(|line| format!("\t{line}\n")).collect();
    sample.write("Makefile", &format!("check:\n{lines}"));
    run(sample, &["make", "check"], files)
}

#[track_caller]
pub(crate) fn fails_as(report: &TestReport, kind: TestRunProblemKind) {
    assert_eq!(report.success, Some(false), "{}", report.to_text());
    assert_eq!(report.error.as_ref().map(|error| error.kind), Some(kind), "{}", report.to_text());
}

/// The passed tests and the exit code of each command.
pub(crate) fn rows(report: &TestReport) -> Vec<(&str, u64, Option<u32>)> {
    report
        .commands
        .iter()
        .map(|command| (command.command.as_str(), command.passed, command.exit_code))
        .collect()
}

const NODE_PASSES: &str = "const t = require('node:test'); t('z', () => {});\n";
const MOCHA_PASSES: &str = "it('passes', () => {});\n";
const PYTEST_PASSES: &str = "def test_b(): pass\n";

/// Files of `node:test` that `process.exit(0)` ends before node has their results.
const NODE_EXITS: [&str; 6] = [
    "t('a', () => {}); t('b', () => { process.exit(0); }); t('c', () => { throw 1; });\n",
    "t('a', () => {}); t.after(() => { process.exit(0); }); t('c', () => { throw 1; });\n",
    "t('a', () => {}); process.exit(0);\n",
    "process.exit(0);\n",
    "t('a', () => {}); t('b', async () => { await new Promise((done) => setTimeout(done, 50)); process.exit(0); }); t('c', () => { throw 1; });\n",
    "t('a', () => {}); setTimeout(() => { process.exit(0); t('c', () => { throw 1; }); }, 300);\n",
];

fn nodes() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.nodes/node_modules");
    let others = ["node22", "node24"].map(|version| root.join(version).join("bin/node"));
    let others = others.into_iter().filter(|node| node.exists());
    std::iter::once("node".to_owned()).chain(others.map(|node| node.display().to_string())).collect()
}

#[test]
fn a_file_of_node_that_process_exit_ends_is_no_pass() {
    for node in nodes() {
        let sample = sample!("node");
        for (index, exits) in NODE_EXITS.iter().enumerate() {
            sample.write(&format!("a{index}.test.js"), &format!("const t = require('node:test'); {exits}"));
        }
        let report = run_script(&sample, &format!("{node} --test"), &[("b.test.js", NODE_PASSES)]);
        fails_as(&report, TestRunProblemKind::Crashed);
        // Each of them is one.
        assert!(report.error.as_ref().unwrap().message.ends_with("(and 5 more)"), "{}", report.to_text());
        assert!(report.tests.iter().any(|test| test.name == "z"), "{}", report.to_text());
        assert_eq!(report.skipped, 0, "{}", report.to_text());
    }
}

#[test]
fn a_file_that_runs_its_own_tests_of_node_is_no_pass_if_process_exit_ends_it() {
    let sample = sample!("node");
    let exits = NODE_EXITS.iter().filter(|exits| exits.starts_with("t("));
    let files: Vec<_> = exits.enumerate().map(|(index, exits)| (format!("a{index}.js"), exits)).collect();
    for (file, exits) in &files {
        sample.write(file, &format!("const t = require('node:test'); {exits}"));
    }
    let commands: Vec<_> = files.iter().map(|(file, _)| format!("node {file}")).collect();
    let report =
        run_script(&sample, &format!("{} && node b.js", commands.join(" && ")), &[("b.js", NODE_PASSES)]);
    fails_as(&report, TestRunProblemKind::Crashed);
    let lost = report.commands.iter().filter_map(|command| command.note.as_ref());
    assert_eq!(
        lost.filter(|note| note.contains("`process.exit()`")).count(),
        files.len(),
        "{}",
        report.to_text()
    );
    // Without a script, node's own runner finds the file.
    let sample = sample!("node");
    sample.write("package.json", "{}").write("b.test.js", NODE_PASSES);
    sample.write("a.test.js", &format!("const t = require('node:test'); {}", NODE_EXITS[0]));
    fails_as(&sample.try_run(&RunTests::new()).unwrap(), TestRunProblemKind::Crashed);
}

#[test]
fn a_hook_that_waits_and_then_ends_the_process_loses_no_test_of_node() {
    let waits = "const t = require('node:test'); t('a', () => {});\nt('b', async () => { await new Promise((done) => setTimeout(done, 20)); });\nt.after(async () => { await new Promise((done) => setTimeout(done, 300)); process.exit(0); });\n";
    for script in
        ["node --test a.test.js", "node a.test.js", "node --test --experimental-test-coverage a.test.js"]
    {
        let sample = sample!("node");
        let report = run_script(&sample, script, &[("a.test.js", waits)]);
        assert_eq!((report.success, report.passed), (Some(true), 2), "{}", report.to_text());
    }
    // A file that tests nothing may end as it likes, and what a test forks has node's options as they are without us.
    let sample = sample!("node");
    let forks = "const t = require('node:test'); t('a', () => { require('assert').deepEqual(process.execArgv.filter((word) => /require/.test(word)), []); });\n";
    let files: &Files = &[("a.test.js", forks), ("b.test.js", "require('assert')(true); process.exit(0);\n")];
    let report = run_script(&sample, "node --test a.test.js b.test.js", files);
    assert_eq!((report.success, report.passed, report.skipped), (Some(true), 1, 1), "{}", report.to_text());
}

#[test]
fn a_runner_of_javascript_that_fails_before_it_reports_is_no_success() {
    let mocha = ("test/a.js", MOCHA_PASSES);
    let sample = sample!("mocha");
    let script = "mocha test/a.js; mocha test/b.js; mocha test/a.js";
    let report = run_script(&sample, script, &[mocha, ("test/b.js", "throw new Error('load');\n")]);
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    assert!(report.error.as_ref().unwrap().message.contains("`mocha test/b.js`"), "{}", report.to_text());
    let sample = sample!("mocha");
    let script = "mocha test/a.js; mocha test/b.js; mocha test/a.js";
    let report =
        run_script(&sample, script, &[mocha, ("test/b.js", "process.kill(process.pid, 'SIGKILL');\n")]);
    fails_as(&report, TestRunProblemKind::Crashed);

    let sample = sample!("jest");
    let script = "jest a.test.js; jest --config bad.json b.test.js; jest a.test.js";
    let test = "test('passes', () => {});\n";
    let files: &Files =
        &[("bad.json", "{\"testEnvironment\":\"nope\"}"), ("a.test.js", test), ("b.test.js", test)];
    fails_as(&run_script(&sample, script, files), TestRunProblemKind::RunnerFailed);

    let sample = sample!("vitest");
    let files: &Files = &[
        ("bad.mjs", "throw new Error('config');\n"),
        ("a.test.js", "import { test } from 'vitest';\ntest('a', () => {});\n"),
    ];
    fails_as(
        &run_script(&sample, "vitest run --config bad.mjs; vitest run", files),
        TestRunProblemKind::RunnerFailed,
    );

    let sample = sample!("node");
    let script = "node --test a.test.js; node --test gone.test.js; true";
    fails_as(&run_script(&sample, script, &[("a.test.js", NODE_PASSES)]), TestRunProblemKind::RunnerFailed);
}

#[test]
fn a_pytest_that_dies_before_its_run_has_its_own_failure_and_not_the_report_of_the_next() {
    for (dies, file) in [("-q a", "a/conftest.py"), ("--nonexist-opt", "none")] {
        let sample = sample!("pytest");
        let recipe =
            [format!("-.venv/bin/python -m pytest {dies}"), ".venv/bin/python -m pytest -q b".to_owned()];
        let files = [("a/test_a.py", PYTEST_PASSES), ("b/test_b.py", PYTEST_PASSES)];
        sample.write(file, "raise RuntimeError('x')\n");
        let report = run_make(&sample, &[&recipe[0], &recipe[1]], &files);
        fails_as(&report, TestRunProblemKind::RunnerFailed);
        let first = recipe[0].trim_start_matches('-');
        assert_eq!(rows(&report), [(first, 0, Some(4)), (&recipe[1], 1, Some(0))], "{}", report.to_text());
    }
}

#[test]
fn an_isolated_unittest_does_not_take_the_report_of_the_next() {
    let sample = sample!("python3");
    let test = "import unittest\nclass T(unittest.TestCase):\n    def test_b(self): pass\n";
    let recipe = ["python3 -I -m unittest test_a; python3 -m unittest test_b"];
    let report = run_make(&sample, &recipe, &[("test_a.py", test), ("test_b.py", test)]);
    let found = rows(&report);
    assert_eq!(found[0], ("python3 -I -m unittest test_a", 0, None), "{}", report.to_text());
    assert_eq!(found[1], ("python3 -m unittest test_b", 1, Some(0)), "{}", report.to_text());
    // One that takes none of its options fails without a report.
    let sample = sample!("python3");
    let report = run_make(
        &sample,
        &["-python3 -m unittest --nope", "python3 -m unittest test_b"],
        &[("test_b.py", test)],
    );
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    assert_eq!(rows(&report)[0].2, Some(2), "{}", report.to_text());
}

#[test]
fn a_cargo_that_does_not_compile_is_no_success() {
    let sample = sample!("cargo");
    let files: &Files = &[
        ("c/Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("c/src/lib.rs", "#[test] fn a() {}\n"),
        ("c/tests/t.rs", "#[test] fn b() { x }\n"),
    ];
    let report =
        run_make(&sample, &["cd c && (cargo test --lib; cargo test --test t; cargo test --lib)"], files);
    fails_as(&report, TestRunProblemKind::CompileError);
    let row = rows(&report).into_iter().find(|(command, ..)| command.contains("--test t")).unwrap();
    assert_eq!(row.1, 0, "{}", report.to_text());
}

#[test]
fn tap_that_is_cut_off_is_no_success() {
    let passes = "const t = require('tape'); t('a', (x) => { x.ok(1); x.end(); });\n";
    let throws = "const t = require('tape'); t('a', (x) => { x.ok(1); x.end(); });\nt('b', () => { setTimeout(() => { throw Error('boom'); }, 10); });\n";
    let dies = "const t = require('tape'); t('b', (x) => { x.ok(1); x.ok(1, 'two'); process.kill(process.pid, 'SIGKILL'); });\n";
    let early = "const t = require('tape'); t('b', () => { throw Error('early'); });\n";
    for (script, text) in [
        ("tape t.js || true", throws),
        ("tape a.js; tape t.js || true", dies),
        ("tape a.js; tape t.js; tape a.js", early),
    ] {
        let sample = sample!("tape");
        sample.write("t.js", text);
        let report = run_script(&sample, script, &[("a.js", passes)]);
        fails_as(&report, TestRunProblemKind::Crashed);
    }
    // A whole report of a program that fails after it is none either.
    let sample = sample!("node");
    let report = run_script(
        &sample,
        "node t.js || true",
        &[("t.js", "console.log('1..1\\nok 1 a');\nprocess.exitCode = 3;\n")],
    );
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    let sample = sample!("tape");
    let report = run_script(&sample, "tape a.js; tape a.js", &[("a.js", passes)]);
    assert_eq!((report.success, report.passed), (Some(true), 2), "{}", report.to_text());
}

#[test]
fn what_a_program_prints_is_no_report_of_a_runner_that_did_not_run() {
    let sample = sample!("mocha");
    let fake = "console.log('TAP version 13\\nok 1 - a\\nok 2 - b\\n1..2'); it.skip('s', () => {});\n";
    let report = run_script(&sample, "mocha", &[("test/a.js", fake)]);
    assert_eq!((report.success, report.passed, report.skipped), (None, 0, 1), "{}", report.to_text());
    let report = run_script(&sample, "echo first && tsc --version; mocha; true", &[("test/a.js", fake)]);
    assert_eq!((report.success, report.passed), (None, 0), "{}", report.to_text());

    // The lines of a test that fails are not counted either.
    let fake = "it('a', () => { console.log('TAP version 13\\n1..3\\nok 1 - x\\nok 2 - y\\nok 3 - z\\n'); throw Error('real'); });\nit('b', () => {});\n";
    let report = run_script(&sample, "mocha || true", &[("test/a.js", fake)]);
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());

    let go = "console.log('ok  \\texample.org/x\\t0.1s');\n";
    let libtest = "console.log('running 2 tests\\ntest a ... ok\\ntest b ... ok\\n\\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n');\n";
    for text in [go, libtest] {
        let sample = sample!("node");
        sample.write("t.js", text);
        let report = run_script(&sample, "node t.js", &[]);
        assert_eq!((report.success, report.passed), (None, 0), "{}", report.to_text());
    }
    let sample = sample!("make");
    let report =
        run_make(&sample, &["@printf 'ok  \\texample.org/x\\t0.1s\\n'; sh -c \"exit 3\" || true"], &[]);
    assert_eq!((report.success, report.passed), (None, 0), "{}", report.to_text());
}

#[test]
fn tests_that_nextest_ignores_are_skipped() {
    let sample = sample!("cargo-nextest");
    let files: &Files = &[
        (".config/nextest.toml", ""),
        ("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        (
            "src/lib.rs",
            "#[test] fn a() {}\n#[test] #[ignore] fn i() { panic!() }\n#[test] #[ignore] fn i2() {}\n",
        ),
    ];
    let report = run(&sample, &["true"], files);
    assert_eq!(report.runner, "nextest");
    assert_eq!((report.success, report.passed, report.skipped), (Some(true), 1, 2), "{}", report.to_text());
    let skipped = report.tests.iter().filter(|test| test.status == TestStatus::Skipped);
    assert_eq!(skipped.filter(|test| test.name.contains(" i")).count(), 2, "{}", report.to_text());
    // These are the same tests, and not others.
    assert!(report.notes.iter().all(|note| !note.contains("tests of cargo")), "{:?}", report.notes);
    // Ignored tests count beside one that fails, too, and not where the selection leaves them out.
    sample
        .write("src/lib.rs", "#[test] fn a() {}\n#[test] fn z() { panic!() }\n#[test] #[ignore] fn i() {}\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!((report.passed, report.failed, report.skipped), (1, 1, 1), "{}", report.to_text());
    let report = sample.try_run(&RunTests::new().test_path("a")).unwrap();
    assert_eq!((report.passed, report.failed, report.skipped), (1, 0, 0), "{}", report.to_text());
}

#[test]
fn mocha_plans_the_tests_that_only_leaves() {
    let sample = sample!("mocha");
    let only =
        "describe.only('o', () => { it('1', () => {}); });\ndescribe('p', () => { it('2', () => {}); });\n";
    for script in ["mocha", "mocha -g 1"] {
        let report = run_script(&sample, script, &[("test/a.js", only)]);
        assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    }
}

#[test]
fn prove_that_prints_each_test_counts_no_test_twice() {
    let sample = sample!("prove");
    let files: &Files = &[
        ("t/a.t", "use Test::More tests=>2;ok(1);ok(1);\n"),
        ("t/b.t", "use Test::More;ok(1,'named');done_testing;\n"),
        ("t/c.t", "use Test::More skip_all=>'not here';\n"),
    ];
    let report = run_make(&sample, &["prove -v t"], files);
    assert_eq!((report.success, report.passed, report.failed), (Some(true), 3, 0), "{}", report.to_text());
    sample.write("t/b.t", "use Test::More tests=>2;ok(1);ok(0,'bad');\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 3, 1), "{}", report.to_text());
    // A file that dies in the middle, one that fails after its last test, and one that never begins.
    for (text, kind) in [
        ("use Test::More tests=>2;ok(1);die 'x';\n", TestRunProblemKind::Crashed),
        ("use Test::More;ok(1);done_testing;exit 5;\n", TestRunProblemKind::RunnerFailed),
        ("die 'early';\n", TestRunProblemKind::RunnerFailed),
    ] {
        sample.write("t/b.t", text);
        fails_as(&run_make(&sample, &["prove -v t || true"], &[]), kind);
    }
}

#[test]
fn the_end_of_each_stream_is_kept_where_both_are_long() {
    let sample = sample!("node");
    sample.write("package.json", &json!({"scripts": {"test": "node run.js"}}).to_string());
    sample.write(
        "run.js",
        "console.error('e'.repeat(79).concat('\\n').repeat(500)); console.error('the end of errors');\nconsole.log('o'.repeat(79).concat('\\n').repeat(500)); console.log('the cause');\nprocess.exitCode = 3;\n",
    );
    let report = sample.try_run(&RunTests::new()).unwrap();
    let output = report.output.as_ref().unwrap();
    assert!(output.contains("the cause") && output.contains("the end of errors"), "{output}");
    assert!(output.len() <= 8_000, "{}", output.len());
}

#[test]
fn an_exit_code_is_known_whatever_it_is_and_where_the_output_goes() {
    let sample = sample!("mocha");
    sample.write("package.json", &json!({"scripts": {"test": "mocha && node second.js"}}).to_string());
    sample.write("test/a.js", MOCHA_PASSES).write("second.js", "process.exit(4);\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!((report.success, report.exit_code), (Some(false), Some(4)), "{}", report.to_text());
    let report = run_script(&sample, "mocha; node second.js > /dev/null 2>&1; true", &[]);
    assert_eq!(rows(&report)[1].2, Some(4), "{}", report.to_text());
}

#[test]
fn a_script_that_succeeds_without_tests_is_run_as_it_is() {
    let sample = sample!("node");
    let report = run_script(&sample, "echo \"Error: no test specified\" && exit 0", &[]);
    assert_eq!(report.success, None, "{}", report.to_text());
    assert!(report.to_text().starts_with("NOTHING VERIFIED"), "{}", report.to_text());
}
