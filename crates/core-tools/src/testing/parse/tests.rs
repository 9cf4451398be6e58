//! The parsers against what runners really print, and against anything else.

use super::*;
use crate::testing::results::{RunnerEndMarker, TestCounts, TestResults};
use crate::testing::verdict::{RunnerExit, judge};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn read(mut parser: impl LineParser, text: &str) -> TestResults {
    let mut results = TestResults::default();
    for line in text.lines() {
        parser.line(line, &mut results);
    }
    parser.finish(&mut results);
    results
}

fn xml(text: &str) -> TestResults {
    let mut results = TestResults::default();
    read_xml(text.as_bytes(), &mut results);
    results
}

/// Returns each test on a line, and then the problem of the run.
fn outline(mut results: TestResults, code: u32) -> String {
    let problem = judge(&mut results, RunnerExit::Exited(code), None);
    let mut lines: Vec<_> = results
        .tests
        .iter()
        .map(|test| {
            let location = test
                .file
                .as_ref()
                .map_or_else(String::new, |file| format!(" {file}:{}", test.line.unwrap_or(0)));
            let error = test.error.as_ref().map_or_else(String::new, |error| format!(" {error:?}"));
            format!("{} {}{location}{error}", test.status.name(), test.name)
        })
        .collect();
    lines.extend(problem.map(|problem| format!("{:?}: {}", problem.kind, problem.message)));
    lines.join("\n")
}

#[test]
fn libtest_output_among_results_is_not_a_result_and_an_unfinished_line_waits_for_its_end() {
    let text = "
     Running unittests src/lib.rs (target/debug/deps/x-1)

running 5 tests
test a ... ok
directtest b ... ok
test c - should panic ... noise
ok
test d ... ignored, not today
test e ... FAILED

failures:

---- e stdout ----
test fake ... ok
thread 'e' panicked at src/lib.rs:3:5:
boom

failures:
    e

test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
    insta::assert_snapshot!(outline(read(LibtestParser::default(), text), 101), @r#"
    passed a
    passed b
    passed c
    skipped d "not today"
    failed e src/lib.rs:3 "test fake ... ok\nthread 'e' panicked at src/lib.rs:3:5:\nboom\n"
    "#);
}

#[test]
fn a_test_binary_that_dies_is_a_crash() {
    let text = "
     Running tests/api.rs (target/debug/deps/api-1)

running 2 tests
test a ... ok
error: test failed, to rerun pass `--test api`

Caused by:
  process didn't exit successfully: `/x/api-1` (signal: 6, SIGABRT: process abort signal)
";
    let read = outline(read(LibtestParser::default(), text), 101);
    insta::assert_snapshot!(read, @r"
    passed a tests/api.rs:0
    Crashed: the test binary tests/api.rs (target/debug/deps/api-1) died with 1 of its 2 tests not reported
    ");
}

#[test]
fn what_a_test_prints_of_another_run_makes_no_crash_and_no_result() {
    const RUN: &str = "     Running unittests src/lib.rs (x)\n\nrunning 2 tests\ntest a ... ok\n@INNER@test b ... @B@\n\ntest result: @END@ @PASSED@ passed; @FAILED@ failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n     Running tests/api.rs (y)\n\nrunning 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let inners = [
        "running 1 test\n",
        "running 1 test\ntest x ... ok\n",
        "running 2 tests\n",
        "running 2 tests\ntest x ... FAILED\ntest y ... ok\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "running 1 test\ntest x ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "test result: FAILED. 0 passed; 9 failed; 0 ignored; 0 measured; 0 filtered out\n",
        "     Running tests/z.rs (z)\n\nrunning 1 test\ntest x ... ok\nerror: test failed, to rerun pass `--lib`\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n",
    ];
    for inner in inners {
        let run = |b: &str, end: &str, passed: &str, failed: &str| {
            let text = RUN.replace("@INNER@", inner).replace("@B@", b).replace("@END@", end);
            text.replace("@PASSED@", passed).replace("@FAILED@", failed)
        };
        let passes = read(LibtestParser::default(), &run("ok", "ok.", "2", "0"));
        // A line that is a result in every way is no more than a contradiction.
        let contradicts = inner.ends_with("test x ... ok\n");
        let passing = outline(passes, 0);
        assert!(!passing.contains("Crashed"), "{inner}\n{passing}");
        if !contradicts {
            assert_eq!(passing, "passed a\npassed b\npassed c tests/api.rs:0", "{inner}");
        }
        let fails = outline(read(LibtestParser::default(), &run("FAILED", "FAILED.", "1", "1")), 101);
        assert!(fails.contains("failed b"), "{inner}\n{fails}");
    }
}

#[test]
fn a_test_that_ends_its_process_with_exit_code_0_is_a_crash_and_what_follows_is_read() {
    let text = "     Running unittests src/lib.rs (x)\n\nrunning 2 tests\ntest a ... ok\n     Running tests/api.rs (y)\n\nrunning 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let read = outline(read(LibtestParser::default(), text), 0);
    assert!(read.starts_with("passed a\npassed c tests/api.rs:0\nCrashed: "), "{read}");
}

#[test]
fn tap_directives_win_and_a_short_run_is_a_crash() {
    let text = "TAP version 13\n1..5\nok 1 - a # SKIP why\nnot ok 2 b # TODO later\n  ---\n  x: 1\n  ...\n    ok 1 - sub\nnot ok 3 - c\n# (in test file t/a.bats, line 7)\nok 4 - d # 1 in 12ms\n";
    insta::assert_snapshot!(outline(read(TapParser::default(), text), 1), @r#"
    skipped a "why"
    skipped b "later"
    failed c t/a.bats:7 "(in test file t/a.bats, line 7)"
    passed d # 1
    Crashed: 5 tests were planned and 4 reported: the run ended early
    "#);
}

#[test]
fn a_package_of_go_that_does_not_build_is_a_compile_error() {
    let text = "FAIL\texample.org/x [build failed]\n";
    assert_eq!(outline(read(GoParser::default(), text), 2), "CompileError: example.org/x [build failed]");
}

#[test]
fn junit_recorded_from_bun_deno_gradle_and_phpunit_is_read() {
    insta::assert_snapshot!("bun", outline(xml(include_str!("recorded/bun.xml")), 1));
    insta::assert_snapshot!("deno", outline(xml(include_str!("recorded/deno.xml")), 1));
    insta::assert_snapshot!("gradle", outline(xml(include_str!("recorded/gradle.xml")), 1));
    insta::assert_snapshot!("phpunit", outline(xml(include_str!("recorded/phpunit.xml")), 2));
}

#[test]
fn events_recorded_from_mix_are_read() {
    insta::assert_snapshot!("mix", outline(read(EventsParser, include_str!("recorded/mix.ndjson")), 2));
}

#[test]
fn tests_beside_a_suite_in_a_suite_and_suites_without_numbers_are_no_contradiction() {
    let beside = r#"<testsuite tests="2" failures="0"><testcase name="a"/><testsuite tests="1" failures="0">
        <testcase name="b"/></testsuite></testsuite>"#;
    assert_eq!(outline(xml(beside), 0), "passed a\npassed b");
    let without = r#"<x><testsuite tests="1" failures="0"><testcase name="a"/></testsuite><testsuite>
        <testcase name="b"/></testsuite></x>"#;
    assert_eq!(outline(xml(without), 0), "passed a\npassed b");
    let short = r#"<testsuite tests="2" failures="0"><testcase name="a"/></testsuite>"#;
    assert!(outline(xml(short), 0).contains("Mismatch"));
}

#[test]
fn a_test_of_phpunit_that_is_only_risky_passed() {
    let risky = r#"<testsuite tests="1" errors="1" failures="0"><testcase name="a">
        <error type="PHPUnit\Framework\RiskyTestError">no assertions</error></testcase></testsuite>"#;
    assert!(outline(xml(risky), 0).starts_with("passed a"));
}

#[test]
fn ctest_is_read_while_it_runs() {
    let mut results = read(CtestParser, include_str!("recorded/ctest.txt"));
    results.runner_end = RunnerEndMarker::Missing;
    insta::assert_snapshot!(outline(results, 1));
}

#[test]
fn trx_is_read() {
    let trx = r#"<TestRun><Results><UnitTestResult testName="A.Passes" outcome="Passed" duration="00:00:01.5000000"/><UnitTestResult testName="A.Fails" outcome="Failed" duration="00:00:00"><Output><StdOut>said</StdOut><ErrorInfo><Message>no</Message><StackTrace>at A.Fails() in /p/A.cs:line 3</StackTrace></ErrorInfo></Output></UnitTestResult><UnitTestResult testName="A.Skips" outcome="NotExecuted"/></Results></TestRun>"#;
    let results = xml(trx);
    assert_eq!(results.tests[0].duration_ms, Some(1500.0));
    insta::assert_snapshot!(outline(results, 1), @r#"
    passed A.Passes
    failed A.Fails "no\nat A.Fails() in /p/A.cs:line 3\nsaid"
    skipped A.Skips
    "#);
}

#[test]
fn a_report_that_breaks_off_keeps_what_came_and_is_no_success() {
    let results = xml("<testsuite tests=\"2\" failures=\"0\"><testcase name=\"a\"/><testcase name=\"b\"");
    assert!(outline(results, 0).starts_with("passed a\nCrashed: "));
}

/// Anything, made of what the formats are made of.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: [&str; 40] = [
        "test ",
        " ... ",
        "ok",
        "FAILED",
        "ignored, ",
        "running 3 tests",
        "\n",
        "failures:",
        "---- a stdout ----",
        "test result: ok. 1 passed; 0 failed; 0 ignored",
        "not ok ",
        "1..",
        "# SKIP",
        "# TODO",
        "  ---",
        "  ...",
        "99999999999999999999",
        "{\"event\":\"test\",\"name\":\"a\",\"status\":\"passed\"}",
        "{\"Action\":\"run\",\"Test\":\"a/b\"}",
        "{\"Action\":\"fail\",\"Test\":\"a/b\"}",
        "{\"type\":\"test\",\"event\":\"failed\",\"name\":\"a$b\"}",
        "<testsuite tests=\"",
        "1\" failures=\"0\">",
        "<testcase name=\"",
        "\"/>",
        "<failure>",
        "</failure>",
        "</testcase>",
        "<![CDATA[",
        "]]>",
        "&lt;",
        "&#x110000;",
        "é",
        "\u{0}",
        "     Running ",
        "error: test failed",
        "panicked at a.rs:1:2",
        "in 3ms",
        "file a, line 3",
        "<skipped/>",
    ];
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in pieces()) {
        for results in [
            read(LibtestParser::default(), &text),
            read(TapParser::default(), &text),
            read(GoParser::default(), &text),
            read(CtestParser, &text),
            read(NextestParser::default(), &text),
            read(EventsParser, &text),
            xml(&text),
        ] {
            prop_assert_eq!(results.tests.len() as u64, results.counts.total());
            let _ = outline(results, 1);
        }
    }
}

#[test]
fn twice_as_much_takes_about_twice_as_long() {
    let time = |count: usize| {
        let libtest: String = std::iter::once(format!("running {count} tests\n"))
            .chain((0..count).map(|index| format!("test module::number_{index} ... ok\n")))
            .collect();
        let go: String = (0..count)
            .map(|index| format!("{{\"Action\":\"run\",\"Test\":\"T{index}\"}}\n{{\"Action\":\"pass\",\"Test\":\"T{index}\"}}\n"))
            .collect();
        let cases: String = (0..count).map(|index| format!("<testcase name=\"a{index}\"/>")).collect();
        let document = format!("<testsuite>{cases}</testsuite>");
        let started = Instant::now();
        assert_eq!(read(LibtestParser::default(), &libtest).counts.passed, count as u64);
        assert_eq!(read(GoParser::default(), &go).counts.passed, count as u64);
        assert_eq!(xml(&document).counts.passed, count as u64);
        started.elapsed()
    };
    let (few, many) = (time(5_000), time(50_000));
    // Ten times as much; a quadratic parser would take a hundred times as long.
    assert!(many < few * 40 + Duration::from_millis(500), "{few:?}, {many:?}");
}

#[test]
fn tests_of_nextest_that_still_run_are_no_ignored_ones() {
    // As nextest wrote it: the suite ends while `z` still runs, and again after it.
    let suite = |event: &str| {
        format!(
            "{{\"type\":\"suite\",\"event\":\"{event}\",\"ignored\":1,\"nextest\":{{\"crate\":\"x\",\"test_binary\":\"x\"}}}}\n"
        )
    };
    let test = |event: &str, name: &str| {
        format!("{{\"type\":\"test\",\"event\":\"{event}\",\"name\":\"x::x${name}\"}}\n")
    };
    let begun = test("started", "i") + &suite("ok") + &test("started", "z") + &test("ok", "a") + &suite("ok");
    let whole = begun.clone() + &test("failed", "z") + &suite("failed");
    assert_eq!(
        read(NextestParser::default(), &whole).counts,
        TestCounts { passed: 1, failed: 1, skipped: 1 }
    );
    assert_eq!(
        read(NextestParser::of_selection(), &whole).counts,
        TestCounts { passed: 1, failed: 1, skipped: 0 }
    );
    // Where the run was cut off, the later one was running.
    let cut_off = read(NextestParser::default(), &begun);
    assert_eq!((cut_off.counts.skipped, cut_off.running.back().map(String::as_str)), (1, Some("x::x z")));
}
