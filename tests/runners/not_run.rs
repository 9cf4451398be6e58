//! Tests that a project has and that its runner passes over without a word.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

/// The run is a success, and tells that these were not run, for a reason with these words.
#[track_caller]
fn tells(report: &TestReport, what: &[&str], why: &str) {
    let text = report.to_text();
    let entry = report.not_run.iter().find(|entry| entry.why.contains(why));
    let entry = entry.unwrap_or_else(|| panic!("{why}\n{text}"));
    let named: Vec<_> = entry.what.iter().map(String::as_str).collect();
    assert_eq!((named.as_slice(), entry.total), (what, what.len() as u64), "{text}");
    assert!(text.contains(&format!("\nnot run: {}: ", what.join(", "))), "{text}");
}

#[track_caller]
fn passes(sample: &SampleProject, passed: u64) -> TestReport {
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!((report.success, report.passed), (Some(true), passed), "{}", report.to_text());
    report
}

#[test]
fn what_pytest_only_warns_of_is_told() {
    let sample = sample!("pytest");
    sample.write("pytest.ini", "[pytest]\n").write(
        "test_a.py",
        "import threading\nclass TestInit:\n    def __init__(self): pass\n    def test_never(self): assert 0\ndef test_thread():\n    thread = threading.Thread(target=lambda: 1 / 0)\n    thread.start()\n    thread.join()\ndef test_returns(): return 1 == 2\n",
    );
    let report = passes(&sample, 2);
    tells(&report, &["test_a.py::TestInit"], "pytest does not collect it");
    for words in ["in test_a.py::test_thread", "ZeroDivisionError", "test_a.py::test_returns returns a value"]
    {
        assert!(report.notes.iter().any(|note| note.contains(words)), "{words}\n{}", report.to_text());
    }
}

/// The decorator is in another file, which pytest names as that of the test.
#[test]
fn a_file_whose_tests_a_decorator_of_another_file_wraps_has_run() {
    let sample = sample!("pytest");
    let helpers = "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def w(*a, **k): return f(*a, **k)\n    del w.__wrapped__\n    return w\n";
    sample.write("pytest.ini", "[pytest]\n").write("helpers.py", helpers);
    sample.write("test_a.py", "from helpers import deco\n@deco\ndef test_x(): pass\n");
    let report = passes(&sample, 1);
    assert_eq!(report.not_run.len(), 0, "{}", report.to_text());
    assert_eq!((report.tests[0].file.as_deref(), report.tests[0].line), (Some("test_a.py"), None));
}

#[test]
fn tests_that_a_conftest_removes_without_a_message_are_told() {
    let sample = sample!("pytest");
    let conftest = "import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    items[:] = [i for i in items if 'bad' not in i.name]
    config.hook.pytest_deselected(items=[i for i in items if 'other' in i.name])
    items[:] = [i for i in items if 'other' not in i.name]
";
    sample
        .write(
            "pytest.ini",
            "[pytest]
",
        )
        .write("conftest.py", conftest);
    sample.write(
        "test_a.py",
        "def test_good(): pass
def test_bad(): assert 0
def test_other(): assert 0
",
    );
    let report = passes(&sample, 1);
    tells(&report, &["test_a.py::test_bad"], "removed it without a message");
    assert_eq!(report.deselected, 1, "{}", report.to_text());
}

#[test]
fn a_test_of_pytest_whose_subtests_are_all_skipped_passes_as_in_its_own_summary() {
    let sample = sample!("pytest-subtests");
    sample.write("pytest.ini", "[pytest]\n").write(
        "test_a.py",
        "import pytest\ndef test_a(subtests):\n    for number in range(3):\n        with subtests.test(number=number):\n            pytest.skip('no database')\n",
    );
    let report = passes(&sample, 1);
    let what =
        ["(number=0)", "(number=1)", "(number=2)"].map(|part| format!("test_a.py::test_a: subtest {part}"));
    tells(&report, &what.each_ref().map(String::as_str), "the subtest was skipped: Skipped: no database");
}

#[test]
fn files_and_modules_that_go_leaves_out_are_told() {
    let sample = sample!("go");
    let test =
        |name: &str| format!("package a\n\nimport \"testing\"\n\nfunc Test{name}(t *testing.T) {{}}\n");
    let fails = test("B").replace("{}", "{ t.Fail() }");
    sample
        .write("go.mod", "module example.org/a\n\ngo 1.19\n")
        .write("a_test.go", &test("A"))
        .write("b_test.go", &format!("//go:build integration\n\n{fails}"))
        .write("c_windows_test.go", &fails)
        .write("tools/go.mod", "module example.org/tools\n\ngo 1.19\n")
        .write("tools/d_test.go", &fails)
        .write("testdata/e_test.go", &fails)
        .write("helper_test.go", "package a\n\nconst x = 1\n");
    let report = passes(&sample, 1);
    tells(&report, &["b_test.go"], "`//go:build integration`");
    tells(&report, &["c_windows_test.go"], "its name is that of another system");
    tells(&report, &["tools/d_test.go"], "`tools` is a module of its own");
    assert_eq!(report.not_run.len(), 3, "{}", report.to_text());
    // With the tag, the file is a part of the run.
    let report = sample.try_run(&RunTests::new().args(["-tags", "integration"])).unwrap();
    assert_eq!((report.failed, report.not_run.len()), (1, 0), "{}", report.to_text());
    // A module of the same workspace is run as well, in the versions of Go that take it into `./...`.
    let sample = sample!("go");
    sample.write("go.mod", "module example.org/a\n\ngo 1.19\n").write("a_test.go", &test("A"));
    assert!(passes(&sample, 1).not_run.is_empty());
}

#[test]
fn flags_of_a_setting_that_select_tests_of_go_are_told() {
    let sample = sample!("go");
    let tests = "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Fail() }\n\nfunc TestB(t *testing.T) {}\n";
    sample.write("go.mod", "module example.org/a\n\ngo 1.19\n").write("a_test.go", tests);
    let report = sample.try_run(&RunTests::new().env("GOFLAGS", "-mod=mod -run=TestB")).unwrap();
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    assert!(report.notes.iter().any(|note| note.contains("-run=TestB")), "{}", report.to_text());
    let report = sample.try_run(&RunTests::new().env("GOFLAGS", "-mod=mod -run=Test")).unwrap();
    assert_eq!((report.success, report.failed), (Some(false), 1), "{}", report.to_text());
    let report = sample.try_run(&RunTests::new().env("GOFLAGS", "-mod=mod")).unwrap();
    assert!(!report.notes.iter().any(|note| note.contains("GOFLAGS")), "{}", report.to_text());
}

#[test]
fn a_package_of_go_whose_main_runs_no_test_is_told() {
    let sample = sample!("go");
    let test = "package b\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n\nfunc TestC(t *testing.T) { t.Fail() }\n";
    let passing = "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n";
    sample
        .write("go.mod", "module example.org/a\n\ngo 1.19\n")
        .write("a/a_test.go", passing)
        .write("b/b_test.go", test)
        .write("c/c.go", "package c\n")
        .write("d/d_test.go", "package d\n");
    let report = passes(&sample, 1);
    tells(&report, &["example.org/a/b"], "does not call `m.Run`");
    assert_eq!(report.not_run.len(), 1, "{}", report.to_text());
}

#[test]
fn packages_and_targets_that_cargo_leaves_out_are_told() {
    let sample = sample!("cargo");
    let fails = "#[test]\nfn fails() { panic!() }\n";
    let package = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{more}")
    };
    let features = "autotests = false\n[features]\ndefault = [\"on\"]\non = []\nslow = []\n[workspace]\nmembers = [\"b\", \"c\", \"d\"]\n";
    let tests = "[[test]]\nname = \"slow\"\npath = \"tests/slow.rs\"\nrequired-features = [\"slow\"]\n[[test]]\nname = \"on\"\npath = \"tests/on.rs\"\nrequired-features = [\"on\"]\n[[bin]]\nname = \"tool\"\npath = \"src/tool.rs\"\ntest = false\n";
    sample
        .write("Cargo.toml", &(package("sample", features) + tests))
        .write("src/lib.rs", "#[test]\nfn passes() {}\n")
        .write("src/tool.rs", &format!("fn main() {{}}\n{fails}"))
        .write("tests/slow.rs", fails)
        .write("tests/on.rs", "mod part;\n#[test]\nfn passes() {}\n")
        .write("tests/part.rs", "#[test]\nfn passes() {}\n")
        .write("tests/gone.rs", fails)
        .write("tests/deep/main.rs", fails)
        .write("tests/common/mod.rs", "pub fn help() {}\n")
        .write("b/Cargo.toml", &package("b", ""))
        .write("b/src/lib.rs", fails)
        .write("c/Cargo.toml", &package("c", ""))
        .write("c/src/lib.rs", "")
        .write("c/tests/c.rs", fails)
        .write("d/Cargo.toml", &package("d", ""))
        .write("d/src/lib.rs", "");
    let report = passes(&sample, 3);
    tells(&report, &["b", "c"], "`--workspace`");
    tells(&report, &["tests/slow.rs"], "`required-features` are off: `slow`");
    tells(&report, &["tests/deep/main.rs", "tests/gone.rs"], "`autotests = false`");
    tells(&report, &["src/tool.rs (tool)"], "`test = false`");
    assert_eq!(report.not_run.len(), 4, "{}", report.to_text());
    // In the folder of a package, that package is meant.
    let report = sample.try_run(&RunTests::new().project_path("d")).unwrap();
    assert!(report.not_run.is_empty(), "{}", report.to_text());
    // A virtual workspace runs its default members.
    let members = "members = [\"b\", \"c\", \"d\"]\ndefault-members = [\"b\", \"d\"]\n";
    std::fs::write(sample.path().join("Cargo.toml"), format!("[workspace]\nresolver = \"2\"\n{members}"))
        .unwrap();
    sample.write("b/src/lib.rs", "#[test]\nfn passes() {}\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    tells(&report, &["c"], "`--workspace`");
}

#[test]
fn tests_of_examples_of_documentation_and_of_features_that_are_off_are_told() {
    let sample = sample!("cargo");
    let fails = "#[test] fn fails() { panic!() }\n";
    // As it is: `write` adds a `[lib]` of its own.
    let manifest = "[package]\nname = \"features-off\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[lib]\nname = \"x\"\ntest = false\ndoctest = false\n[features]\nslow = []\n";
    std::fs::write(sample.path().join("Cargo.toml"), manifest).unwrap();
    sample
        .write("src/lib.rs", &format!("/// ```\n/// panic!()\n/// ```\npub fn f() {{}}\n{fails}"))
        .write("src/bin/b.rs", &format!("fn main() {{}}\n#[cfg(feature = \"slow\")] {fails}"))
        .write("examples/e.rs", &format!("fn main() {{}}\n{fails}"))
        .write("examples/plain.rs", "fn main() {}\n")
        .write("benches/b.rs", fails)
        .write("tests/t.rs", "#[test]\nfn ok() {}\n");
    let report = passes(&sample, 1);
    tells(&report, &["examples/e.rs (e)"], "`--examples`");
    tells(&report, &["benches/b.rs (b)"], "`--benches`");
    tells(&report, &["src/lib.rs (x)"], "`test = false`");
    tells(&report, &["src/lib.rs"], "`doctest = false`");
    tells(&report, &["src/bin/b.rs"], "features that are off: `slow`");
    assert_eq!(report.not_run.len(), 5, "{}", report.to_text());
}

#[test]
fn printed_lines_of_tests_of_go_that_there_are_not_are_no_tests() {
    let sample = sample!("go");
    sample.write("go.mod", "module example.org/sample\n\ngo 1.18\n").write(
        "a_test.go",
        "package a\nimport (\n\"fmt\"\n\"testing\"\n)\nfunc TestA(t *testing.T) { fmt.Println(\"\\n--- PASS: TestForged (0.00s)\\n--- FAIL: TestZ (0.00s)\") }\n",
    );
    let report = sample.run("", "");
    assert_eq!((report.success, report.passed, report.failed), (Some(true), 1, 0), "{}", report.to_text());
    sample.write("Makefile", "test:\n\tgo test -v ./...\n");
    let report = sample.try_run(&RunTests::new().runner("make")).unwrap();
    assert_eq!((report.success, report.passed, report.failed), (Some(true), 1, 0), "{}", report.to_text());
}

#[test]
fn phpunit_beside_another_command_names_no_file_that_ran() {
    let sample = sample!("phpunit");
    let test = "<?php\nuse PHPUnit\\Framework\\TestCase;\nfinal class ATest extends TestCase { public function testA(): void { $this->assertTrue(true); } }\n";
    sample
        .write("composer.json", r#"{"scripts": {"test": ["phpunit tests/unit", "@php check.php || true"]}}"#)
        .write("check.php", "<?php exit(1);\n")
        .write("tests/unit/ATest.php", test);
    let report = passes(&sample, 1);
    assert!(report.not_run.is_empty(), "{}", report.to_text());
}

#[test]
fn a_harness_of_its_own_is_told() {
    let sample = sample!("cargo");
    sample
        .write("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[[test]]\nname = \"forged\"\nharness = false\n")
        .write("src/lib.rs", "#[test]\nfn passes() {}\n")
        .write("tests/forged.rs", "fn main() { println!(\"\\nrunning 1 test\\ntest x ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n\"); }\n");
    let report = sample.try_run(&RunTests::new()).unwrap();
    let has_note = |note: &str| report.notes.iter().any(|own| own.starts_with(note));
    assert!(has_note("with a harness of its own (`harness = false`): `forged`"), "{}", report.to_text());
    // What only the program itself says is no success.
    assert_eq!((report.success, report.passed, report.failed), (None, 2, 0), "{}", report.to_text());
    assert!(has_note("not verified: `forged` printed results as libtest does"), "{}", report.to_text());
    assert!(report.to_text().starts_with("NOT VERIFIED"), "{}", report.to_text());

    // A library that runs tests as libtest does has run what it prints.
    let mimic = "pub fn run() { println!(\"\\nrunning 1 test\\ntest x ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\\n\"); }\n";
    sample
        .write("Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[dev-dependencies]\nlibtest-mimic = { path = \"mimic\" }\n[[test]]\nname = \"listed\"\nharness = false\n")
        .write("mimic/Cargo.toml", "[package]\nname = \"libtest-mimic\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
        .write("mimic/src/lib.rs", mimic)
        .write("tests/listed.rs", "fn main() { libtest_mimic::run() }\n");
    std::fs::remove_file(sample.path().join("tests/forged.rs")).unwrap();
    passes(&sample, 2);
}

#[test]
fn folders_that_bats_and_unittest_do_not_enter_are_told() {
    let sample = sample!("bats");
    sample
        .write("test/a.bats", "@test \"a\" { true; }\n")
        .write("test/sub/b.bats", "@test \"b\" { false; }\n")
        .write("test/bats/test/c.bats", "@test \"of bats itself\" { false; }\n");
    tells(&passes(&sample, 1), &["test/sub/b.bats"], "only with `--recursive`");
    let report = sample.try_run(&RunTests::new().args(["--recursive"])).unwrap();
    assert_eq!((report.failed, report.not_run.len()), (2, 0), "{}", report.to_text());

    let sample = sample!("python3");
    let test = |name: &str, body: &str| {
        format!("import unittest\nclass T(unittest.TestCase):\n    def test_{name}(self): {body}\n")
    };
    sample
        .write("setup.py", "")
        .write("test_a.py", &test("a", "pass"))
        .write("tests/unit/test_b.py", &test("b", "self.fail()"))
        .write("pkg/__init__.py", "")
        .write("pkg/test_c.py", &test("c", "pass"))
        .write("pkg/inner/test_d.py", &test("d", "self.fail()"))
        .write("scripts/test_data.py", "rows = 1\n");
    let report = passes(&sample, 2);
    tells(&report, &["tests/unit/test_b.py"], "`__init__.py`: `tests`;");
    tells(&report, &["pkg/inner/test_d.py"], "`__init__.py`: `pkg/inner`;");
    assert_eq!(report.not_run.len(), 2, "{}", report.to_text());
    let report = sample.run("", "tests/unit");
    assert_eq!((report.failed, report.not_run.len()), (1, 0), "{}", report.to_text());
}

#[test]
fn only_is_told_for_tape() {
    let sample = sample!("tape");
    sample.write("package.json", "{\"scripts\":{\"test\":\"tape t.js\"}}");
    sample.write("t.js", "const test = require('tape');\ntest.only('one', (t) => { t.pass(); t.end(); });\ntest('two', (t) => { t.fail(); t.end(); });\n");
    let report = passes(&sample, 1);
    let note = "only one test of tape ran because of `.only` (t.js:2); tape does not tell of the others";
    assert!(report.notes.iter().any(|own| own == note), "{}", report.to_text());
}

#[test]
fn lines_of_tap_that_a_test_of_bats_prints_are_no_tests() {
    let sample = sample!("bats");
    sample.write(
        "test/a.bats",
        "@test \"a\" { true; }\n@test \"b\" { echo \"ok 9 forged\" >&3; echo \"ok 2 b in 3ms\" >&3; false; }\n@test \"c\" { echo \"ok 2 b in 3ms\" >&3; skip; }\n",
    );
    let report = sample.run("", "");
    assert_eq!((report.passed, report.failed, report.skipped), (1, 1, 1), "{}", report.to_text());
    assert_eq!(report.success, Some(false), "{}", report.to_text());
}
