//! Runs that go wrong as a whole: each a kind of its own, none a pass.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestError, TestReport, TestRunProblemKind, TestStatus};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

fn kind(report: &TestReport) -> Option<TestRunProblemKind> {
    assert_eq!(report.is_success(), report.error.is_none() && report.failed == 0, "{}", report.to_text());
    report.error.as_ref().map(|error| error.kind)
}

#[track_caller]
fn fails_as(report: &TestReport, expected: TestRunProblemKind) {
    assert_eq!(kind(report), Some(expected), "{}", report.to_text());
    assert!(!report.is_success());
}

const CARGO: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

#[test]
fn cargo_that_does_not_compile_crashes_or_has_no_test_is_told_apart() {
    let sample = sample!("cargo");
    sample.write("Cargo.toml", CARGO).write("src/lib.rs", "#[test]\nfn a() {\n    let x: u8 = \"\";\n}\n");
    for runner in ["cargo", "nextest"] {
        let report = sample.run(runner, "");
        fails_as(&report, TestRunProblemKind::CompileError);
        let diagnostic = &report.diagnostics[0];
        assert_eq!(
            (diagnostic.file.as_deref(), diagnostic.line),
            (Some("src/lib.rs"), Some(3)),
            "{diagnostic}"
        );
        assert_eq!(diagnostic.code.as_deref(), Some("E0308"));
    }
    sample.write("src/lib.rs", "#[test]\nfn passes() {}\n#[test]\nfn aborts() { std::process::abort() }\n");
    fails_as(&sample.run("cargo", ""), TestRunProblemKind::Crashed);
    let report = sample.run("nextest", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (1, 1, false), "{}", report.to_text());
    sample.write("src/lib.rs", "#[test]\nfn passes() {}\n");
    for runner in ["cargo", "nextest"] {
        assert!(sample.run(runner, "").is_success());
        fails_as(&sample.run(runner, "no_such_test"), TestRunProblemKind::NoTests);
    }
}

#[test]
fn pytest_that_cannot_collect_exits_or_has_no_test_is_told_apart() {
    let sample = sample!("pytest");
    sample.write("pytest.ini", "[pytest]\n").write("test_a.py", "def test_a(:\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::CollectionError);
    sample.write("test_a.py", "import os\ndef test_a():\n    pass\ndef test_b():\n    os._exit(0)\n");
    let report = sample.run("", "");
    fails_as(&report, TestRunProblemKind::Crashed);
    assert_eq!((report.passed, report.failed), (1, 1), "what came before is kept, and what ran is named");
    assert_eq!(
        (report.tests[0].name.as_str(), report.tests[0].status),
        ("test_a.py::test_b", TestStatus::Errored)
    );
    sample.write("test_a.py", "");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
    sample.write("test_a.py", "import pytest\n@pytest.mark.skip\ndef test_a():\n    pass\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
}

#[test]
fn node_files_that_cannot_be_loaded_and_files_without_a_test_are_no_pass() {
    let sample = sample!("node");
    sample.write("package.json", "{}").write("a.test.js", "const = 1;\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::CollectionError);
    sample.write("a.test.js", "");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
    sample.write("a.test.js", "require('node:test').test('a', () => process.exit(0));\n");
    let report = sample.run("", "");
    assert!(!report.is_success(), "{}", report.to_text());
}

#[test]
fn javascript_runners_tell_a_file_that_cannot_be_loaded_and_an_empty_selection() {
    for (package, file) in [
        ("mocha", "test/a.test.cjs"),
        ("jest", "a.test.js"),
        ("vitest", "a.test.js"),
        ("ava", "test.js"),
        ("@playwright/test", "a.spec.js"),
    ] {
        let sample = sample!(package);
        sample.write("package.json", &format!("{{\"devDependencies\":{{\"{package}\":\"*\"}}}}"));
        sample.write(file, "const = 1;\n");
        fails_as(&sample.run("", ""), TestRunProblemKind::CollectionError);
        std::fs::remove_file(sample.path().join(file)).unwrap();
        fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
    }
}

#[test]
fn rspec_that_cannot_load_a_file_or_has_no_test_is_told_apart() {
    let sample = sample!("rspec");
    sample.write("spec/a_spec.rb", "RSpec.describe 'it' do\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::CollectionError);
    sample.write("spec/a_spec.rb", "RSpec.describe('it') { it('passes') {} }\n");
    assert!(sample.run("", "").is_success());
    fails_as(&sample.run("", "no such test"), TestRunProblemKind::NoTests);
    sample.write("spec/a_spec.rb", "");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
}

#[test]
fn maven_that_does_not_compile_or_dies_is_told_apart() {
    let Some(sample) = SampleProject::of("maven", "mvn") else { return };
    let test = MAVEN_TEST;
    sample.write(test, &maven_class("int x = \"\";"));
    let report = sample.run("", "");
    fails_as(&report, TestRunProblemKind::CompileError);
    let diagnostic = &report.diagnostics[0];
    assert_eq!((diagnostic.file.as_deref(), diagnostic.line), (Some(test), Some(6)), "{}", report.to_text());
    sample.write(test, &maven_class("Runtime.getRuntime().halt(3);"));
    fails_as(&sample.run("", ""), TestRunProblemKind::Crashed);
}

const MAVEN_TEST: &str = "src/test/java/demo/AdderTest.java";

fn maven_class(body: &str) -> String {
    format!(
        "package demo;\n\nclass AdderTest {{\n    @org.junit.jupiter.api.Test\n    void a() {{\n        {body}\n    }}\n}}\n"
    )
}

#[test]
fn maven_without_a_test_or_with_none_that_was_asked_for_is_no_pass() {
    let Some(sample) = SampleProject::of("maven", "mvn") else { return };
    sample.write(MAVEN_TEST, &maven_class(""));
    assert!(sample.run("", "").is_success());
    fails_as(&sample.run("", "NoSuchTest"), TestRunProblemKind::NoTests);
    sample.write(MAVEN_TEST, "package demo;\n\nclass AdderTest {}\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
}

#[test]
fn ctest_that_does_not_configure_or_has_no_test_is_told_apart() {
    let sample = sample!("ctest");
    sample.write("CMakeLists.txt", "no_such_command()\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::CompileError);
    let head = "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\nenable_testing()\n";
    sample.write("CMakeLists.txt", head);
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
    sample.write("CMakeLists.txt", &format!("{head}add_test(NAME a COMMAND ${{CMAKE_COMMAND}} -E true)\n"));
    assert!(sample.run("", "").is_success());
    fails_as(&sample.run("", "none"), TestRunProblemKind::NoTests);
}

#[test]
fn of_no_runner_an_empty_selection_is_a_pass_and_a_path_that_does_not_exist_is_an_error() {
    for (project, program, runner, file) in [
        ("cargo", "cargo", "cargo", "tests/none.rs"),
        ("cargo", "cargo-nextest", "nextest", "tests/none.rs"),
        ("pytest", "pytest", "pytest", "none/test_none.py"),
        ("bats", "bats", "bats", "tests/none.bats"),
        ("node", "node", "node", "none.test.js"),
        ("mocha", "mocha", "mocha", "test/none.cjs"),
        ("jest", "jest", "jest", "none.test.js"),
        ("vitest", "vitest", "vitest", "none.test.js"),
        ("ava", "ava", "ava", "none.js"),
        ("playwright", "@playwright/test", "playwright", "none.spec.js"),
        ("rspec", "rspec", "rspec", "spec/none_spec.rb"),
        ("go", "go", "go", "none_test.go"),
        ("ctest", "ctest", "ctest", "none/"),
    ] {
        let Some(sample) = SampleProject::of(project, program) else { continue };
        let report = sample.run(runner, "NoSuchTest");
        assert_eq!(kind(&report), Some(TestRunProblemKind::NoTests), "{runner}: {}", report.to_text());
        let request = RunTests::new().test_path(file).runner(runner);
        let error = sample.try_run(&request).unwrap_err();
        assert!(matches!(error, TestError::NoSuchPath { .. }), "{runner}: {error}");
    }
}

#[test]
fn an_exit_code_that_contradicts_the_tests_is_said_aloud() {
    let sample = sample!("pytest");
    sample.write("pytest.ini", "[pytest]\n");
    let exit = |code: u8| {
        format!(
            "import pytest\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n    session.exitstatus = {code}\n"
        )
    };
    sample.write("test_a.py", "def test_a():\n    assert False\n").write("conftest.py", &exit(0));
    let report = sample.run("", "");
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert!(
        report.to_text().contains("exit code is 0, but its own report has 1 failed"),
        "{}",
        report.to_text()
    );
    sample.write("test_a.py", "def test_a():\n    pass\n").write("conftest.py", &exit(3));
    let report = sample.run("", "");
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    assert!(report.to_text().contains("exit code is 3, though none of the 1 tests"), "{}", report.to_text());
}

#[test]
fn an_unhandled_error_of_vitest_is_no_pass_though_no_test_fails() {
    let sample = sample!("vitest");
    sample.write("package.json", "{\"type\":\"module\",\"devDependencies\":{\"vitest\":\"*\"}}");
    let test =
        "import { test } from 'vitest';\ntest('a', () => { Promise.reject(new Error('unhandled')); });\n";
    sample.write("a.test.js", test);
    let report = sample.run("", "");
    assert_eq!((report.passed, report.failed), (1, 0), "{}", report.to_text());
    fails_as(&report, TestRunProblemKind::RunnerFailed);
}

#[test]
fn go_that_does_not_build_panics_or_has_no_test_is_told_apart() {
    let sample = sample!("go");
    let head = "package sample\n\nimport \"testing\"\n\n";
    sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n");
    sample.write("a_test.go", &format!("{head}func TestA(t *testing.T) {{ undefined() }}\n"));
    let report = sample.run("", "");
    fails_as(&report, TestRunProblemKind::CompileError);
    assert_eq!(report.diagnostics[0].line, Some(5), "{}", report.to_text());
    let panics = "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { panic(\"boom\") }\n";
    sample.write("a_test.go", &format!("{head}{panics}"));
    let report = sample.run("", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (1, 1, false), "{}", report.to_text());
    fails_as(&sample.run("", "TestNone"), TestRunProblemKind::NoTests);
}

#[test]
fn bats_with_a_syntax_error_or_without_a_test_is_no_pass() {
    let sample = sample!("bats");
    sample.write("tests/a.bats", "@test \"a\" {\n  if\n}\n");
    let report = sample.run("", "");
    assert!(!report.is_success() && (report.failed > 0 || report.error.is_some()), "{}", report.to_text());
    sample.write("tests/a.bats", "# none\n");
    fails_as(&sample.run("", ""), TestRunProblemKind::NoTests);
}

#[test]
fn a_runner_that_is_missing_is_named_with_how_it_is_installed() {
    let sample = sample!("node");
    sample.write("package.json", "{\"devDependencies\":{\"vitest\":\"*\"}}");
    fails_as(&sample.run("", ""), TestRunProblemKind::RunnerMissing);
    if std::process::Command::new("swift").arg("--version").output().is_ok() {
        return;
    }
    sample.write("Package.swift", "");
    let report = sample.run("swift", "");
    fails_as(&report, TestRunProblemKind::RunnerMissing);
    let message = report.error.unwrap().message;
    assert!(
        message.contains("`swift`") && message.contains("PATH") && message.contains("swift.org"),
        "{message}"
    );
}

#[test]
fn paths_that_do_not_exist_lead_outside_or_are_options_run_nothing() {
    let sample = sample!("make");
    sample.write("Makefile", "test:\n\ttouch ran\n");
    let request = |path: &str| RunTests::new().test_path(path);
    for path in ["tests/none.rs", "none/", "src/a.py::b", "./none"] {
        let error = sample.try_run(&request(path)).unwrap_err();
        assert!(matches!(error, TestError::NoSuchPath { .. }), "{path}: {error}");
    }
    assert!(matches!(sample.try_run(&request("--help")).unwrap_err(), TestError::Option(_)));
    assert!(matches!(sample.try_run(&request("name")).unwrap_err(), TestError::CannotSelect { .. }));
    for path in ["../other", "/etc"] {
        assert!(sample.try_run(&request(path)).is_err(), "{path}");
    }
    assert!(!sample.path().join("ran").exists());
}

#[test]
fn a_project_without_a_runner_is_told_what_was_looked_for() {
    let sample = sample!("make");
    let error = sample.try_run(&RunTests::new()).unwrap_err().to_string();
    assert!(error.contains("no test runner detected") && error.contains("Cargo.toml"), "{error}");
    let unknown = RunTests::new().runner("jset");
    let error = sample.try_run(&unknown).unwrap_err().to_string();
    assert!(error.contains("jset") && error.contains("jest"), "{error}");
}
