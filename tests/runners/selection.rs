//! `filter`, `args` and `failed_only`: a part of the tests, by the runner's own options.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestError, TestReport, TestRunProblemKind, TestStatus};
use integration_tests::{Era, Wire};
use serde_json::json;
use std::collections::BTreeSet;

fn failures(report: &TestReport) -> BTreeSet<String> {
    let failures = report.tests.iter().filter(|test| test.status.is_failure());
    failures.map(|test| test.name.clone()).collect()
}

/// Runs all tests of a sample, then a part of them by a pattern, and then those again that failed at first.
#[track_caller]
fn check(project: &str, program: &str, runner: &str, pattern: &str, selected: (u64, u64)) {
    let Some(sample) = SampleProject::of(project, program) else { return };
    check_failed_only(&sample, runner);
    let part = sample.try_run(&RunTests::new().runner(runner).filter(pattern)).unwrap();
    assert_eq!((part.passed, part.failed), selected, "{runner}: {}", part.to_text());
}

/// Runs all tests of a sample, and then those again that failed at first: the same fail, and fewer run.
#[track_caller]
fn check_failed_only(sample: &SampleProject, runner: &str) {
    let all = sample.run(runner, "");
    let again = sample.try_run(&RunTests::new().failed_tests(all.failed_tests.clone())).unwrap();
    assert!(!again.is_success(), "{}", again.to_text());
    assert_eq!(failures(&again), failures(&all), "{runner}: {}", again.to_text());
    assert!(again.passed < all.passed, "{runner}: {}", again.to_text());
    assert!(again.notes[0].contains("failed in the last run"), "{}", again.to_text());
}

#[test]
fn the_failed_tests_of_mocha_node_and_maven_are_run_alone() {
    for (project, program) in [("mocha", "mocha"), ("node", "node"), ("maven", "mvn")] {
        if let Some(sample) = SampleProject::of(project, program) {
            check_failed_only(&sample, if program == "mvn" { "maven" } else { program });
        }
    }
}

#[test]
fn a_part_of_cargo_s_tests() {
    check("cargo", "cargo", "cargo", "adds", (2, 0));
}

#[test]
fn a_part_of_nextest_s_tests() {
    check("cargo", "cargo-nextest", "nextest", "adds", (2, 0));
}

#[test]
fn a_part_of_pytest_s_tests() {
    check("pytest", "pytest", "pytest", "passes or fails", (1, 1));
}

#[test]
fn a_part_of_jest_s_tests() {
    check("jest", "jest", "jest", "value [0-9]|fails$", (2, 1));
}

#[test]
fn a_part_of_vitest_s_tests() {
    check("vitest", "vitest", "vitest", "value [0-9]|fails$", (2, 1));
}

#[test]
fn a_part_of_playwright_s_tests() {
    check("playwright", "@playwright/test", "playwright", "value [0-9]", (1, 1));
}

#[test]
fn a_part_of_ava_s_tests() {
    check("ava", "ava", "ava", "value*", (1, 1));
}

#[test]
fn a_part_of_go_s_tests() {
    check("go", "go", "go", "^Test(Passes|Fails)$", (1, 1));
}

#[test]
fn a_part_of_the_tests_of_bats() {
    check("bats", "bats", "bats", "^(passes|fails)$", (1, 1));
}

#[test]
fn a_part_of_rspec_s_tests() {
    check("rspec", "rspec", "rspec", "value [12]$", (1, 1));
}

#[test]
fn a_part_of_ctest_s_tests() {
    check("ctest", "ctest", "ctest", "^(passes|fails)$", (1, 1));
}

#[test]
fn a_runner_without_patterns_or_names_says_so_and_runs_nothing() {
    let Some(sample) = SampleProject::of("make", "make") else { return };
    let request = || RunTests::new().runner("make");
    let error = sample.try_run(&request().filter("a")).unwrap_err();
    assert!(matches!(error, TestError::NoPatterns { .. }), "{error}");
    let error = sample.try_run(&request().args(["-n"])).unwrap_err();
    assert!(matches!(error, TestError::NoArguments(_)), "{error}");
    let report = sample.run("make", "");
    let error = sample.try_run(&RunTests::new().failed_tests(report.failed_tests)).unwrap_err();
    assert!(matches!(error, TestError::CannotRerun(_)), "{error}");
}

#[test]
fn two_selections_by_name_are_refused() {
    let Some(sample) = SampleProject::of("pytest", "pytest") else { return };
    let error = sample.try_run(&RunTests::new().test_path("test_passes").filter("a")).unwrap_err();
    assert!(matches!(error, TestError::TwoSelections("test_path", "filter")), "{error}");
}

#[test]
fn arguments_reach_the_runner() {
    if let Some(sample) = SampleProject::of("cargo", "cargo") {
        for (arguments, counts) in
            [(&["--test", "api"][..], (2, 0)), (&["--lib", "--", "--skip", "fails"], (3, 0))]
        {
            let request = RunTests::new().runner("cargo").args(arguments.iter().copied());
            let report = sample.try_run(&request).unwrap();
            assert_eq!((report.passed, report.failed), counts, "{}", report.to_text());
            assert!(report.command.ends_with(&arguments.join(" ")), "{}", report.command);
        }
    }
    if let Some(sample) = SampleProject::of("pytest", "pytest") {
        let report =
            sample.try_run(&RunTests::new().args(["--deselect", "test_sample.py::test_fails"])).unwrap();
        assert_eq!((report.deselected, report.failed), (1, 2), "{}", report.to_text());
    }
    if let Some(sample) = SampleProject::of("mocha", "mocha") {
        let report = sample.try_run(&RunTests::new().args(["--bail"])).unwrap();
        assert_eq!(report.failed, 1, "{}", report.to_text());
    }
}

#[test]
fn each_of_the_three_tools_takes_every_parameter_and_knows_what_failed_before() {
    let Some(sample) = SampleProject::of("pytest", "pytest") else { return };
    let server = || {
        let mut server = std::process::Command::new(integration_tests::server());
        server.current_dir(sample.path()).env("FILESYSTEM_TOOLS_BASE_PATH", sample.path());
        server
    };
    let mut wire = Wire::connect(server(), Era::Modern);
    let text = wire.failure("run_tests", json!({"failed_only": true}));
    assert!(text.contains("knows no run of this project"), "{text}");
    for tool in ["run_tests", "run_test_suite", "run_test_task"] {
        let part = json!({
            "project_path": ".", "test_path": "test_sample.py", "filter": "fails or passes", "args": ["-v"],
            "runner": "pytest", "timeout_ms": 100_000, "reporter": "json"
        });
        let (report, failed) = wire.outcome(tool, part);
        assert_eq!((&report["passed"], &report["failed"], failed), (&json!(1), &json!(1), true), "{report}");
        // The failure of the last run, whichever tool it was.
        let (report, failed) = wire.outcome(tool, json!({"failed_only": true}));
        assert_eq!((&report["passed"], &report["failed"], failed), (&json!(0), &json!(1), true), "{report}");
        assert_eq!(report["tests"][0]["name"], "test_sample.py::test_fails", "{report}");
        let result = wire.call(tool, json!({"failed_only": true, "reporter": "tap"}));
        assert!(
            result["content"][0]["text"].as_str().unwrap().starts_with("TAP version 14\n1..1\n"),
            "{result}"
        );
    }
    sample.write("test_sample.py", "def test_fails(): pass\n");
    let (report, failed) = wire.outcome("run_tests", json!({"failed_only": true}));
    assert_eq!((&report["passed"], failed), (&json!(1), false), "{report}");
    let text = wire.failure("run_tests", json!({"failed_only": true}));
    assert!(text.contains("no test failed in the last run"), "{text}");
}

#[test]
fn a_failed_doctest_of_pytest_runs_again_with_the_other_failures() {
    let Some(sample) = SampleProject::empty("pytest") else { return };
    sample
        .write("shop/__init__.py", "")
        .write("shop/cart.py", "def total():\n    \"\"\"\n    >>> total()\n    2\n    \"\"\"\n    return 1\n")
        .write("tests/test_a.py", "def test_passes(): pass\ndef test_fails(): assert 'shop.cart.a' == ''\n");
    let names = ["shop/cart.py::shop.cart.total", "tests/test_a.py::test_fails"].map(str::to_owned);
    let check = |all: &TestReport| {
        assert_eq!(failures(all), BTreeSet::from(names.clone()), "{}", all.to_text());
        let again = sample.try_run(&RunTests::new().failed_tests(all.failed_tests.clone())).unwrap();
        assert_eq!(failures(&again), failures(all), "{}", again.to_text());
        assert_eq!((again.passed, again.error.as_ref()), (0, None), "{}", again.to_text());
        assert!(again.command.contains(" --doctest-modules "), "{}", again.command);
    };
    // Options of the caller, and of the project's own command.
    check(&sample.try_run(&RunTests::new().runner("pytest").args(["--doctest-modules"])).unwrap());
    sample.write(
        "tox.ini",
        "[testenv]\ncommands = pytest --doctest-modules {toxinidir}/shop tests {posargs}\n",
    );
    check(&sample.try_run(&RunTests::new().runner("pytest")).unwrap());
}

#[test]
fn a_pattern_that_fits_no_test_is_no_pass() {
    let Some(sample) = SampleProject::of("go", "go") else { return };
    let report = sample.try_run(&RunTests::new().filter("NoSuchTest")).unwrap();
    assert_eq!(
        report.error.as_ref().map(|error| error.kind),
        Some(TestRunProblemKind::NoTests),
        "{}",
        report.to_text()
    );
    assert!(report.tests.iter().all(|test| test.status == TestStatus::Skipped));
}

#[test]
fn a_file_of_vitest_is_that_file_and_none_whose_path_contains_it() {
    let Some(sample) = SampleProject::empty("vitest") else { return };
    let file = |body: &str| format!("import {{ test }} from 'vitest';\ntest('a', () => {{ {body} }});\n");
    let (passes, fails) = (file(""), file("throw new Error('b')"));
    sample.write(
        "package.json",
        r#"{"private": true, "scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "3"}}"#,
    );
    for path in ["a.test.js", "sub/[id].test.js"] {
        sample.write(path, &passes);
    }
    for path in [
        "ba.test.js",
        "sub/a.test.js",
        "a.test.jsx",
        "mysub/[id].test.js",
        "deep/sub/[id].test.js",
        "sub/x[id].test.js",
    ] {
        sample.write(path, &fails);
    }
    for path in ["a.test.js", "./a.test.js", "sub/[id].test.js"] {
        let report = sample.try_run(&RunTests::new().test_path(path)).unwrap();
        assert_eq!(
            (report.success, report.passed, report.failed),
            (Some(true), 1, 0),
            "{}",
            report.to_text()
        );
    }
    let report = sample.try_run(&RunTests::new().test_path("sub")).unwrap();
    assert_eq!(report.passed, 1, "{}", report.to_text());
}
