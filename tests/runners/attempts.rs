//! Attempts of one test, workers that die beneath one, and tests that were not selected.

use crate::support::SampleProject;
use core_tools::testing::{TestReport, TestRunProblemKind, TestStatus};

fn outcomes(report: &TestReport) -> Vec<(&str, TestStatus, Option<u64>, bool)> {
    let mut tests: Vec<_> = report
        .tests
        .iter()
        .map(|test| (test.name.as_str(), test.status, test.attempts, test.flaky))
        .collect();
    tests.sort_unstable_by_key(|test| test.0);
    tests
}

#[test]
fn attempts_of_pytest_rerunfailures_are_one_test_also_with_workers() {
    for options in ["--reruns 2", "--reruns 2 -n 2"] {
        let Some(sample) = SampleProject::empty("pytest-rerunfailures") else { return };
        let test = "import os
def test_flaky():
    tries = open('tries').read() if os.path.exists('tries') else ''
    open('tries', 'w').write(tries + 'x')
    assert len(tries) == 2
def test_lost():
    assert False, 'never'
def test_passes():
    pass
";
        sample.write("pytest.ini", &format!("[pytest]\naddopts = {options}\n")).write("test_a.py", test);
        let report = sample.run("", "");
        let expected = [
            ("test_a.py::test_flaky", TestStatus::Passed, Some(3), true),
            ("test_a.py::test_lost", TestStatus::Failed, Some(3), false),
            ("test_a.py::test_passes", TestStatus::Passed, None, false),
        ];
        assert_eq!(outcomes(&report), expected, "{options}: {}", report.to_text());
        assert_eq!((report.passed, report.failed, report.flaky), (2, 1, 1), "{}", report.to_text());
        assert!(report.error.is_none() && report.exit_code == Some(1), "{}", report.to_text());
        assert!(report.to_text().contains("flaky: test_a.py::test_flaky"), "{}", report.to_text());
    }
}

#[test]
fn a_test_that_kills_its_worker_of_pytest_is_listed_with_the_message() {
    let Some(sample) = SampleProject::empty("pytest-xdist") else { return };
    let test = "import os\ndef test_a(): pass\ndef test_dies(): os._exit(0)\ndef test_z(): pass\n";
    sample.write("pytest.ini", "[pytest]\naddopts = -n 2\n").write("test_a.py", test);
    let report = sample.run("", "");
    assert_eq!((report.passed, report.failed, report.is_success()), (2, 1, false), "{}", report.to_text());
    let lost = &report.tests[0];
    assert_eq!((lost.name.as_str(), lost.status), ("test_a.py::test_dies", TestStatus::Errored));
    assert!(lost.error.as_deref().unwrap().contains("crashed while running"), "{}", report.to_text());
}

#[test]
fn a_conftest_that_cannot_be_loaded_is_a_collection_error() {
    let Some(sample) = SampleProject::empty("pytest") else { return };
    sample.write("pytest.ini", "[pytest]\n").write("test_a.py", "def test_a(): pass\n");
    for conftest in ["def broken(:\n", "raise RuntimeError('not today')\n"] {
        sample.write("conftest.py", conftest);
        let report = sample.run("", "");
        let error = report.error.as_ref().unwrap();
        assert_eq!(error.kind, TestRunProblemKind::CollectionError, "{}", report.to_text());
        assert!(error.message.contains("conftest"), "{}", report.to_text());
    }
}

#[test]
fn tests_that_were_not_selected_are_counted() {
    if let Some(sample) = SampleProject::empty("pytest") {
        sample.write("pytest.ini", "[pytest]\naddopts = -k 'not slow'\n");
        sample.write("test_a.py", "def test_a(): pass\ndef test_slow(): assert False\n");
        let report = sample.run("", "");
        assert_eq!(
            (report.passed, report.deselected, report.is_success()),
            (1, 1, true),
            "{}",
            report.to_text()
        );
    }
    if let Some(sample) = SampleProject::of("cargo", "cargo") {
        let report = sample.run("cargo", "adds");
        assert_eq!((report.passed, report.deselected), (2, 6), "{}", report.to_text());
    }
}

/// Each worker runs every test, so that one that fails in the first and passes in the second is two results.
#[test]
fn a_test_of_each_worker_of_pytest_has_a_result_of_its_own() {
    let Some(sample) = SampleProject::empty("pytest-xdist") else { return };
    sample
        .write("pytest.ini", "[pytest]\naddopts = --tx 2*popen --dist each\n")
        .write("test_a.py", "import os\ndef test_gw(): assert os.environ['PYTEST_XDIST_WORKER'] != 'gw0'\n");
    let report = sample.run("pytest", "");
    let text = report.to_text();
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{text}");
    assert_eq!(report.error.as_ref(), None, "{text}");
    assert!(text.contains("test_a.py::test_gw [gw0]"), "{text}");
}
