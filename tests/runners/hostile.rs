//! Projects that make a runner say what is not so, or make it be read so.

use crate::support::Sample;
use core_tools::testing::{ProblemKind, RunTests, Status, TestError, TestReport};

macro_rules! sample {
    ($program:expr) => {
        match Sample::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

const CARGO: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

#[track_caller]
fn is_no_pass(report: &TestReport, expected: ProblemKind) {
    let kind = report.error.as_ref().map(|error| error.kind);
    assert_eq!((kind, report.success), (Some(expected), false), "{}", report.to_text());
}

/// Names of the tests that ran.
fn ran(report: &TestReport) -> Vec<&str> {
    let mut names: Vec<_> = report
        .tests
        .iter()
        .filter(|test| test.status != Status::Skipped)
        .map(|test| test.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

fn asked(sample: &Sample, runner: &str, path: &str) -> Result<TestReport, TestError> {
    let request =
        RunTests { test_path: Some(path.to_owned()), runner: Some(runner.to_owned()), ..RunTests::default() };
    sample.try_run(&request)
}

#[test]
fn a_failing_test_that_says_what_cargo_says_of_a_missing_library_still_fails() {
    let sample = sample!("cargo-nextest");
    let test = "#[test]\nfn a() {\n    println!(\"error: no library targets found in package `sample`\");\n    eprintln!(\"error: no library targets found\");\n    panic!(\"no library targets found\")\n}\n#[test]\nfn b() {}\n";
    sample.write("Cargo.toml", CARGO).write("src/lib.rs", test);
    let report = sample.run("nextest", "");
    assert_eq!((report.passed, report.failed, report.success), (1, 1, false), "{}", report.to_text());
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
        assert!(report.success, "{path}: {}", report.to_text());
        assert_eq!(ran(&report), tests, "{path}: {}", report.to_text());
    }
    for path in ["Cargo.toml", "other/none.txt"] {
        let error = asked(&sample, "cargo", path).unwrap_err();
        assert!(matches!(error, TestError::CannotSelect { .. }), "{path}: {error}");
    }
}

#[test]
fn names_of_javascript_tests_are_literal_and_select_as_they_stand_in_reports() {
    for (program, runner, head) in [
        ("jest", "jest", ""),
        ("vitest", "vitest", "import { describe, it } from 'vitest';\n"),
        ("mocha", "mocha", ""),
        ("node", "node", "const { describe, it } = require('node:test');\n"),
        (
            "@playwright/test",
            "playwright",
            "const { test: it } = require('@playwright/test');\nconst { describe } = it;\n",
        ),
    ] {
        let Some(sample) = Sample::empty(program) else { continue };
        let package = format!("{{\"devDependencies\":{{\"{program}\":\"*\"}}}}");
        let file = match runner {
            "mocha" => "test/a.js",
            "playwright" => "a.spec.js",
            _ => "a.test.js",
        };
        let tests = "describe('suite', () => {\n  it('adds 1', () => {});\n  it('adds [2]', () => {});\n  it('/3/', () => {});\n});\nit('a > b', () => {});\n";
        sample.write("package.json", &package).write(file, &format!("{head}{tests}"));
        for name in ["adds (1)", "adds [13]", "/adds 1/"] {
            is_no_pass(&sample.run(runner, &format!("{file}::{name}")), ProblemKind::NoTests);
        }
        for name in ["suite > adds [2]", "a > b"] {
            let report = sample.run(runner, &format!("{file}::{name}"));
            assert!(report.success, "{runner} {name}: {}", report.to_text());
            assert_eq!(ran(&report), [name], "{runner}: {}", report.to_text());
        }
        assert_eq!(sample.run(runner, "suite > adds 1").passed, 1, "{runner}");
    }
}

#[test]
fn names_of_go_bats_ctest_and_nextest_are_literal_and_select_as_they_stand_in_reports() {
    if let Some(sample) = Sample::empty("go") {
        let test = "package p\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) {\n\tt.Run(\"a (b)\", func(t *testing.T) {})\n\tt.Run(\"a b\", func(t *testing.T) {})\n}\n\nfunc TestSubs(t *testing.T) {}\n";
        sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n").write("p/a_test.go", test);
        for name in ["TestSub/a_(b)", "p/a_test.go::TestSub/a_(b)", "example.org/sample/p.TestSub/a_(b)"] {
            let report = sample.run("go", name);
            assert_eq!(ran(&report), ["example.org/sample/p.TestSub/a_(b)"], "{}", report.to_text());
            assert!(report.success, "{}", report.to_text());
        }
        assert_eq!(
            ran(&sample.run("go", "example.org/sample/p.TestSubs")),
            ["example.org/sample/p.TestSubs"]
        );
        assert_eq!(sample.run("go", "TestSub").passed, 3);
        for name in ["TestSub/a_.b.", "TestSub.", "TestSu|TestX", "TestSub/(a_b)"] {
            is_no_pass(&sample.run("go", name), ProblemKind::NoTests);
        }
    }
    if let Some(sample) = Sample::empty("bats") {
        sample.write("tests/a.bats", "@test \"adds (1)\" {\n  true\n}\n@test \"adds 2\" {\n  true\n}\n");
        assert_eq!(ran(&sample.run("bats", "adds (1)")), ["adds (1)"]);
        is_no_pass(&sample.run("bats", "adds (2)"), ProblemKind::NoTests);
    }
    if let Some(sample) = Sample::empty("ctest") {
        let head = "cmake_minimum_required(VERSION 3.21)\nproject(sample NONE)\nenable_testing()\n";
        let add = |name: &str| format!("add_test(NAME \"{name}\" COMMAND ${{CMAKE_COMMAND}} -E true)\n");
        sample.write("CMakeLists.txt", &format!("{head}{}{}", add("a+b"), add("aab")));
        assert_eq!(ran(&sample.run("ctest", "a+b")), ["a+b"]);
        is_no_pass(&sample.run("ctest", "a.b.*"), ProblemKind::NoTests);
        sample.write("tests/a.c", "");
        for path in ["tests", "tests/a.c"] {
            let error = asked(&sample, "ctest", path).unwrap_err();
            assert!(matches!(error, TestError::CannotSelect { .. }), "{path}: {error}");
        }
    }
    if let Some(sample) = Sample::of("cargo", "cargo-nextest") {
        for name in ["tests::adds", "tests::überprüft_名前", "nested::prints_what_looks_like_a_result"] {
            let all = sample.run("nextest", name);
            let full = ran(&all)[0];
            let report = sample.run("nextest", full);
            assert_eq!((ran(&report), report.success), (vec![full], true), "{}", report.to_text());
        }
        let report = sample.run("nextest", "src/lib.rs - add (line 5)");
        assert_eq!((ran(&report), report.success), (vec!["src/lib.rs - add (line 5)"], true));
    }
}

#[test]
fn make_that_has_nothing_to_do_is_no_pass_and_neither_make_nor_npm_selects() {
    let sample = sample!("make");
    sample.write("Makefile", "test:\n").write("test/a.sh", "");
    is_no_pass(&sample.run("make", ""), ProblemKind::NoTests);
    sample.write("Makefile", "test: all\nall:\n");
    is_no_pass(&sample.run("make", ""), ProblemKind::NoTests);
    sample.write("Makefile", ".PHONY: test\ntest:\n\t@true\n");
    assert!(sample.run("make", "").success);
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
    assert_eq!(told, [("slow", Status::TimedOut), ("flaky", Status::Passed)], "{}", report.to_text());
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
