//! Projects that make a runner say what is not so, or make it be read so.

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

const CARGO: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

#[track_caller]
fn is_no_pass(report: &TestReport, expected: TestRunProblemKind) {
    let kind = report.error.as_ref().map(|error| error.kind);
    assert_eq!((kind, report.is_success()), (Some(expected), false), "{}", report.to_text());
}

/// Names of the tests that ran.
fn ran(report: &TestReport) -> Vec<&str> {
    let mut names: Vec<_> = report
        .tests
        .iter()
        .filter(|test| test.status != TestStatus::Skipped)
        .map(|test| test.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

fn asked(sample: &SampleProject, runner: &str, path: &str) -> Result<TestReport, TestError> {
    sample.try_run(&RunTests::new().test_path(path).runner(runner))
}

#[test]
fn a_failing_test_that_says_what_cargo_says_of_a_missing_library_still_fails() {
    let sample = sample!("cargo-nextest");
    let test = "#[test]\nfn a() {\n    println!(\"error: no library targets found in package `sample`\");\n    eprintln!(\"error: no library targets found\");\n    panic!(\"no library targets found\")\n}\n#[test]\nfn b() {}\n";
    sample.write("Cargo.toml", CARGO).write("src/lib.rs", test);
    let report = sample.run("nextest", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (1, 1, false), "{}", report.to_text());
}

#[test]
fn each_file_of_cargo_selects_its_own_target_and_what_is_of_none_is_an_error() {
    let sample = sample!("cargo");
    let test = |name: &str| format!("#[test]\nfn {name}() {{}}\n");
    let manifest = format!("{CARGO}[[test]]\nname = \"odd\"\npath = \"other/odd.rs\"\n");
    sample.write("src/lib.rs", &format!("pub mod a;\n{}", test("in_lib")));
    sample.write("src/a.rs", &test("in_a"));
    sample.write("src/main.rs", &format!("fn main() {{}}\n{}", test("in_main")));
    sample.write("src/bin/x.rs", &format!("fn main() {{}}\n{}", test("in_x")));
    sample.write("other/odd.rs", &test("in_odd")).write("other/none.txt", "");
    sample.write("tests/api.rs", &format!("mod common;\n{}", test("in_api")));
    sample.write("tests/common/mod.rs", &test("in_common"));
    sample.write("Cargo.toml", &manifest);
    for (path, tests) in [
        ("src/main.rs", &["in_main"][..]),
        ("src", &["a::in_a", "in_lib", "in_main", "in_x"]),
        ("src/bin/x.rs", &["in_x"]),
        ("src/bin", &["in_x"]),
        ("src/lib.rs", &["a::in_a", "in_lib"]),
        ("src/a.rs", &["a::in_a"]),
        ("other/odd.rs", &["in_odd"]),
        ("other", &["in_odd"]),
        ("tests", &["common::in_common", "in_api"]),
        ("tests/common/mod.rs", &["common::in_common"]),
    ] {
        let report = sample.run("cargo", path);
        assert!(report.is_success(), "{path}: {}", report.to_text());
        assert_eq!(ran(&report), tests, "{path}: {}", report.to_text());
    }
    for path in ["Cargo.toml", "other/none.txt"] {
        let error = asked(&sample, "cargo", path).unwrap_err();
        assert!(matches!(error, TestError::CannotSelect { .. }), "{path}: {error}");
    }
}

/// The names of tests are literal, and they select as they stand in reports.
fn check_names_of_javascript_tests(program: &str, runner: &str, file: &str, head: &str) {
    let Some(sample) = SampleProject::empty(program) else { return };
    let package = format!("{{\"devDependencies\":{{\"{program}\":\"*\"}}}}");
    let tests = "describe('suite', () => {\n  it('adds 1', () => {});\n  it('adds [2]', () => {});\n  it('/3/', () => {});\n});\nit('a > b', () => {});\n";
    sample.write("package.json", &package).write(file, &format!("{head}{tests}"));
    for name in ["adds (1)", "adds [13]", "/adds 1/"] {
        is_no_pass(&sample.run(runner, &format!("{file}::{name}")), TestRunProblemKind::NoTests);
    }
    for name in ["suite > adds [2]", "a > b"] {
        let report = sample.run(runner, &format!("{file}::{name}"));
        assert!(report.is_success(), "{name}: {}", report.to_text());
        assert_eq!(ran(&report), [name], "{}", report.to_text());
    }
    assert_eq!(sample.run(runner, "suite > adds 1").passed, 1);
}

#[test]
fn names_of_jest_are_literal_and_select_as_they_stand_in_reports() {
    check_names_of_javascript_tests("jest", "jest", "a.test.js", "");
}

#[test]
fn names_of_vitest_are_literal_and_select_as_they_stand_in_reports() {
    let head = "import { describe, it } from 'vitest';\n";
    check_names_of_javascript_tests("vitest", "vitest", "a.test.js", head);
}

#[test]
fn names_of_mocha_are_literal_and_select_as_they_stand_in_reports() {
    check_names_of_javascript_tests("mocha", "mocha", "test/a.js", "");
}

#[test]
fn names_of_node_are_literal_and_select_as_they_stand_in_reports() {
    let head = "const { describe, it } = require('node:test');\n";
    check_names_of_javascript_tests("node", "node", "a.test.js", head);
}

#[test]
fn names_of_playwright_are_literal_and_select_as_they_stand_in_reports() {
    let head = "const { test: it } = require('@playwright/test');\nconst { describe } = it;\n";
    check_names_of_javascript_tests("@playwright/test", "playwright", "a.spec.js", head);
}

#[test]
fn names_of_go_bats_ctest_and_nextest_are_literal_and_select_as_they_stand_in_reports() {
    if let Some(sample) = SampleProject::empty("go") {
        let test = "package p\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) {\n\tt.Run(\"a (b)\", func(t *testing.T) {})\n\tt.Run(\"a b\", func(t *testing.T) {})\n}\n\nfunc TestSubs(t *testing.T) {}\n";
        sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n").write("p/a_test.go", test);
        for name in ["TestSub/a_(b)", "p/a_test.go::TestSub/a_(b)", "example.org/sample/p.TestSub/a_(b)"] {
            let report = sample.run("go", name);
            let tests = ["example.org/sample/p.TestSub", "example.org/sample/p.TestSub/a_(b)"];
            assert_eq!(ran(&report), tests, "{}", report.to_text());
            assert!(report.is_success(), "{}", report.to_text());
        }
        assert_eq!(
            ran(&sample.run("go", "example.org/sample/p.TestSubs")),
            ["example.org/sample/p.TestSubs"]
        );
        assert_eq!(sample.run("go", "TestSub").passed, 4);
        for name in ["TestSub/a_.b.", "TestSub.", "TestSu|TestX", "TestSub/(a_b)"] {
            is_no_pass(&sample.run("go", name), TestRunProblemKind::NoTests);
        }
    }
    if let Some(sample) = SampleProject::empty("bats") {
        sample.write("tests/a.bats", "@test \"adds (1)\" {\n  true\n}\n@test \"adds 2\" {\n  true\n}\n");
        assert_eq!(ran(&sample.run("bats", "adds (1)")), ["adds (1)"]);
        is_no_pass(&sample.run("bats", "adds (2)"), TestRunProblemKind::NoTests);
    }
    if let Some(sample) = SampleProject::empty("ctest") {
        let head = "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\nenable_testing()\n";
        let add = |name: &str| format!("add_test(NAME \"{name}\" COMMAND ${{CMAKE_COMMAND}} -E true)\n");
        sample.write("CMakeLists.txt", &format!("{head}{}{}", add("a+b"), add("aab")));
        assert_eq!(ran(&sample.run("ctest", "a+b")), ["a+b"]);
        is_no_pass(&sample.run("ctest", "a.b.*"), TestRunProblemKind::NoTests);
        sample.write("tests/a.c", "");
        for path in ["tests", "tests/a.c"] {
            let error = asked(&sample, "ctest", path).unwrap_err();
            assert!(matches!(error, TestError::CannotSelect { .. }), "{path}: {error}");
        }
    }
    if let Some(sample) = SampleProject::of("cargo", "cargo-nextest") {
        for name in ["tests::adds", "tests::überprüft_名前", "nested::prints_what_looks_like_a_result"] {
            let all = sample.run("nextest", name);
            let full = ran(&all)[0];
            let report = sample.run("nextest", full);
            assert_eq!((ran(&report), report.is_success()), (vec![full], true), "{}", report.to_text());
        }
        let report = sample.run("nextest", "src/lib.rs - add (line 5)");
        assert_eq!((ran(&report), report.is_success()), (vec!["src/lib.rs - add (line 5)"], true));
    }
}

#[test]
fn make_that_has_nothing_to_do_is_no_pass_and_neither_make_nor_npm_selects() {
    let sample = sample!("make");
    sample.write("Makefile", "test:\n").write("test/a.sh", "");
    is_no_pass(&sample.run("make", ""), TestRunProblemKind::NoTests);
    sample.write("Makefile", "test: all\nall:\n");
    is_no_pass(&sample.run("make", ""), TestRunProblemKind::NoTests);
    // Nothing in it reports a test, so that nothing is verified.
    for recipe in ["@true", "-@false", "@false || true"] {
        sample.write("Makefile", &format!(".PHONY: test\ntest:\n\t{recipe}\n"));
        let report = sample.run("make", "");
        assert_eq!((report.success, report.passed), (None, 0), "{}", report.to_text());
        assert!(report.to_text().starts_with("NOTHING VERIFIED"), "{}", report.to_text());
    }
    sample.write("package.json", "{\"scripts\":{\"test\":\"true\"}}");
    for runner in ["make", "npm"] {
        let error = asked(&sample, runner, "test/a.sh").unwrap_err();
        assert!(matches!(error, TestError::CannotSelect { .. }), "{error}");
    }
}

#[test]
fn a_test_of_nextest_that_is_tried_again_is_one_and_one_that_takes_too_long_timed_out() {
    let sample = sample!("cargo-nextest");
    let tests = "#[test]\nfn flaky() {\n    let tries = std::fs::read_to_string(\"tries\").unwrap_or_default();\n    std::fs::write(\"tries\", format!(\"{tries}x\")).unwrap();\n    assert!(tries.len() == 2);\n}\n#[test]\nfn slow() { std::thread::sleep(std::time::Duration::from_secs(600)) }\n";
    sample.write("Cargo.toml", CARGO).write("src/lib.rs", tests).write(
        ".config/nextest.toml",
        "[profile.default]\nretries = 2\nslow-timeout = { period = \"3s\", terminate-after = 1 }\n",
    );
    let report = sample.run("nextest", "");
    let told: Vec<_> =
        report.tests.iter().map(|test| (test.name.rsplit(' ').next().unwrap(), test.status)).collect();
    assert_eq!(told, [("slow", TestStatus::TimedOut), ("flaky", TestStatus::Passed)], "{}", report.to_text());
    assert_eq!((report.flaky, report.tests[1].attempts), (1, Some(3)), "{}", report.to_text());
}

#[test]
fn what_a_bats_test_is_called_excuses_no_failure_and_skips_nothing() {
    let sample = sample!("bats");
    let tests = "@test \"bad # TODO later\" {\n  false\n}\n@test \"bad # skip it\" {\n  false\n}\n@test \"good # skip hey\" {\n  true\n}\n@test \"skipped\" {\n  skip \"why\"\n}\n";
    sample.write("tests/a.bats", tests);
    let report = sample.run("bats", "");
    assert_eq!((report.passed, report.failed, report.skipped), (1, 2, 1), "{}", report.to_text());
    assert_eq!(report.tests[0].name, "bad # TODO later");
    assert_eq!(report.tests[2].error.as_deref(), Some("why"), "{}", report.to_text());
    assert_eq!(report.tests[3].name, "good # skip hey");
    assert!(report.error.is_none(), "{}", report.to_text());
}

const PYTEST: (&str, &str) = ("pytest.ini", "[pytest]\n");

#[test]
fn pytest_that_is_left_in_the_middle_is_no_pass_whatever_its_exit_code() {
    let sample = sample!("pytest");
    let test = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('stop', returncode=0)\ndef test_c(): pass\n";
    sample.write(PYTEST.0, PYTEST.1).write("test_a.py", test);
    is_no_pass(&sample.run("pytest", ""), TestRunProblemKind::Crashed);
    let stops = "import pytest\n@pytest.fixture(autouse=True)\ndef stop(request):\n    yield\n    request.session.shouldstop = 'enough'\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n";
    sample.write("conftest.py", stops).write("test_a.py", "def test_a(): pass\ndef test_b(): pass\n");
    is_no_pass(&sample.run("pytest", ""), TestRunProblemKind::Crashed);
}

#[test]
fn failures_with_text_that_is_none_or_is_endless_are_told() {
    for (program, runner, file, test) in [
        (
            "pytest",
            "pytest",
            "test_a.py",
            "def test_a():\n    assert False, '\\ud800'\ndef test_b():\n    raise ValueError('x' * 9_000_000)\n",
        ),
        (
            "node",
            "node",
            "a.test.js",
            "const { test } = require('node:test');\ntest('a', () => { throw new Error('\\ud800'); });\ntest('b', () => { throw new Error('x'.repeat(9e6)); });\n",
        ),
        (
            "mocha",
            "mocha",
            "test/a.js",
            "it('a', () => { throw new Error('\\ud800'); });\nit('b', () => { throw new Error('x'.repeat(9e6)); });\n",
        ),
        (
            "jest",
            "jest",
            "a.test.js",
            "test('a', () => { throw new Error('\\ud800'); });\ntest('b', () => { throw new Error('x'.repeat(9e6)); });\n",
        ),
        (
            "vitest",
            "vitest",
            "a.test.js",
            "import { test } from 'vitest';\ntest('a', () => { throw new Error('\\ud800'); });\ntest('b', () => { throw new Error('x'.repeat(9e6)); });\n",
        ),
    ] {
        let Some(sample) = SampleProject::empty(program) else { continue };
        sample.write(PYTEST.0, PYTEST.1).write("package.json", "{}").write(file, test);
        let report = sample.run(runner, file);
        assert_eq!((report.passed, report.failed), (0, 2), "{runner}: {}", report.to_text());
        assert!(report.error.is_none(), "{runner}: {}", report.to_text());
    }
}

#[test]
fn pytest_has_a_cache_and_leaves_none_in_the_project() {
    let sample = sample!("pytest");
    let test = "import json, sys\ndef test_a(cache):\n    cache.set('a/b', 1)\n    assert cache.get('a/b', 0) == 1\n";
    sample.write(PYTEST.0, "[pytest]\naddopts = --ff\n").write("test_a.py", test);
    let report = sample.run("pytest", "");
    assert!(report.is_success(), "{}", report.to_text());
    assert!(!sample.path().join(".pytest_cache").exists());
}

#[test]
fn attempts_that_pytest_repeats_are_no_results() {
    let sample = sample!("pytest");
    // As pytest-rerunfailures tells them.
    let plugin = "import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(3):
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == 'call' and report.failed and attempt < 2:
                report.outcome = 'rerun'
                item.ihook.pytest_runtest_logreport(report=report)
                break
            if not (report.when == 'call' and 'lost' in item.name and attempt == 2):
                item.ihook.pytest_runtest_logreport(report=report)
        else:
            break
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
";
    let test = "tries = []\ndef test_flaky():\n    tries.append(1)\n    assert len(tries) == 3\ndef test_lost():\n    assert False\n";
    sample.write(PYTEST.0, PYTEST.1).write("conftest.py", plugin).write("test_a.py", test);
    let report = sample.run("pytest", "");
    let told: Vec<_> = report.tests.iter().map(|test| (test.name.as_str(), test.status)).collect();
    let expected =
        [("test_a.py::test_lost", TestStatus::Errored), ("test_a.py::test_flaky", TestStatus::Passed)];
    assert_eq!(told, expected, "{}", report.to_text());
}

#[test]
fn tests_of_javascript_that_are_tried_again_count_once() {
    for (program, runner, file, test) in [
        (
            "jest",
            "jest",
            "a.test.js",
            "jest.retryTimes(2);\nlet n = 0;\ntest('a', () => { if (++n < 3) throw new Error('no'); });\n",
        ),
        (
            "mocha",
            "mocha",
            "test/a.js",
            "let n = 0;\nit('a', function () { this.retries(2); if (++n < 3) throw new Error('no'); });\n",
        ),
        (
            "vitest",
            "vitest",
            "a.test.js",
            "import { test } from 'vitest';\nlet n = 0;\ntest('a', { retry: 2 }, () => { if (++n < 3) throw new Error('no'); });\n",
        ),
        (
            "@playwright/test",
            "playwright",
            "a.spec.js",
            "const { test } = require('@playwright/test');\ntest.describe.configure({ retries: 2 });\ntest('a', ({}, { retry }) => { if (retry < 2) throw new Error('no'); });\n",
        ),
    ] {
        let Some(sample) = SampleProject::empty(program) else { continue };
        sample.write("package.json", "{}").write(file, test);
        let report = sample.run(runner, file);
        assert_eq!(
            (report.passed, report.failed, report.is_success()),
            (1, 0, true),
            "{runner}: {}",
            report.to_text()
        );
        let test = &report.tests[0];
        assert_eq!(
            (report.flaky, test.flaky, test.attempts),
            (1, true, Some(3)),
            "{runner}: {}",
            report.to_text()
        );
    }
}

#[test]
fn files_of_node_that_end_in_the_middle_are_no_pass_and_a_test_may_bear_the_name_of_its_file() {
    let sample = sample!("node");
    let head = "const { test } = require('node:test');\n";
    sample.write("package.json", "{}").write("b.test.js", &format!("{head}test('b.test.js', () => {{}});\n"));
    let report = sample.run("node", "");
    assert_eq!((ran(&report), report.is_success()), (vec!["b.test.js"], true), "{}", report.to_text());
    for exits in [
        "test('one', () => {});\ntest('two', () => process.exit(0));\ntest('three', () => {});\n",
        "test('one', () => {});\ntest('two', () => new Promise(() => setTimeout(() => process.exit(0), 500)));\ntest('three', () => {});\n",
    ] {
        sample.write("a.test.js", &format!("{head}{exits}"));
        is_no_pass(&sample.run("node", ""), TestRunProblemKind::Crashed);
    }
    // What tests nothing by node's means is told, and is not in the way.
    sample.write("a.test.js", "require('assert')(true);\n");
    let report = sample.run("node", "");
    assert_eq!((report.passed, report.skipped, report.is_success()), (1, 1, true), "{}", report.to_text());
}

#[test]
fn a_test_of_go_that_prints_no_line_end_passes_or_fails_as_its_package_does() {
    let sample = sample!("go");
    let test = |end: &str| {
        format!(
            "package p\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {{ fmt.Print(\"a\") }}\n\nfunc TestB(t *testing.T) {{\n\tfmt.Print(\"b\")\n\t{end}\n}}\n"
        )
    };
    sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n").write("a_test.go", &test(""));
    let report = sample.run("go", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (2, 0, true), "{}", report.to_text());
    sample.write("a_test.go", &test("t.Skip(\"later\")"));
    let report = sample.run("go", "");
    assert_eq!((report.passed, report.skipped, report.is_success()), (1, 1, true), "{}", report.to_text());
    sample.write("a_test.go", &test("t.Fail()"));
    let report = sample.run("go", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (1, 1, false), "{}", report.to_text());
    assert!(report.error.is_none(), "{}", report.to_text());
}

#[test]
fn ctest_tells_why_a_test_ended_and_counts_what_could_not_run() {
    let sample = sample!("ctest");
    let tests = "cmake_minimum_required(VERSION 3.21)
project(sample NONE)
enable_testing()
add_test(NAME set_up COMMAND sh -c \"exit 1\")
set_tests_properties(set_up PROPERTIES FIXTURES_SETUP ready)
add_test(NAME uses_it COMMAND sh -c true)
set_tests_properties(uses_it PROPERTIES FIXTURES_REQUIRED ready)
add_test(NAME too_slow COMMAND sleep 600)
set_tests_properties(too_slow PROPERTIES TIMEOUT 1)
add_test(NAME dies COMMAND sh -c \"kill -SEGV $$\")
";
    sample.write("CMakeLists.txt", tests);
    let report = sample.run("ctest", "");
    assert_eq!((report.passed, report.failed, report.skipped), (0, 4, 0), "{}", report.to_text());
    let told = |name: &str| {
        let test = report.tests.iter().find(|test| test.name == name).unwrap();
        (test.status, test.error.clone().unwrap_or_default())
    };
    assert_eq!(told("set_up").0, TestStatus::Failed);
    assert_eq!(told("uses_it").0, TestStatus::Errored);
    assert_eq!(told("too_slow"), (TestStatus::TimedOut, "Timeout".to_owned()));
    assert_eq!(told("dies"), (TestStatus::Errored, "Exception: SegFault".to_owned()));
    assert!(report.error.is_none(), "{}", report.to_text());
}

#[test]
fn modules_of_maven_may_lie_in_a_folder_of_any_name() {
    let Some(sample) = SampleProject::of("maven", "mvn") else { return };
    let read = |path: &str| std::fs::read_to_string(sample.path().join(path)).unwrap();
    let (pom, test) = (read("pom.xml"), read("src/test/java/demo/AdderTest.java"));
    let config = sample.path().join("settings.xml");
    assert!(config.exists());
    let (head, _) = pom.split_once("<artifactId>").unwrap();
    let parent = format!(
        "{head}<artifactId>parent</artifactId><version>1</version><packaging>pom</packaging>
        <modules><module>build</module></modules></project>\n"
    );
    sample.write("build/pom.xml", &pom).write("build/src/test/java/demo/AdderTest.java", &test);
    sample.write("build/src/main/java/demo/Adder.java", &read("src/main/java/demo/Adder.java"));
    std::fs::remove_dir_all(sample.path().join("src")).unwrap();
    sample.write("pom.xml", &parent);
    let report = sample.run("maven", "");
    assert!(report.passed > 0 && report.failed > 0, "{}", report.to_text());
}

#[test]
fn a_test_that_removes_the_report_hides_no_failure() {
    let sample = sample!("pytest");
    let test = "import glob, os, sys, tempfile, time\ndef test_a():\n    time.sleep(1)\n    os.unlink(sys.argv[1] if os.path.exists(sys.argv[1]) else next(p for p in open('/proc/self/cmdline').read().split('\\0') if p.endswith('/events')))\ndef test_b():\n    assert False\n";
    sample.write(PYTEST.0, PYTEST.1).write("test_a.py", test);
    let report = sample.run("pytest", "");
    assert_eq!((report.passed, report.failed), (1, 1), "{}", report.to_text());
    assert!(report.error.is_none(), "{}", report.to_text());
}

#[test]
fn a_result_that_a_test_of_cargo_prints_hides_no_failure_of_the_next_binary() {
    let sample = sample!("cargo");
    // A program that a test starts writes past libtest's capture.
    let prints = "#[test]\nfn prints() {\n    let _ = std::process::Command::new(\"echo\").arg(\"test fake::line ... ok\").status();\n    panic!(\"first\");\n}\n";
    let suite = "#[test]\nfn fails() { panic!(\"second\") }\n#[test]\nfn passes() {}\n";
    sample.write("Cargo.toml", CARGO).write("src/lib.rs", "");
    sample.write("tests/a.rs", prints).write("tests/b.rs", suite).write("tests/c.rs", suite);
    let report = sample.run("cargo", "");
    assert!(!report.is_success());
    let failed: Vec<_> = report
        .tests
        .iter()
        .filter(|test| test.status == TestStatus::Failed)
        .map(|test| (test.file.as_deref().unwrap_or_default(), test.name.as_str()))
        .collect();
    let expected = [("tests/a.rs", "prints"), ("tests/b.rs", "fails"), ("tests/c.rs", "fails")];
    assert_eq!(failed, expected, "{}", report.to_text());
    // Whatever was printed is no result that cargo's own summary counts.
    is_no_pass(&report, TestRunProblemKind::Mismatch);
}

#[test]
fn a_target_of_cargo_with_a_harness_of_its_own_is_told() {
    let sample = sample!("cargo");
    let manifest = format!("{CARGO}[[test]]\nname = \"own\"\nharness = false\n");
    sample.write("Cargo.toml", &manifest).write("src/lib.rs", "#[test]\nfn passes() {}\n");
    sample.write("tests/own.rs", "fn main() {}\n");
    let report = sample.run("cargo", "");
    assert!(report.is_success(), "{}", report.to_text());
    assert!(
        report.notes.iter().any(|note| note.starts_with("tests/own.rs reported no tests")),
        "{:?}",
        report.notes
    );
    sample.write("tests/own.rs", "fn main() { std::process::exit(3) }\n");
    is_no_pass(&sample.run("cargo", ""), TestRunProblemKind::RunnerFailed);
}

#[test]
fn packages_of_go_that_do_not_compile_or_panic_are_told_with_paths_from_the_root() {
    let sample = sample!("go");
    let test =
        |body: &str| format!("package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {{ {body} }}\n");
    sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n");
    sample.write("good/a_test.go", &test("")).write("bad/a_test.go", &test("undefined()"));
    let report = sample.run("go", "");
    assert_eq!((report.passed, report.failed), (1, 0), "{}", report.to_text());
    is_no_pass(&report, TestRunProblemKind::CompileError);
    assert!(
        report.error.as_ref().unwrap().message.contains("example.org/sample/bad"),
        "{}",
        report.to_text()
    );
    let places: Vec<_> = report.diagnostics.iter().map(|one| (one.file.as_deref(), one.line)).collect();
    assert_eq!(places, [(Some("bad/a_test.go"), Some(5))], "{}", report.to_text());
    let panics = "package p\n\nimport \"testing\"\n\nfunc dies(m map[string]int) { m[\"a\"] = 1 }\n\nfunc TestB(t *testing.T) {\n\tt.Run(\"sub\", func(t *testing.T) {\n\t\tdies(nil)\n\t})\n}\n";
    sample.write("bad/a_test.go", panics).write("deep/er/a_test.go", &test("t.Error(\"no\")"));
    let report = sample.run("go", "");
    let failed: Vec<_> = report
        .tests
        .iter()
        .filter(|test| test.status.is_failure())
        .map(|test| (test.name.trim_start_matches("example.org/sample/"), test.file.as_deref(), test.line))
        .collect();
    assert!(failed.contains(&("deep/er.TestA", Some("deep/er/a_test.go"), Some(5))), "{}", report.to_text());
    assert!(failed.contains(&("bad.TestB/sub", Some("bad/a_test.go"), Some(5))), "{}", report.to_text());
}

#[test]
fn parents_of_subtests_of_go_are_tests_themselves() {
    let sample = sample!("go");
    let test = "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tt.Run(\"one\", func(t *testing.T) {})\n}\n\nfunc TestB(t *testing.T) {\n\tt.Run(\"one\", func(t *testing.T) { t.Error(\"no\") })\n}\n";
    sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n").write("a_test.go", test);
    let report = sample.run("go", "");
    assert_eq!((report.passed, report.failed, report.skipped), (2, 2, 0), "{}", report.to_text());
    let parent = report.tests.iter().find(|test| test.name == "example.org/sample.TestB").unwrap();
    assert_eq!(parent.error.as_deref(), Some("a subtest of it failed"), "{}", report.to_text());
}
