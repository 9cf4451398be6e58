//! Test commands that load no reporter of ours, and whose failure a shell or make hides: `python -I`, an emptied environment,
//! text that is no run of tests. In each fixture the command ends with exit code 0 in a terminal.

use crate::support::SampleProject;
use crate::swallowed::{Files, fails_as, rows, run_make, run_script};
use core_tools::testing::{TestReport, TestRunProblemKind};
use std::os::unix::fs::PermissionsExt;

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

const UNITTEST_FAILS: &str = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nif __name__ == '__main__': unittest.main()\n";
const UNITTEST_PASSES: &str = "import unittest\nclass T(unittest.TestCase):\n    def test_b(self): pass\nif __name__ == '__main__': unittest.main()\n";
const PYTEST_FAILS: &str = "def test_a(): assert 0\n";
const PYTEST_PASSES: &str = "def test_b(): pass\n";
const NODE_FAILS: &str = "const t = require('node:test'); t('a', () => { throw 1; });\n";
const NODE_PASSES: &str = "const t = require('node:test'); t('b', () => {});\n";

/// The command succeeded, and what became of some of its tests is not known. Returns the text of the report.
#[track_caller]
fn is_not_verified(report: &TestReport, passed: u64) -> String {
    assert_eq!((report.success, report.passed), (None, passed), "{}", report.to_text());
    assert_eq!(report.error, None, "{}", report.to_text());
    report.to_text()
}

#[test]
fn the_printed_failure_of_a_python_that_loads_no_reporter_is_a_failure() {
    let files: &Files = &[("test_a.py", UNITTEST_FAILS), ("test_b.py", UNITTEST_PASSES)];
    for recipe in [
        "python3 -I test_a.py || true",
        "python3 -S test_a.py || true",
        "python3 -E -m unittest test_a || true",
        "env -i PATH=$$PATH python3 -m unittest test_a || true",
        "-python3 -I test_a.py",
        "python3 -m unittest test_b; python3 -I test_a.py; true",
        "python3 -I test_a.py || true; python3 -m unittest test_b",
        "sh -c 'python3 -I test_a.py; true'",
        "python3 -I test_a.py 2>&1 | cat",
    ] {
        let sample = sample!("python3");
        let report = run_make(&sample, &[recipe], files);
        fails_as(&report, TestRunProblemKind::Mismatch);
        let message = &report.error.as_ref().unwrap().message;
        assert!(message.contains("FAILED (failures=1)"), "{recipe}: {message}");
    }
}

#[test]
fn a_python_that_loads_no_reporter_and_passes_is_not_verified_where_its_failure_would_be_hidden() {
    let files: &Files = &[("test_a.py", UNITTEST_PASSES), ("checks.py", UNITTEST_PASSES)];
    for (recipe, passed) in [
        ("python3 -I test_a.py || true", 0),
        ("python3 -I test_a.py; python3 -m unittest test_a", 1),
        ("python3 -E -m unittest test_a || true; python3 -m unittest test_a", 1),
        ("python3 -I checks.py || true; python3 -m unittest test_a", 1),
        ("sh -c 'python3 -I test_a.py; true' && python3 -m unittest test_a", 1),
    ] {
        let sample = sample!("python3");
        let report = run_make(&sample, &[recipe], files);
        let text = is_not_verified(&report, passed);
        assert!(passed == 0 || text.starts_with("NOT VERIFIED"), "{recipe}: {text}");
        assert!(text.contains("\nnote: not verified: "), "{recipe}: {text}");
    }
    // Its exit code is that of the whole command, or is looked at.
    for recipe in [
        "python3 -m unittest test_a && python3 -I test_a.py",
        "python3 -I test_a.py && python3 -m unittest test_a",
        "python3 -I test_a.py || exit 1; python3 -m unittest test_a",
        "python3 -I test_a.py; code=$$?; python3 -m unittest test_a; exit $$code",
    ] {
        let sample = sample!("python3");
        let report = run_make(&sample, &[recipe], files);
        assert_eq!((report.success, report.passed), (Some(true), 1), "{recipe}: {}", report.to_text());
    }
}

#[test]
fn an_isolated_pytest_runs_as_without_us() {
    let sample = sample!("pytest");
    let files: &Files = &[("test_a.py", PYTEST_FAILS), ("test_b.py", PYTEST_PASSES)];
    let report = run_make(&sample, &[".venv/bin/python -I -m pytest -q -p no:cacheprovider || true"], files);
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert!(
        report.error.as_ref().unwrap().message.contains("1 failed, 1 passed in "),
        "{}",
        report.to_text()
    );
    // Where its exit code counts, it passes.
    let report = run_make(&sample, &[".venv/bin/python -I -m pytest -q test_b.py"], &[]);
    is_not_verified(&report, 0);
    assert!(report.output.as_ref().unwrap().contains("1 passed in "), "{}", report.to_text());
    let recipe = "env -u PYTHONPATH .venv/bin/pytest -q test_b.py; .venv/bin/pytest -q test_b.py";
    is_not_verified(&run_make(&sample, &[recipe], &[]), 1);
}

#[test]
fn the_printed_failure_of_ruby_without_our_reporter_is_a_failure() {
    let minitest = "ENV.delete('RUBYLIB'); $LOAD_PATH.reject! { |path| path.end_with?('/ruby') && path.start_with?('/tmp') }\nrequire 'minitest/autorun'\nclass T < Minitest::Test\n  def test_a; assert false; end\nend\n";
    for recipe in ["ruby -Itest test_x.rb || true", "env -u RUBYLIB ruby test_x.rb || true"] {
        let sample = sample!("ruby");
        let report = run_make(&sample, &[recipe], &[("test_x.rb", minitest)]);
        assert_eq!(report.success, Some(false), "{}", report.to_text());
        assert!(report.error.is_some(), "{}", report.to_text());
    }
    let sample = sample!("ruby");
    let test_unit =
        "require 'test/unit'\nclass T < Test::Unit::TestCase\n  def test_a; assert false; end\nend\n";
    let report = run_make(&sample, &["ruby test_x.rb || true"], &[("test_x.rb", test_unit)]);
    fails_as(&report, TestRunProblemKind::Mismatch);
    // A script of npm loads the reporters of Ruby as well.
    let sample = sample!("ruby");
    let minitest =
        "require 'minitest/autorun'\nclass T < Minitest::Test\n  def test_a; assert true; end\nend\n";
    let report = run_script(&sample, "ruby test_x.rb", &[("test_x.rb", minitest)]);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
}

#[test]
fn an_rspec_whose_library_path_is_taken_away_still_reports() {
    let sample = sample!("rspec");
    let spec = "RSpec.describe('a') { it('fails') { expect(1).to eq 2 }; it('b') {} }\n";
    let report = run_make(&sample, &["env -u RUBYLIB rspec a_spec.rb || true"], &[("a_spec.rb", spec)]);
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert_eq!((report.passed, report.failed), (1, 1), "{}", report.to_text());
    let report = run_make(&sample, &["env -i PATH=$$PATH rspec a_spec.rb || true"], &[]);
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert!(report.error.as_ref().unwrap().message.contains("2 examples, 1 failure"), "{}", report.to_text());
}

#[test]
fn wrappers_that_empty_the_environment_hide_no_failure() {
    let files: &Files =
        &[("a.test.js", NODE_FAILS), ("b.test.js", NODE_PASSES), ("test_b.py", UNITTEST_PASSES)];
    let sample = sample!("node");
    let wrapper = "#!/bin/sh\nexec env -i PATH=\"$PATH\" \"$@\"\n";
    sample.write("as-root", wrapper);
    let path = sample.path().join("as-root");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    for script in [
        "env -i PATH=\"$PATH\" node --test a.test.js || true",
        "./as-root node --test --test-reporter=spec a.test.js || true",
        "./as-root node --test --test-reporter=dot a.test.js; ./as-root node --test --test-reporter=spec a.test.js; true",
        "./as-root node --test --test-reporter=spec a.test.js; node --test b.test.js",
    ] {
        let report = run_script(&sample, script, files);
        assert_eq!(report.success, Some(false), "{script}: {}", report.to_text());
    }
    let script = "./as-root node --test --test-reporter=dot a.test.js; node --test b.test.js";
    let report = run_script(&sample, script, &[]);
    let text = is_not_verified(&report, 1);
    assert!(text.contains("`./as-root node --test --test-reporter=dot a.test.js`"), "{text}");
}

#[test]
fn tap_of_an_earlier_run_is_no_run_of_tests() {
    let tap = "TAP version 13\n1..2\nok 1 - a\nok 2 - b\n";
    let failed = "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n# fail 1\n";
    for recipe in [
        "cat old.tap",
        "@cat old.tap | tee new.tap",
        "sed s/x/y/ old.tap; true",
        "sh -c 'cat old.tap'",
        "@printf 'TAP version 13\\n1..1\\nok 1 - a\\n'",
        "tail -n 9 old.tap | grep -v x",
    ] {
        for text in [tap, failed] {
            let sample = sample!("make");
            let report = run_make(&sample, &[recipe], &[("old.tap", text)]);
            let text = is_not_verified(&report, 0);
            assert!(
                text.contains("TAP is on standard output, and none of the commands runs tests"),
                "{text}"
            );
        }
    }
    // The TAP of a runner in a pipe is its own, also of one that holds no reporter.
    let sample = sample!("bats");
    let test = "@test \"a\" { true; }\n@test \"b\" { true; }\n";
    let report = run_make(&sample, &["bats --tap a.bats | cat"], &[("a.bats", test)]);
    assert_eq!((report.success, report.passed), (Some(true), 2), "{}", report.to_text());
    let sample = sample!("tape");
    let test = "require('tape')('a', (t) => { t.ok(true); t.end(); });\n";
    let report = run_script(&sample, "tape t.js | cat", &[("t.js", test)]);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
}

#[test]
fn the_summary_of_another_runner_that_a_test_prints_is_no_failure() {
    let sample = sample!("mocha");
    let test = "it('a', () => { console.log('FAILED (failures=1)'); console.log('==== 1 failed in 0.1s ===='); });\n";
    let report = run_script(&sample, "echo start && mocha", &[("test/a.js", test)]);
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    assert_eq!(rows(&report)[1], ("mocha", 1, Some(0)), "{}", report.to_text());
}

#[test]
fn a_runner_that_a_script_in_a_file_hides_is_not_verified() {
    let sample = sample!("mocha");
    let passes = "it('c', () => {});\n";
    let fails = "it('b', () => { throw new Error('b'); });\n";
    let script = "#!/bin/sh\n# mocha is hidden here\nenv -i PATH=\"$PATH\" node_modules/.bin/mocha b.js >log 2>&1\ntrue\n";
    let files: &Files = &[("ci/run.sh", script), ("b.js", fails), ("c.js", passes)];
    for command in ["sh ci/run.sh; mocha c.js", "sh ci/run.sh && mocha c.js"] {
        let text = is_not_verified(&run_script(&sample, command, files), 1);
        let words = "node_modules/.bin/mocha b.js >log 2>&1` in `sh ci/run.sh`";
        assert!(text.contains("nothing reported the tests of `env -i") && text.contains(words), "{text}");
    }
    // A script that starts no runner, and one whose runner reports.
    for script in ["#!/bin/sh\nmkdir -p build\nls\n", "#!/bin/sh\nmocha c.js\ntrue\n"] {
        sample.write("ci/run.sh", script);
        let report = run_script(&sample, "sh ci/run.sh && mocha c.js", &[]);
        assert_eq!(report.success, Some(true), "{}", report.to_text());
    }
}
