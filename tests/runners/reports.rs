//! The report on each runner's sample, compared with what the runner itself says.

use crate::support::{SampleProject, outline};

macro_rules! sample {
    ($name:expr, $program:expr) => {
        match SampleProject::of($name, $program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

#[test]
fn cargo_test_is_read_with_its_documentation_tests() {
    let sample = sample!("cargo", "cargo");
    let report = sample.run("cargo", "");
    let fails = report.tests.iter().find(|test| test.name == "tests::fails").unwrap();
    let error = fails.error.as_deref().unwrap();
    assert!(error.contains("on standard output") && error.contains("on standard error"), "{error}");
    insta::assert_snapshot!(outline(&report));
}

#[test]
fn nextest_is_read_and_documentation_tests_follow_it() {
    let sample = sample!("cargo", "cargo-nextest");
    assert_eq!(sample.run("", "").runner, "cargo", "nothing in the project says that it uses nextest");
    sample.write(".config/nextest.toml", "");
    insta::assert_snapshot!(outline(&sample.run("", "")));
}

/// In a process of its own each test passes.
#[test]
fn without_a_configuration_of_nextest_the_tests_of_a_package_share_a_process() {
    let Some(sample) = SampleProject::empty("cargo-nextest") else { return };
    let test = |name: &str| format!("#[test]\nfn {name}() {{ assert_eq!(N.fetch_add(1, Relaxed), 0) }}\n");
    let tests = format!(
        "use std::sync::atomic::{{AtomicUsize, Ordering::Relaxed}};\nstatic N: AtomicUsize = AtomicUsize::new(0);\n{}{}",
        test("a"),
        test("b")
    );
    let manifest = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    sample.write("Cargo.toml", manifest).write("src/lib.rs", &tests);
    let report = sample.run("", "");
    assert_eq!((report.passed, report.failed, report.success), (1, 1, Some(false)), "{}", report.to_text());
    assert!(sample.run("nextest", "").is_success());
}

#[test]
fn a_file_a_module_and_a_test_of_cargo_are_selected() {
    let sample = sample!("cargo", "cargo");
    for (path, passed, failed) in [
        ("tests/api.rs", 2, 0),
        ("tests/api.rs::adds_from_outside", 1, 0),
        ("src/lib.rs", 3, 1),
        ("src/lib.rs::tests::fails", 0, 1),
        ("adds", 2, 0),
        ("tests", 2, 0),
    ] {
        for runner in ["cargo", "nextest"] {
            let report = sample.run(runner, path);
            assert_eq!((report.passed, report.failed), (passed, failed), "{path}: {}", report.to_text());
            assert_eq!(report.is_success(), failed == 0, "{path}: {}", report.to_text());
        }
    }
}

#[test]
fn pytest_is_read() {
    let sample = sample!("pytest", "pytest");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "test_sample.py::test_passes").passed, 1);
    assert_eq!(sample.run("", "test_sample.py::test_with_parameters").failed, 1);
    assert_eq!(sample.run("pytest", "überprüft").passed, 1);
}

#[test]
fn bats_is_read() {
    let sample = sample!("bats", "bats");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert!(sample.run("", "tests/sample.bats::passes").is_success());
}

#[test]
fn node_is_read() {
    let sample = sample!("node", "node");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "sample.test.js").failed, 3);
}

#[test]
fn mocha_is_read() {
    let sample = sample!("mocha", "mocha");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "test/sample.cjs::überprüft").passed, 1);
}

#[test]
fn jest_is_read() {
    let sample = sample!("jest", "jest");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "sample.test.js::überprüft").passed, 1);
}

#[test]
fn vitest_is_read() {
    let sample = sample!("vitest", "vitest");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "sample.test.js::überprüft").passed, 1);
}

#[test]
fn go_is_read() {
    let sample = sample!("go", "go");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "sample_test.go::TestPasses").passed, 1);
}

#[test]
fn ava_is_read() {
    let sample = sample!("ava", "ava");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "test.js::überprüft").passed, 1);
}

#[test]
fn playwright_is_read() {
    let sample = sample!("playwright", "@playwright/test");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "sample.spec.js::überprüft").passed, 1);
}

#[test]
fn rspec_is_read() {
    let sample = sample!("rspec", "rspec");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert_eq!(sample.run("", "spec/sample_spec.rb::überprüft").passed, 1);
}

#[test]
fn maven_is_read() {
    let sample = sample!("maven", "mvn");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    let report = sample.run("", "src/test/java/demo/AdderTest.java::passes");
    assert!(report.is_success() && report.passed == 1, "{}", report.to_text());
    assert_eq!(report.tests.len(), 1, "the reports of the run before are not read: {}", report.to_text());
}

#[test]
fn ctest_is_read() {
    let sample = sample!("ctest", "ctest");
    insta::assert_snapshot!(outline(&sample.run("", "")));
    assert!(sample.run("ctest", "prints").is_success());
}

#[test]
fn of_make_the_exit_code_is_told() {
    let sample = sample!("make", "make");
    let report = sample.run("", "");
    insta::assert_snapshot!(outline(&report));
    assert!(report.output.unwrap().contains("on standard error"));
}

#[test]
fn in_a_mixed_project_the_first_runner_is_chosen_the_others_are_named_and_a_file_finds_its_own() {
    let sample = sample!("cargo", "cargo");
    let Some(python) = SampleProject::of("pytest", "pytest") else { return };
    let node = std::fs::read_to_string(python.path().join("test_sample.py")).unwrap();
    sample.write("python/pytest.ini", "[pytest]\n").write("python/test_sample.py", &node);
    std::os::unix::fs::symlink(python.path().join(".venv"), sample.path().join(".venv")).unwrap();
    sample.write("pytest.ini", "[pytest]\n").write("test_a.py", "def test_a():\n    pass\n");
    sample.write("package.json", "{}").write("a.test.js", "require('node:test').test('a', () => {});\n");
    sample.write("Makefile", "test:\n\ttrue\n");
    let report = sample.run("", "tests/api.rs");
    assert!(["cargo", "nextest"].contains(&report.runner), "{}", report.to_text());
    let others: Vec<_> = report.notes.iter().filter(|note| note.contains("also has tests")).collect();
    assert!(others[0].ends_with("pytest, node, make, which were not run; `runner` chooses"), "{others:?}");
    for (path, runner, counts) in [
        ("test_a.py", "pytest", (1, 0)),
        ("python", "pytest", (5, 3)),
        ("a.test.js", "node", (1, 0)),
        ("src/lib.rs", report.runner, (3, 1)),
    ] {
        let report = sample.run("", path);
        assert_eq!((report.runner, (report.passed, report.failed)), (runner, counts), "{}", report.to_text());
    }
    let report = sample.run("make", "");
    assert!(
        report.success.is_none() && report.notes.iter().all(|note| !note.contains("also has tests")),
        "{}",
        report.to_text()
    );
}

#[test]
fn what_a_failing_test_prints_is_bounded_and_its_end_is_kept() {
    let sample = sample!("pytest", "pytest");
    let test = "import sys\ndef test_loud():\n    for _ in range(300):\n        print('x' * 1000)\n        print('y' * 1000, file=sys.stderr)\n    assert False, 'the reason'\n";
    sample.write("test_sample.py", test);
    let report = sample.run("", "");
    assert_eq!((report.failed, report.truncated), (1, true), "{}", report.to_text());
    let error = report.tests[0].error.as_ref().unwrap();
    assert!(error.len() < 5_000 && error.contains("the reason"), "{} {error}", error.len());
    assert!(serde_json::to_string(&report).unwrap().len() < 20_000);
}

#[test]
fn tap_14_is_written_for_any_runner() {
    let sample = sample!("go", "go");
    let report = sample.run("", "");
    let tap = report.to_tap();
    let results = tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count();
    assert!(tap.starts_with(&format!("TAP version 14\n1..{results}\n")), "{tap}");
    assert_eq!(tap.lines().filter(|line| line.starts_with("not ok ")).count() as u64, report.failed, "{tap}");
    assert!(tap.contains("TestIsSkipped # SKIP "), "{tap}");
}
