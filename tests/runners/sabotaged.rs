//! Suites of PHP, Ruby, Java, `CTest` and make that fail and whose command succeeds, and tests among them that never run.

use crate::support::SampleProject;
use crate::swallowed::{Files, fails_as, run_make};
use core_tools::testing::{RunTests, TestReport, TestRunProblemKind};

macro_rules! sample {
    ($program:expr) => {
        match SampleProject::empty($program) {
            Some(sample) => sample,
            None => return,
        }
    };
}

fn run(sample: &SampleProject, files: &[(&str, &str)]) -> TestReport {
    for (path, text) in files {
        sample.write(path, text);
    }
    sample.try_run(&RunTests::new()).unwrap()
}

/// The counts of a report, and its verdict.
fn outcome(report: &TestReport) -> (Option<bool>, u64, u64, u64) {
    (report.success, report.passed, report.failed, report.skipped)
}

/// The report tells that one thing was not run, for a reason with these words.
#[track_caller]
fn tells(report: &TestReport, what: &str, why: &str) {
    let named = report.not_run.iter().any(|entry| entry.what == [what] && entry.why.contains(why));
    assert!(named, "{what}\n{}", report.to_text());
}

const PHPUNIT: &str = "<phpunit><testsuites><testsuite name=\"a\"><directory>tests</directory></testsuite></testsuites></phpunit>";
const PHP_PASSES: &str = "<?php use PHPUnit\\Framework\\TestCase;\nclass ATest extends TestCase { public function testA() { $this->assertTrue(true); } }\n";
const PHP_FAILS: &str = "<?php use PHPUnit\\Framework\\TestCase;\nclass BTest extends TestCase {\n  public function testB() { $this->assertTrue(false); }\n  public function testC() { $this->assertTrue(true); }\n  public function testD() { $this->markTestSkipped('later'); }\n}\n";

fn composer(script: &serde_json::Value) -> String {
    serde_json::json!({"scripts": {"test": script, "unit": "phpunit tests/ATest.php", "lint": "php lint.php || exit 0"}})
        .to_string()
}

#[test]
fn each_phpunit_of_a_script_of_composer_counts() {
    let sample = sample!("composer");
    let files =
        [("tests/ATest.php", PHP_PASSES), ("tests/BTest.php", PHP_FAILS), ("lint.php", "<?php exit(3);\n")];
    for (script, expected) in [
        (serde_json::json!(["@lint", "@unit"]), (Some(true), 1, 0, 0)),
        (serde_json::json!(["@unit", "phpunit tests/BTest.php || true"]), (Some(false), 2, 1, 1)),
        (serde_json::json!("phpunit tests/BTest.php; phpunit tests/ATest.php"), (Some(false), 2, 1, 1)),
    ] {
        sample.write("composer.json", &composer(&script));
        let report = run(&sample, &files);
        assert_eq!(outcome(&report), expected, "{script}\n{}", report.to_text());
        assert_eq!(report.runner, "phpunit");
        if expected.2 == 1 {
            assert_eq!(report.tests[0].name, "BTest.testB", "{}", report.to_text());
            fails_as(&report, TestRunProblemKind::Mismatch);
        }
    }
    // A file of PHP that fails before it.
    sample.write(
        "composer.json",
        &composer(&serde_json::json!(["php tests/plain.php; phpunit tests/ATest.php"])),
    );
    let report = run(&sample, &[("tests/plain.php", "<?php exit(1);\n")]);
    assert_eq!(outcome(&report), (None, 1, 0, 0), "{}", report.to_text());
    assert!(report.to_text().contains("`php tests/plain.php`"), "{}", report.to_text());
}

#[test]
fn phpunit_that_a_test_ends_is_no_success_and_a_file_that_it_passes_over_is_told() {
    let sample = sample!("phpunit");
    let exits = "<?php use PHPUnit\\Framework\\TestCase;\nclass XTest extends TestCase { public function testX() { exit(0); } }\n";
    let files = [("phpunit.xml", PHPUNIT), ("tests/ATest.php", PHP_PASSES), ("tests/XTest.php", exits)];
    fails_as(&run(&sample, &files), TestRunProblemKind::Crashed);
    // The same where PHPUnit is a command of a script.
    let sample = sample!("composer");
    sample.write("composer.json", &composer(&serde_json::json!(["phpunit tests/XTest.php", "@unit"])));
    fails_as(&run(&sample, &files[1..]), TestRunProblemKind::Crashed);

    let sample = sample!("phpunit");
    let other = PHP_FAILS.replace("BTest", "BTests");
    let report = run(
        &sample,
        &[("phpunit.xml", PHPUNIT), ("tests/ATest.php", PHP_PASSES), ("tests/BTests.php", &other)],
    );
    assert_eq!(outcome(&report), (Some(true), 1, 0, 0), "{}", report.to_text());
    tells(&report, "tests/BTests.php", "none of them was reported");
}

/// A test of minitest.
fn minitest(class: &str, body: &str) -> String {
    format!("require 'minitest/autorun'\nclass {class} < Minitest::Test\n  def test_x; {body}; end\nend\n")
}

#[test]
fn what_a_rakefile_swallows_is_no_success() {
    let sample = sample!("rake");
    let passes = minitest("B", "assert true");
    let fails = minitest("A", "flunk");
    let rescued = "task :test do\n  begin\n    sh 'ruby test/a.rb'\n  rescue => e\n  end\n  sh 'ruby test/b.rb'\nend\ntask default: :test\n";
    let report = run(&sample, &[("Rakefile", rescued), ("test/a.rb", &fails), ("test/b.rb", &passes)]);
    assert_eq!(outcome(&report), (Some(false), 1, 1, 0), "{}", report.to_text());
    // A file that is a test by itself, and one that only may be one.
    for (script, text, expected) in [
        ("test/plain.rb", "raise 'x' unless 1 == 2\n", Some(false)),
        ("checks.rb", "exit 3\n", None),
        ("checks.rb", "exit 0\n", Some(true)),
    ] {
        let rakefile = format!(
            "task :test do\n  sh('ruby {script}') {{ |ok, result| }}\n  sh 'ruby test/b.rb'\nend\ntask default: :test\n"
        );
        let report = run(&sample, &[("Rakefile", &rakefile), (script, text)]);
        assert_eq!((report.success, report.passed), (expected, 1), "{}", report.to_text());
        assert!(
            expected == Some(true) || report.to_text().contains(&format!("`ruby {script}` failed")),
            "{}",
            report.to_text()
        );
    }
    // The last block of minitest ends the process.
    let sample = sample!("rake");
    let task = "require 'rake/testtask'\nRake::TestTask.new { |task| task.pattern = 'test/*_test.rb' }\ntask default: :test\n";
    let ends = format!("{fails}Minitest.after_run {{ exit!(0) }}\n");
    let report = run(&sample, &[("Rakefile", task), ("test/a_test.rb", &ends)]);
    assert_eq!((report.success, report.failed), (Some(false), 1), "{}", report.to_text());
}

#[test]
fn files_that_a_pattern_leaves_out_are_told() {
    let sample = sample!("rake");
    let task = "require 'rake/testtask'\nRake::TestTask.new { |task| task.pattern = 'test/*_test.rb' }\ntask default: :test\n";
    let files = [
        ("Rakefile", task),
        ("test/a_test.rb", &minitest("A", "assert true")),
        ("test/sub/b_test.rb", &minitest("B", "flunk")),
    ];
    let report = run(&sample, &files);
    assert_eq!(outcome(&report), (Some(true), 1, 0, 0), "{}", report.to_text());
    tells(&report, "test/sub/b_test.rb", "none of them was reported");

    let sample = sample!("mocha");
    let report = run(
        &sample,
        &[
            ("package.json", "{\"scripts\":{\"test\":\"mocha\"}}"),
            ("test/a.test.js", "it('a', () => {});\n"),
            ("test/sub/b.test.js", "it('b', () => { throw 1; });\n"),
            ("test/fixtures/c.test.js", "it('c', () => {});\n"),
            ("packages/d/package.json", "{}"),
            ("packages/d/d.test.js", "it('d', () => {});\n"),
        ],
    );
    assert_eq!(outcome(&report), (Some(true), 1, 0, 0), "{}", report.to_text());
    tells(&report, "test/sub/b.test.js", "none of them was reported");

    let sample = sample!("pytest");
    let report = run(
        &sample,
        &[
            ("pytest.ini", "[pytest]\ntestpaths = tests\n"),
            ("tests/test_a.py", "def test_a(): pass\n"),
            (
                "tests/test_s.py",
                "import pytest\npytest.skip('later', allow_module_level=True)\ndef test_s(): pass\n",
            ),
            ("more/test_b.py", "def test_b(): assert 0\n"),
        ],
    );
    assert_eq!(outcome(&report), (Some(true), 1, 0, 1), "{}", report.to_text());
    tells(&report, "more/test_b.py", "none of them was reported");
}

const CMAKE: &str = "cmake_minimum_required(VERSION 3.20)\nproject(sample NONE)\n";

#[test]
fn tests_that_cmake_does_not_register_are_told() {
    let sample = sample!("ctest");
    let text = format!(
        "{CMAKE}add_subdirectory(early)\nenable_testing()\nadd_test(NAME a COMMAND ${{CMAKE_COMMAND}} -E true)\nadd_test(NAME release COMMAND false CONFIGURATIONS Release)\nif(FULL)\n  add_test(NAME full COMMAND false)\nendif()\nadd_test(NAME skipped COMMAND sh -c \"exit 77\")\nset_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)\n"
    );
    let report = run(
        &sample,
        &[("CMakeLists.txt", &text), ("early/CMakeLists.txt", "add_test(NAME early COMMAND false)\n")],
    );
    assert_eq!(outcome(&report), (Some(true), 1, 0, 1), "{}", report.to_text());
    let entry = &report.not_run[0];
    let expected = ["release (CMakeLists.txt)", "full (CMakeLists.txt)", "early (early/CMakeLists.txt)"];
    assert_eq!(entry.what, expected, "{}", report.to_text());
}

#[test]
fn a_program_of_ctest_that_prints_failures_and_succeeds_is_not_verified() {
    let sample = sample!("ctest");
    // More than CTest keeps of the output of a test that passed.
    let lies = "i=0\nwhile [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done\necho '[  FAILED  ] 1 test, listed below:'\n";
    let tests = format!(
        "{CMAKE}enable_testing()\nadd_test(NAME lies COMMAND sh ${{CMAKE_SOURCE_DIR}}/lies.sh)\nadd_test(NAME passes COMMAND ${{CMAKE_COMMAND}} -E true)\n"
    );
    let report = run(&sample, &[("CMakeLists.txt", &tests), ("lies.sh", lies)]);
    assert_eq!(outcome(&report), (None, 2, 0, 0), "{}", report.to_text());
    let note = "not verified: `lies` printed `[  FAILED  ] 1 test, listed below:`";
    assert!(report.notes.iter().any(|own| own.starts_with(note)), "{}", report.to_text());
    assert!(!report.command.contains("--test-output"), "{}", report.command);
    // The project says that this output is what it wants.
    let wanted = "set_tests_properties(lies PROPERTIES PASS_REGULAR_EXPRESSION \"1 test, listed\")\n";
    let report = run(&sample, &[("CMakeLists.txt", &format!("{tests}{wanted}"))]);
    assert_eq!(outcome(&report), (Some(true), 2, 0, 0), "{}", report.to_text());
}

#[test]
fn a_program_of_ctest_that_prints_the_failures_of_other_frameworks_is_not_verified() {
    let sample = sample!("ctest");
    let lines = [
        "Tests run: 5, Failures: 2",
        "Run: 5   Failure total: 2   Failures: 2   Errors: 0",
        "50%: Checks: 2, Failures: 1, Errors: 0",
        "5 Tests 2 Failures 0 Ignored",
        "*** 1 failure is detected in the test module \"a\"",
    ];
    let mut tests = format!("{CMAKE}enable_testing()\n");
    for (index, line) in lines.iter().enumerate() {
        sample.write(&format!("lies{index}.sh"), &format!("echo '{line}'; exit 1\n"));
        tests.push_str(&format!(
            "add_test(NAME lies{index} COMMAND sh -c \"sh ${{CMAKE_SOURCE_DIR}}/lies{index}.sh | tee log\")\n"
        ));
    }
    for (index, line) in lines.iter().enumerate() {
        let report = run(&sample, &[("CMakeLists.txt", &tests)]);
        assert_eq!(outcome(&report), (None, 5 - index as u64, 0, 0), "{}", report.to_text());
        let note = format!("`lies{index}` printed `{line}`");
        assert!(report.notes.iter().any(|own| own.contains(&note)), "{}", report.to_text());
        // The first one is told. The next run is without it.
        let first = tests.find("add_test").unwrap();
        let end = tests[first..].find('\n').unwrap();
        tests.replace_range(first..=first + end, "");
    }
}

#[test]
fn maven_that_ignores_failures_or_skips_tests_is_no_success() {
    let Some(sample) = SampleProject::of("maven", "mvn") else { return };
    let pom = std::fs::read_to_string(sample.path().join("pom.xml")).unwrap();
    let with = |option: &str| pom.replace("<runOrder>", &format!("{option}<runOrder>"));
    let test = |body: &str| {
        format!(
            "package demo;\nimport org.junit.jupiter.api.*;\nclass AdderTest {{ @Test void a() {{ {body} }} }}\n"
        )
    };
    let file = "src/test/java/demo/AdderTest.java";
    let ignored = with("<testFailureIgnore>true</testFailureIgnore>");
    let report = run(&sample, &[("pom.xml", &ignored), (file, &test("Assertions.fail();"))]);
    assert_eq!((report.success, report.failed), (Some(false), 1), "{}", report.to_text());
    fails_as(&report, TestRunProblemKind::Mismatch);
    let report = run(&sample, &[("pom.xml", &with("<skipTests>true</skipTests>"))]);
    assert_eq!(outcome(&report), (Some(false), 0, 0, 0), "{}", report.to_text());
}

#[test]
fn makefiles_that_ignore_their_recipes_are_no_success() {
    let unittest = |body: &str| {
        format!(
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): {body}\nunittest.main()\n"
        )
    };
    let (fails, passes) = (unittest("self.fail()"), unittest("pass"));
    let sample = sample!("make");
    let text = ".IGNORE:\ncheck:\n\tpython3 test_a.py\n\tpython3 test_b.py\n";
    let report = run(&sample, &[("Makefile", text), ("test_a.py", &fails), ("test_b.py", &passes)]);
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    // A makefile below, of which this one ignores the failure.
    let sample = sample!("make");
    sample.write("a/Makefile", "check:\n\tpython3 test_a.py\n").write("a/test_a.py", &fails);
    sample.write("b/Makefile", "check:\n\tpython3 test_b.py\n").write("b/test_b.py", &passes);
    let report = run_make(&sample, &["-$(MAKE) -C a check", "$(MAKE) -C b check"], &[]);
    assert_eq!((report.success, report.passed, report.failed), (Some(false), 1, 1), "{}", report.to_text());
    // Files of Ruby and Perl, one of which fails.
    let sample = sample!("ruby");
    let files: &Files = &[
        ("specs/a.rb", "raise 'x'\n"),
        (
            "specs/b.rb",
            "require 'minitest/autorun'\nclass B < Minitest::Test\n  def test_x; assert true; end\nend\n",
        ),
    ];
    let report = run_make(&sample, &["for f in specs/*.rb; do ruby $$f; done"], files);
    fails_as(&report, TestRunProblemKind::RunnerFailed);
    let sample = sample!("prove");
    let files: &Files = &[("t/a.t", "die 'bad';\n"), ("t/b.t", "use Test::More tests=>1;ok(1);\n")];
    let report = run_make(&sample, &["perl t/a.t; prove -v t/b.t"], files);
    assert_ne!(report.success, Some(true), "{}", report.to_text());
}

#[test]
fn gradle_whose_tests_are_ended_by_one_of_them_is_not_verified() {
    let sample = sample!("make");
    let class = |name: &str, body: &str| {
        format!(
            "package demo;\nimport org.junit.*;\npublic class {name} {{ @Test public void a() {{ {body} }} }}\n"
        )
    };
    let xml = "<testsuite name=\"demo.ATest\" tests=\"1\" failures=\"0\"><testcase name=\"a\" classname=\"demo.ATest\" time=\"0.1\"/></testsuite>";
    // In place of Gradle 4.4.1, which leaves this report of the two classes with `forkEvery = 1`, and exit code 0.
    let script = format!(
        "#!/bin/sh\nmkdir -p build/test-results/test\necho '{xml}' > build/test-results/test/TEST-demo.ATest.xml\necho 'BUILD SUCCESSFUL in 1s'\n"
    );
    sample.write("gradlew", &script);
    let program = sample.path().join("gradlew");
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let files = [
        ("build.gradle", "apply plugin: 'java'\n"),
        ("src/test/java/demo/ATest.java", &*class("ATest", "")),
        ("src/test/java/demo/BTest.java", &*class("BTest", "System.exit(0);")),
    ];
    let report = run(&sample, &files);
    assert_eq!(outcome(&report), (None, 1, 0, 0), "{}", report.to_text());
    tells(&report, "src/test/java/demo/BTest.java", "none of them was reported");
    assert!(report.to_text().starts_with("NOT VERIFIED"), "{}", report.to_text());
    // A build that filters its tests may have left it out.
    let report = run(&sample, &[("build.gradle", "apply plugin: 'java'\ntest { exclude '**/B*' }\n")]);
    assert_eq!(outcome(&report), (Some(true), 1, 0, 0), "{}", report.to_text());
    tells(&report, "src/test/java/demo/BTest.java", "none of them was reported");
}
