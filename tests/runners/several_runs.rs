//! Programs that start a runner several times in one process: each run is reported, and those that a test starts are not.

use crate::support::SampleProject;
use crate::swallowed::{Files, fails_as, run_make, run_script};
use core_tools::testing::{ProblemKind, RunTests, TestReport};

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
        fails_as(&report, ProblemKind::Mismatch);
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
    fails_as(&report, ProblemKind::Mismatch);
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
