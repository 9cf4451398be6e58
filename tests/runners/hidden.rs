//! Shell tests whose exit code make, a loop or `find` hides, beside a runner that reports. In each fixture the command ends
//! with exit code 0 in a terminal.

use crate::support::SampleProject;
use crate::swallowed::{Files, run_make};
use core_tools::testing::{RunTests, TestReport};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

const PASSES: &str = "import unittest\nclass T(unittest.TestCase):\n    def test_good(self): pass\n";
const UNITTEST: &str = "python3 -m unittest -q test_a";

/// Asserts that one test passed, and that the report says that it is not verified, with these words.
#[track_caller]
fn is_not_verified(report: &TestReport, words: &str) {
    let text = report.to_text();
    assert_eq!((report.success, report.passed, report.error.as_ref()), (None, 1, None), "{text}");
    assert!(report.notes.iter().any(|note| note.contains(words)), "{words}\n{text}");
}

/// Writes the makefile and runs its tests, which end with exit code 0.
#[track_caller]
fn run_makefile(sample: &SampleProject, makefile: &str) -> TestReport {
    sample.write("Makefile", &makefile.replace("UNITTEST", UNITTEST)).write("test_a.py", PASSES);
    let made = std::process::Command::new("make").arg("test").current_dir(sample.path()).output().unwrap();
    assert!(made.status.success(), "the fixture ends well: {}", String::from_utf8_lossy(&made.stderr));
    sample.try_run(&RunTests::new()).unwrap()
}

#[test]
fn a_failure_that_make_is_told_to_ignore_is_not_verified() {
    let sample = sample!("make");
    sample.write("unit_tests.sh", "exit 1\n");
    let rules = "test: unit\n\tUNITTEST\nunit:\n\tsh unit_tests.sh\n";
    for makefile in [
        ".ONESHELL:\ntest:\n\tsh unit_tests.sh\n\tUNITTEST\n".to_owned(),
        format!(".IGNORE:\n{rules}"),
        format!(".IGNORE: unit\n{rules}"),
        format!("MAKEFLAGS += -i\n{rules}"),
    ] {
        is_not_verified(&run_makefile(&sample, &makefile), "`sh unit_tests.sh`");
    }
    // Nothing in the words of the command names a test: make says that it failed.
    sample.write("verify", "#!/bin/sh\nexit 1\n");
    let makefile = "test:\n\t-sh verify\n\tUNITTEST\n";
    is_not_verified(&run_makefile(&sample, makefile), "make ignored that a command failed");
    let makefile = "include more.mk\ntest: more\n\tUNITTEST\n";
    sample.write("more.mk", "all: test\nmore:\n\t-sh verify\n");
    is_not_verified(&run_makefile(&sample, makefile), "make ignored that a command failed");
}

#[test]
fn a_failure_of_what_runs_no_test_may_be_ignored() {
    let sample = sample!("make");
    sample.write("unit_tests.sh", "exit 0\n");
    for makefile in [
        "test:\n\t-rm gone\n\tUNITTEST\n",
        ".ONESHELL:\n.SHELLFLAGS = -ec\ntest:\n\tsh unit_tests.sh\n\tUNITTEST\n",
        "test: unit\n\tUNITTEST\nunit:\n\tsh unit_tests.sh\n",
        "test:\n\tUNITTEST\n\tfor f in *.py; do cat $$f; done\n\tfind . -name '*.pyc' -exec rm {} \\;\n",
    ] {
        let report = run_makefile(&sample, makefile);
        assert_eq!((report.success, report.passed), (Some(true), 1), "{makefile}\n{}", report.to_text());
    }
}

#[test]
fn shell_tests_in_a_loop_are_not_verified() {
    let files: &Files =
        &[("tests/test_one.sh", "exit 1\n"), ("tests/test_two.sh", "exit 0\n"), ("test_a.py", PASSES)];
    for (line, words) in [
        ("for f in tests/test_*.sh; do sh $$f; done", "`sh $f`"),
        ("for f in tests/*.sh; do echo $$f; sh ./$$f; done", "`sh ./$f`"),
        ("find tests -name 'test_*.sh' -exec sh {} \\;", "`find tests"),
        ("ls tests/*.sh | while read f; do sh $$f; done; echo done", "`sh $f`"),
        ("sh tests/test_one.sh; sh tests/test_two.sh", "`sh tests/test_one.sh`"),
    ] {
        let sample = sample!("make");
        is_not_verified(&run_make(&sample, &[UNITTEST, line], files), words);
    }
}
