//! Tests that a project has and that did not run: the runner calls it a success, or says no more than that something failed.

use crate::support::SampleProject;
use core_tools::testing::{RunTests, TestReport, TestStatus};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

/// A package with a script `test`.
fn package(sample: &SampleProject, script: &str) {
    sample.write("package.json", &format!("{{\"name\":\"x\",\"scripts\":{{\"test\":\"{script}\"}}}}"));
}

#[track_caller]
fn has_note(report: &TestReport, note: &str) {
    let text = report.to_text();
    assert!(report.notes.iter().any(|own| own == note) && text.contains(note), "{note}\n{text}");
}

/// Runs a suite of which `.only` leaves one test, which passes, and expects the note.
#[track_caller]
fn one_of_two(sample: &SampleProject, note: &str) {
    let report = sample.run("", "");
    assert!(report.is_success() && report.passed == 1, "{}", report.to_text());
    has_note(&report, note);
}

#[test]
fn only_is_told_for_mocha_also_of_version_3() {
    for program in ["mocha", "mocha 3"] {
        let sample = sample!(program);
        package(&sample, "mocha");
        sample.write(
            "test/a.js",
            "describe('a', () => {\n  it.only('one', () => {});\n  it('two', () => { throw new Error('two'); });\n});\n",
        );
        one_of_two(&sample, "only 1 of 2 tests ran because of `.only`");
        assert_eq!(sample.run("", "").deselected, 1, "{program}");
        // A link out of the project, as that of version 3 is here, is not followed to find a program.
        if program == "mocha" {
            assert_eq!(sample.run("mocha", "").notes.len(), 1, "also where mocha is run directly");
        }
    }
}

#[test]
fn only_is_told_for_jest_and_vitest_with_the_line_and_not_for_skipped_tests() {
    // Where `CI` is set, vitest takes `.only` for a mistake.
    let imports = "import { test, it, describe } from 'vitest';";
    for (program, script, import) in [("jest", "jest", ""), ("vitest", "vitest run --allowOnly", imports)] {
        let sample = sample!(program);
        package(&sample, script);
        let file = |focus: &str| {
            format!(
                "{import}\n// test.only\ntest{focus}('one', () => {{}});\ntest('two', () => {{ throw new Error('two'); }});\n"
            )
        };
        sample.write("a.test.js", &file(".only"));
        one_of_two(&sample, "only 1 of 2 tests ran because of `.only` (a.test.js:3)");
        sample.write(
            "a.test.js",
            &format!(
                "{import}\n// test.only\nconst model = {{ fit() {{}} }};\nmodel.fit('x');\ntest('one', () => {{}});\ntest.skip('two', () => {{}});\n"
            ),
        );
        let report = sample.run("", "");
        assert!(report.is_success() && report.skipped == 1, "{}", report.to_text());
        assert!(!report.to_text().contains("because of"), "{}", report.to_text());
    }
}

#[test]
fn only_is_told_for_node_ava_playwright_and_rspec() {
    let sample = sample!("node");
    package(&sample, "node --test --test-only");
    sample.write(
        "a.test.js",
        "const { test } = require('node:test');\ntest('one', { only: true }, () => {});\ntest('two', () => { throw new Error('two'); });\n",
    );
    let report = sample.run("", "");
    assert!(report.is_success() && report.passed == 1, "{}", report.to_text());
    assert!(report.to_text().contains("`--test-only`"), "{}", report.to_text());
    let sample = sample!("ava");
    package(&sample, "ava");
    sample.write(
        "test.mjs",
        "import test from 'ava';\ntest.only('one', t => t.pass());\ntest('two', t => t.fail());\n",
    );
    one_of_two(&sample, "only 1 of 2 tests ran because of `.only`, `--match` or line numbers");
    let sample = sample!("@playwright/test");
    package(&sample, "playwright test");
    sample.write(
        "a.spec.js",
        "const { test } = require('@playwright/test');\ntest.only('one', () => {});\ntest('two', () => { throw new Error('two'); });\n",
    );
    one_of_two(
        &sample,
        "only 1 tests ran because of `.only` (a.spec.js:2); Playwright does not tell of the others",
    );
    let sample = sample!("rspec");
    sample
        .write(".rspec", "--require spec_helper\n")
        .write("spec/spec_helper.rb", "RSpec.configure { |config| config.filter_run_when_matching :focus }\n")
        .write("spec/a_spec.rb", "describe 'a' do\n  fit('one') {}\n  it('two') { raise 'two' }\nend\n");
    one_of_two(&sample, "only 1 of 2 examples ran because of `focus`");
}

#[test]
fn tests_that_do_not_run_after_the_first_failure_are_told() {
    let sample = sample!("mocha");
    package(&sample, "mocha --bail");
    sample.write(
        "test/a.js",
        "it('a', () => { throw new Error('a'); });\nit('b', () => {});\nit('c', () => {});\n",
    );
    has_note(&sample.run("", ""), "at least 2 of the 3 planned tests did not run");
    let sample = sample!("jest");
    package(&sample, "jest --bail --runInBand");
    for name in ["a", "b", "c"] {
        sample.write(&format!("{name}.test.js"), "test('fails', () => { throw new Error('a'); });\n");
    }
    has_note(&sample.run("", ""), "2 of 3 test files did not run");
    let sample = sample!("ava");
    package(&sample, "ava --fail-fast --serial");
    sample.write(
        "test.mjs",
        "import test from 'ava';\ntest('one', t => t.fail());\ntest('two', t => t.pass());\n",
    );
    has_note(&sample.run("", ""), "at least 1 tests did not run");
    let sample = sample!("@playwright/test");
    package(&sample, "playwright test -x --workers=1");
    sample.write(
        "a.spec.js",
        "const { test } = require('@playwright/test');\ntest('one', () => { throw new Error('one'); });\ntest('two', () => {});\n",
    );
    let report = sample.run("", "");
    has_note(&report, "at least 1 of the 2 planned tests did not run");
    assert!(report.error.is_none() && report.failed == 1, "{}", report.to_text());
    let sample = sample!("pytest");
    sample
        .write("pytest.ini", "[pytest]\naddopts = -x\n")
        .write("test_a.py", "def test_a(): assert 0\ndef test_b(): pass\ndef test_c(): pass\n");
    has_note(&sample.run("", ""), "at least 2 of the 3 planned tests did not run");
}

#[test]
fn environments_that_tox_and_nox_skip_are_told() {
    let test =
        "import unittest\nclass Sample(unittest.TestCase):\n    def test_passes(self):\n        pass\n";
    let sample = sample!("tox");
    sample.write("test_a.py", test).write(
        "tox.ini",
        "[tox]\nenvlist = own, py27\nskip_missing_interpreters = true\nskipsdist = true\n[testenv]\ncommands = python -m unittest\n",
    );
    one_of_two(&sample, "1 environments were skipped, and their tests did not run: py27");
    let sample = sample!("nox");
    sample.write("test_a.py", test).write(
        "noxfile.py",
        "import nox\n@nox.session(venv_backend='none')\ndef tests(session):\n    session.run('python3', '-m', 'unittest')\n@nox.session(venv_backend='none')\ndef more(session):\n    session.skip('not today')\n",
    );
    one_of_two(&sample, "1 environments were skipped, and their tests did not run: more (not today)");
}

#[test]
fn tests_that_the_default_filter_of_nextest_leaves_out_are_counted() {
    let sample = sample!("cargo-nextest");
    sample
        .write(
            "Cargo.toml",
            "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
        )
        .write(".config/nextest.toml", "[profile.default]\ndefault-filter = 'not test(b)'\n")
        .write(
            "src/lib.rs",
            "#[test]\nfn a() {}\n#[test]\nfn b() { panic!() }\n#[test]\n#[ignore]\nfn c() {}\n",
        );
    let report = sample.run("", "");
    let counts = (report.passed, report.skipped, report.deselected);
    assert!(report.is_success() && counts == (1, 1, 1), "{}", report.to_text());
}

#[test]
fn a_subtest_of_tap_that_fails_below_a_test_that_is_ok_is_a_failure() {
    let sample = sample!("node");
    package(&sample, "node t.js");
    let run = |text: &str| {
        sample.write("t.js", &format!("process.stdout.write(`{text}`);\n"));
        sample.run("", "")
    };
    let inner = "TAP version 14\n# Subtest: outer\n    # Subtest: middle\n        not ok 1 - inner # time=1.5ms\n          ---\n          message: 'not ok 2 - no test'\n          ...\n        1..1\n    ok 1 - middle\n    ok 2 - other\n    1..2\n";
    let report = run(&format!("{inner}ok 1 - outer\n1..1\n"));
    let failed: Vec<_> = report.tests.iter().filter(|test| test.status.is_failure()).collect();
    assert_eq!((report.success, failed.len()), (Some(false), 1), "{}", report.to_text());
    assert_eq!(failed[0].name, "outer > middle > inner");
    let report = run(&format!("{inner}not ok 1 - outer\n1..1\n"));
    assert_eq!((report.failed, report.tests[0].name.as_str()), (1, "outer"), "{}", report.to_text());
    assert!(report.to_text().contains("failed: middle > inner"), "{}", report.to_text());
    let report = run(&format!("{inner}ok 1 - outer # TODO later\nok 2 - more\n1..2\n"));
    assert!(report.is_success(), "{}", report.to_text());
    let todo = "TAP version 14\n    not ok 1 - inner # TODO later\n    1..1\nok 1 - outer\n1..1\n";
    assert!(run(todo).is_success());
    let printed = "TAP version 14\n    not ok yet\nok 1 - outer\n1..1\n";
    assert!(run(printed).is_success(), "what a test prints is no test");
}

#[test]
fn which_subtest_of_pytest_failed_is_told() {
    let sample = sample!("pytest-subtests");
    sample.write("pytest.ini", "[pytest]\n").write(
        "test_a.py",
        "import unittest\ndef test_a(subtests):\n    for number in range(4):\n        with subtests.test('part', number=number):\n            assert number % 2 == 0\nclass Sample(unittest.TestCase):\n    def test_b(self):\n        for number in range(2):\n            with self.subTest(number=number):\n                self.assertEqual(number, 0)\n",
    );
    let report = sample.run("", "");
    let text = report.to_text();
    assert_eq!((report.passed, report.failed), (0, 2), "{text}");
    for subtest in ["subtest [part] (number=1):", "subtest [part] (number=3):", "subtest (number=1):"] {
        assert!(
            report.tests.iter().any(|test| test.error.as_ref().unwrap().contains(subtest)),
            "{subtest}\n{text}"
        );
    }
    assert!(!text.contains("number=2"), "{text}");
}

#[test]
fn the_tests_of_test_unit_below_rake_are_listed() {
    let sample = sample!("rake");
    sample
        .write("Rakefile", "require 'rake/testtask'\nRake::TestTask.new { |task| task.pattern = 'test/*_test.rb' }\ntask default: :test\n")
        .write(
            "test/a_test.rb",
            "require 'test/unit'\nclass Sample < Test::Unit::TestCase\n  def test_passes\n    assert_equal 1, 1\n  end\n  def test_fails\n    assert_equal 1, 2\n  end\n  def test_raises\n    raise 'why'\n  end\n  def test_omits\n    omit 'later'\n  end\n  data('one', 1)\n  def test_data(number)\n    assert_equal 1, number\n  end\nend\n",
        );
    let report = sample.run("", "");
    let mut tests: Vec<_> =
        report.tests.iter().map(|test| (test.name.as_str(), test.status, test.line)).collect();
    tests.sort_unstable_by_key(|test| test.0);
    let expected = [
        ("Sample#test_data[one]", TestStatus::Passed, Some(16)),
        ("Sample#test_fails", TestStatus::Failed, Some(7)),
        ("Sample#test_omits", TestStatus::Skipped, Some(13)),
        ("Sample#test_passes", TestStatus::Passed, Some(3)),
        ("Sample#test_raises", TestStatus::Errored, Some(10)),
    ];
    assert_eq!(tests, expected, "{}", report.to_text());
    assert!(report.error.is_none(), "{}", report.to_text());
    sample.write(
        "test/a_test.rb",
        "require 'test/unit'\nclass Sample < Test::Unit::TestCase\n  def test_a\n    exit!(0)\n  end\n  def test_b\n    flunk\n  end\nend\n",
    );
    let report = sample.run("", "");
    assert!(report.is_failure() && report.failed == 1, "{}", report.to_text());
    sample.write(
        "test/a_test.rb",
        "require 'test/unit'\nclass Sample < Test::Unit::TestCase\n  def self.startup\n    raise 'startup'\n  end\n  def test_a\n  end\nend\n",
    );
    let report = sample.run("", "");
    assert!(report.is_failure() && report.to_text().contains("startup"), "{}", report.to_text());
}

#[test]
fn mocha_3_and_mocha_12_are_read() {
    mocha_is_read(SampleProject::empty("mocha 3"));
    // The first one that is made of modules of ECMAScript.
    mocha_is_read(SampleProject::empty("mocha 12"));
}

#[track_caller]
fn mocha_is_read(sample: Option<SampleProject>) {
    let Some(sample) = sample else { return };
    package(&sample, "mocha");
    sample.write(
        "test/a.js",
        "describe('a', () => {\n  it('passes', () => {});\n  it('fails', () => {\n    throw new Error('why');\n  });\n  it('later');\n});\ndescribe('b', () => {\n  before(() => { throw new Error('set-up'); });\n  it('never', () => {});\n});\n",
    );
    let report = sample.run("", "");
    let text = report.to_text();
    assert_eq!((report.passed, report.failed, report.skipped), (1, 2, 1), "{text}");
    assert_eq!(report.tests[0].name, "a > fails");
    assert_eq!(report.tests[0].line, Some(4), "{text}");
    assert!(report.error.is_none() && report.exit_code == Some(2), "{text}");
    assert_eq!(report.runner, "mocha");
}

#[test]
fn ava_5_is_read_and_so_is_a_part_of_a_parallel_run() {
    for program in ["ava", "ava 5"] {
        let sample = sample!(program);
        sample.write("package.json", r#"{"type":"module","private":true,"scripts":{"test":"ava"}}"#);
        sample.write("a.test.js", "import test from 'ava';\ntest('passes', (t) => t.pass());\n");
        let report = sample.run("", "");
        assert!(report.is_success() && report.passed == 1, "{program}: {}", report.to_text());
        sample.write("b.test.js", "import test from 'ava';\ntest('fails', (t) => t.fail());\n");
        let report = sample.run("", "");
        assert_eq!(
            (report.success, report.passed, report.failed),
            (Some(false), 1, 1),
            "{}",
            report.to_text()
        );
        let variables = [("CI", "1"), ("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "2")];
        let request =
            variables.iter().fold(RunTests::new(), |request, (name, value)| request.env(*name, *value));
        let report = sample.try_run(&request).unwrap();
        assert!(report.is_success() && report.passed == 1, "{program}: {}", report.to_text());
        let note = "only 1 of 2 test files ran: AVA takes the part of job 1 of 2";
        assert!(report.notes.iter().any(|own| own == note), "{program}: {}", report.to_text());
    }
}

#[test]
fn a_run_that_node_ends_itself_is_whole() {
    let sample = sample!("node");
    package(&sample, "node --test --test-force-exit");
    sample.write("a.test.js", "require('node:test').test('a', () => { setInterval(() => {}, 1000); });\n");
    let report = sample.run("", "");
    assert!(report.is_success() && report.passed == 1, "{}", report.to_text());
}

#[test]
fn a_test_of_go_beneath_which_the_process_ended_has_the_reason() {
    let sample = sample!("go");
    sample.write("go.mod", "module example.org/a\n\ngo 1.19\n");
    let run = |body: &str, arguments: &[&str]| {
        sample.write(
            "a_test.go",
            &format!("package a\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestA(t *testing.T) {{\n\t{body}\n\ttime.Sleep(time.Minute)\n}}\n"),
        );
        sample.try_run(&RunTests::new().args(arguments.iter().copied())).unwrap()
    };
    let report = run("", &["-timeout", "1s"]);
    let test = &report.tests[0];
    assert_eq!((report.failed, test.status), (1, TestStatus::TimedOut), "{}", report.to_text());
    assert!(test.error.as_ref().unwrap().contains("test timed out after 1s"), "{}", report.to_text());
    let report = run("go func() { panic(\"beneath\") }()", &[]);
    let test = &report.tests[0];
    assert_eq!((report.failed, test.status), (1, TestStatus::Errored), "{}", report.to_text());
    assert!(test.error.as_ref().unwrap().contains("panic: beneath"), "{}", report.to_text());
    assert_eq!((test.file.as_deref(), test.line), (Some("a_test.go"), Some(9)), "{}", report.to_text());
}
