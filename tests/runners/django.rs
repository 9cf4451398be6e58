//! A Django project: its own command, with our reporter in it.

use crate::support::SampleProject;
use crate::swallowed::fails_as;
use core_tools::testing::{RunTests, TestRunProblemKind};

const SETTINGS: &str = "SECRET_KEY = 'x'\nDATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}}\nINSTALLED_APPS = ['shop']\nDEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\n";
const MANAGE: &str = "import os, sys\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'settings')\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)\n";
const TESTS: &str = "import os\nfrom django.conf import settings\nfrom django.test import SimpleTestCase, TestCase\nclass CartTest(SimpleTestCase):\n    def test_adds(self): self.assertEqual(settings.SECRET_KEY, 'x')\n    def test_fails(self): self.assertEqual(1, 2)\nclass StoreTest(TestCase):\n    def test_has_no_reporter_of_ours(self): self.assertNotIn('PYTEST_PLUGINS', os.environ)\n";

fn project() -> Option<SampleProject> {
    let sample = SampleProject::empty("django")?;
    sample.write("manage.py", MANAGE).write("settings.py", SETTINGS).write("shop/__init__.py", "");
    sample.write("shop/tests.py", TESTS);
    Some(sample)
}

#[test]
fn the_tests_of_django_are_reported_one_by_one() {
    let Some(sample) = project() else { return };
    let report = sample.try_run(&RunTests::new()).unwrap();
    assert_eq!(
        (report.success, report.passed, report.failed, report.exit_code),
        (Some(false), 2, 1, Some(1)),
        "{}",
        report.to_text()
    );
    assert_eq!((report.error.as_ref(), report.runner), (None, "unittest"), "{}", report.to_text());
    assert!(report.command.ends_with("manage.py test"), "{}", report.command);
    let failed = &report.tests[0];
    assert_eq!(failed.name, "shop.tests.CartTest.test_fails");
    assert_eq!(
        (failed.file.as_deref(), failed.line),
        (Some("shop/tests.py"), Some(6)),
        "{}",
        report.to_text()
    );
    // A part of them has the settings as well.
    let report = sample.run("", "shop/tests.py");
    assert_eq!((report.passed, report.failed), (2, 1), "{}", report.to_text());
    let report = sample.run("", "test_adds");
    assert_eq!((report.success, report.passed), (Some(true), 1), "{}", report.to_text());
    let report = sample.run("", "test_gone");
    assert_ne!(report.success, Some(true), "{}", report.to_text());
    // Its workers report to the process that started them.
    sample.write("settings.py", &SETTINGS.replace(":memory:", "db.sqlite3"));
    let report = sample.try_run(&RunTests::new().args(["--parallel=2"])).unwrap();
    assert_eq!((report.passed, report.failed), (2, 1), "{}", report.to_text());
}

#[test]
fn a_failure_of_django_that_make_hides_is_a_failure() {
    let Some(sample) = project() else { return };
    sample.write("Makefile", "test:\n\t-.venv/bin/python manage.py test\n");
    let report = sample.try_run(&RunTests::new().runner("make")).unwrap();
    fails_as(&report, TestRunProblemKind::Mismatch);
    assert_eq!((report.passed, report.failed), (2, 1), "{}", report.to_text());
    // One that ends before it runs a test.
    sample.write("settings.py", "import nope\n");
    let report = sample.try_run(&RunTests::new().runner("make")).unwrap();
    fails_as(&report, TestRunProblemKind::RunnerFailed);
}
