//! Programs that start a runner several times in one process: each run is reported, and those that a test starts are not.

use crate::support::SampleProject;
use crate::swallowed::{Files, fails_as, run_make, run_script};
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

fn counts(report: &TestReport) -> (u64, u64) {
    (report.passed, report.failed)
}

#[test]
fn each_run_of_mocha_in_a_program_is_reported() {
    let files: &Files = &[
        ("a.js", "it('good', () => {}); it('bad', () => { throw new Error('BADMSG'); });\n"),
        ("b.js", "it('ok1', () => {}); it('ok2', () => {});\n"),
        (
            "nested.js",
            "it('runs another', (done) => { const M = require('mocha'); const m = new M({ reporter: 'min' }); m.cleanReferencesAfterRun(false); m.addFile('./a.js'); m.run(() => done()); });\n",
        ),
    ];
    let program = |first: &str, second: &str| {
        format!(
            "const M = require('mocha'); const run = (file, next) => {{ const m = new M(); m.addFile(file); m.run(next); }};\nrun('{first}', () => run('{second}', () => {{}}));\n"
        )
    };
    for (first, second) in [("./a.js", "./b.js"), ("./b.js", "./a.js")] {
        let sample = sample!("mocha");
        sample.write("run.js", &program(first, second));
        let report = run_script(&sample, "node run.js", files);
        fails_as(&report, TestRunProblemKind::Mismatch);
        assert_eq!(counts(&report), (3, 1), "{}", report.to_text());
        assert!(report.to_text().contains("BADMSG"), "{}", report.to_text());
    }
    let sample = sample!("mocha");
    sample.write("run.js", &program("./nested.js", "./b.js"));
    let report = run_script(&sample, "node run.js", files);
    assert_eq!((report.success, counts(&report)), (Some(true), (3, 0)), "{}", report.to_text());
}

#[test]
fn each_run_of_jest_in_a_program_is_reported() {
    let sample = sample!("jest");
    let files: &Files = &[
        ("a.test.js", "test('good', () => {}); test('bad', () => { throw new Error('BADMSG'); });\n"),
        ("b.test.js", "test('good', () => {}); test('ok2', () => {});\n"),
        (
            "run.js",
            "const { runCLI } = require('jest'); const run = (file) => runCLI({ _: [file], $0: '', cache: false }, [__dirname]);\nrun('b.test').then(() => run('a.test')).then(() => run('b.test'));\n",
        ),
    ];
    let report = run_script(&sample, "node run.js", files);
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert_eq!(counts(&report), (5, 1), "{}", report.to_text());
}

#[test]
fn each_run_of_unittest_in_a_script_is_reported() {
    let run = "import unittest\nclass A(unittest.TestCase):\n    def test_bad(self): self.fail('BADMSG')\n    def test_ok(self):\n        # A run of its own, whose result is not ours.\n        unittest.TextTestRunner(stream=open('/dev/null', 'w')).run(unittest.defaultTestLoader.loadTestsFromTestCase(B))\nclass B(unittest.TestCase):\n    def test_b(self): pass\nclass C(unittest.TestCase):\n    def test_c(self): pass\nfor case in (CASES):\n    unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(case))\n";
    for cases in ["A, C", "C, A"] {
        let sample = sample!("python3");
        sample.write("run.py", &run.replace("CASES", cases));
        let report = run_make(&sample, &["python3 run.py"], &[]);
        assert_eq!((report.success, counts(&report)), (Some(false), (2, 1)), "{}", report.to_text());
        assert!(report.to_text().contains("BADMSG"), "{}", report.to_text());
    }
    let sample = sample!("python3");
    sample.write("run.py", &run.replace("CASES", "B, C"));
    let report = run_make(&sample, &["python3 run.py"], &[]);
    assert_eq!((report.success, counts(&report)), (Some(true), (2, 0)), "{}", report.to_text());
}

#[test]
fn each_run_of_pytest_in_a_script_is_reported() {
    let bad = "def test_ok(): pass\ndef test_bad(): assert 0, 'BADMSG'\n";
    let inner = "import pytest\ndef test_inner(tmp_path):\n    (tmp_path / 'test_x.py').write_text('def test_x(): assert 0')\n    assert pytest.main(['-q', '-p', 'no:cacheprovider', str(tmp_path)]) == 1\n";
    let files: &Files = &[("test_a.py", bad), ("test_b.py", "def test_b(): pass\n"), ("test_c.py", inner)];
    for names in ["'test_a.py', 'test_b.py'", "'test_b.py', 'test_a.py'"] {
        let sample = sample!("pytest");
        sample.write(
            "run.py",
            &format!("import pytest\nfor name in ({names}):\n    pytest.main(['-q', name])\n"),
        );
        let report = run_make(&sample, &[".venv/bin/python run.py"], files);
        assert_eq!((report.success, counts(&report)), (Some(false), (2, 1)), "{}", report.to_text());
        assert!(report.to_text().contains("BADMSG"), "{}", report.to_text());
    }
    let sample = sample!("pytest");
    sample.write(
        "run.py",
        "import pytest\nfor name in ('test_c.py', 'test_b.py'):\n    pytest.main(['-q', name])\n",
    );
    let report = run_make(&sample, &[".venv/bin/python run.py"], files);
    assert_eq!((report.success, counts(&report)), (Some(true), (2, 0)), "{}", report.to_text());
    assert!(sample.try_run(&RunTests::new()).unwrap().is_success());
}

#[test]
fn a_suite_that_a_script_runs_without_a_runner_is_reported_as_its_own() {
    let sample = sample!("python3");
    let files: &Files = &[
        (
            "run.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    def test_c(self): self.fail()\nresult = unittest.TestResult()\nunittest.defaultTestLoader.loadTestsFromTestCase(T).run(result)\nprint(result)\n",
        ),
        (
            "ok.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\nif __name__ == '__main__': unittest.main()\n",
        ),
        ("helper.py", "from unittest import mock\n"),
    ];
    let report = run_make(&sample, &["python3 helper.py", "-python3 run.py", "python3 ok.py"], files);
    fails_as(&report, TestRunProblemKind::Mismatch);
    let counts: Vec<_> = report.commands.iter().map(|command| (command.passed, command.failed)).collect();
    assert_eq!(counts, [(0, 0), (1, 1), (1, 0)], "{}", report.to_text());
}

#[test]
fn a_dry_run_executes_no_test() {
    let sample = sample!("mocha");
    let test = "it('good', () => {}); it('bad', () => { throw new Error('BADMSG'); });\n";
    let files: &Files = &[(".mocharc.json", "{\"dry-run\": true, \"spec\": [\"a.js\"]}"), ("a.js", test)];
    let report = run_script(&sample, "mocha", files);
    assert_eq!((report.success, report.passed, report.skipped), (None, 0, 2), "{}", report.to_text());
    let sample = sample!("rspec");
    let spec = "RSpec.describe('a') { it('fails') { expect(1).to eq 2 } }\n";
    let report = run_make(&sample, &["rspec --dry-run a_spec.rb"], &[("a_spec.rb", spec)]);
    assert_eq!((report.success, report.passed, report.skipped), (None, 0, 1), "{}", report.to_text());
}

#[test]
fn a_mocha_whose_tests_do_not_tell_their_titles_is_reported() {
    let sample = sample!("mocha");
    let files: &Files = &[
        // What reporters are given has no `titlePath`.
        (
            "old.js",
            "const { Runner } = require('mocha'); const { emit } = Runner.prototype;\nRunner.prototype.emit = function (event, test, ...words) {\n  if (!['test', 'pass'].includes(event)) return emit.call(this, event, test, ...words);\n  test.titlePath = undefined;\n  try { return emit.call(this, event, test, ...words); } finally { delete test.titlePath; }\n};\n",
        ),
        ("a.js", "describe('s', () => { it('good', () => {}); });\n"),
    ];
    let report = run_script(&sample, "mocha --require ./old.js a.js", files);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    assert_eq!(report.tests[0].name, "s > good");
}
