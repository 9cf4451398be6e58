//! The engine's counts and exit codes against those that the runner itself prints, run beside it in a plain
//! environment, as in a terminal.

use crate::support::SampleProject;
use std::process::Command;

/// Passed, failed, skipped.
type RunCounts = (u64, u64, u64);

/// Returns what the commands print, and the first exit code that is not 0.
fn bare(sample: &SampleProject, commands: &[&str]) -> (String, i32) {
    let mut printed = String::new();
    let mut code = 0;
    for command in commands {
        let mut words = command.split(' ');
        let mut bare = Command::new(words.next().unwrap());
        bare.args(words).current_dir(sample.path()).env_clear();
        for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "LANG", "JAVA_HOME", "GOPATH", "GOCACHE"] {
            bare.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let output = bare.output().unwrap();
        printed.push_str(&String::from_utf8_lossy(&output.stdout));
        printed.push_str(&String::from_utf8_lossy(&output.stderr));
        if code == 0 {
            code = output.status.code().unwrap();
        }
    }
    (printed, code)
}

/// The number in front of each of these words, all together.
fn before(text: &str, words: &[&str]) -> u64 {
    let pieces: Vec<_> =
        text.split([' ', ',', '|', ';', '\n', '=']).filter(|piece| !piece.is_empty()).collect();
    let number = |pair: &[&str]| words.contains(&pair[1]).then(|| pair[0].parse::<u64>().ok()).flatten();
    pieces.windows(2).filter_map(number).sum()
}

/// The number behind this word.
fn after(text: &str, word: &str) -> u64 {
    let (_, rest) = text.rsplit_once(word).unwrap_or_else(|| panic!("no {word:?} in {text}"));
    let digits = |c: char| c.is_ascii_digit();
    let rest = rest.trim_start();
    rest[..rest.find(|c| !digits(c)).unwrap_or(rest.len())].parse().unwrap()
}

/// The lines that begin like this, after blanks.
fn lines(text: &str, start: &str) -> String {
    text.lines().filter(|line| line.trim_start().starts_with(start)).collect::<Vec<_>>().join("\n")
}

/// Runs both, and compares.
#[track_caller]
fn same(project: &str, program: &str, runner: &str, commands: &[&str], counts: fn(&str) -> RunCounts) {
    let Some(sample) = SampleProject::of(project, program) else { return };
    let report = sample.run(runner, "");
    let (printed, code) = bare(&sample, commands);
    let ours = (report.passed, report.failed, report.skipped);
    assert_eq!(ours, counts(&printed), "{}\n\nbare:\n{printed}", report.to_text());
    assert_eq!(report.exit_code, u32::try_from(code).ok(), "{}\n\nbare:\n{printed}", report.to_text());
    assert!(!report.is_success() && report.error.is_none(), "{}", report.to_text());
}

fn libtest(text: &str) -> RunCounts {
    let results = lines(text, "test result:");
    (before(&results, &["passed"]), before(&results, &["failed"]), before(&results, &["ignored"]))
}

#[test]
fn of_cargo_test_they_are_those_of_the_terminal() {
    same("cargo", "cargo", "cargo", &["cargo test --no-fail-fast"], |text| {
        // One test prints a result that is none.
        libtest(&text.replace("test result: ok. 9 passed", ""))
    });
}

#[test]
fn of_nextest_they_are_those_of_the_terminal() {
    let commands = ["cargo nextest run --no-fail-fast", "cargo test --doc"];
    same("cargo", "cargo-nextest", "nextest", &commands, |text| {
        let summary = lines(text, "Summary [");
        let docs = libtest(lines(text, "test result:").lines().last().unwrap());
        (
            before(&summary, &["passed"]) + docs.0,
            before(&summary, &["failed"]) + docs.1,
            before(&summary, &["skipped"]) + docs.2,
        )
    });
}

#[test]
fn of_pytest_they_are_those_of_the_terminal() {
    same("pytest", "pytest", "pytest", &[".venv/bin/python -m pytest -p no:cacheprovider"], |text| {
        let summary = text.trim_end().lines().last().unwrap();
        (
            before(summary, &["passed"]),
            before(summary, &["failed", "error", "errors"]),
            before(summary, &["skipped", "xfailed"]),
        )
    });
}

#[test]
fn of_bats_they_are_those_of_the_terminal() {
    same("bats", "bats", "bats", &["env TERM=dumb bats --formatter pretty tests"], |text| {
        let (tests, failed) = (before(text, &["tests"]), before(text, &["failure", "failures"]));
        let skipped = before(text, &["skipped"]);
        (tests - failed - skipped, failed, skipped)
    });
}

#[test]
fn of_node_they_are_those_of_the_terminal() {
    same("node", "node", "node", &["node --test"], |text| {
        let skipped = after(text, " skipped ") + after(text, " todo ");
        (after(text, " pass "), after(text, " fail ") + after(text, " cancelled "), skipped)
    });
}

#[test]
fn of_mocha_they_are_those_of_the_terminal() {
    same("mocha", "mocha", "mocha", &["node node_modules/mocha/bin/mocha.js"], |text| {
        (before(text, &["passing"]), before(text, &["failing"]), before(text, &["pending"]))
    });
}

#[test]
fn of_jest_they_are_those_of_the_terminal() {
    same("jest", "jest", "jest", &["node node_modules/jest/bin/jest.js --ci"], |text| {
        let summary = lines(text, "Tests:");
        (before(&summary, &["passed"]), before(&summary, &["failed"]), before(&summary, &["skipped", "todo"]))
    });
}

#[test]
fn of_vitest_they_are_those_of_the_terminal() {
    same("vitest", "vitest", "vitest", &["node node_modules/vitest/vitest.mjs run"], |text| {
        let summary = lines(text, "Tests ");
        (before(&summary, &["passed"]), before(&summary, &["failed"]), before(&summary, &["skipped", "todo"]))
    });
}

#[test]
fn of_ava_they_are_those_of_the_terminal() {
    same("ava", "ava", "ava", &["node node_modules/ava/entrypoints/cli.mjs"], |text| {
        let passed = text.lines().filter(|line| line.trim_start().starts_with('✔')).count() as u64;
        let text = text.replace("tests ", "").replace("test ", "");
        (passed, before(&text, &["failed"]), before(&text, &["skipped", "todo"]))
    });
}

#[test]
fn of_playwright_they_are_those_of_the_terminal() {
    let commands = ["node node_modules/@playwright/test/cli.js test --reporter=line"];
    same("playwright", "@playwright/test", "playwright", &commands, |text| {
        (before(text, &["passed"]), before(text, &["failed"]), before(text, &["skipped"]))
    });
}

#[test]
fn of_rspec_they_are_those_of_the_terminal() {
    same("rspec", "rspec", "rspec", &["rspec"], |text| {
        let summary = text.lines().find(|line| line.contains(" examples, ")).unwrap();
        let (failed, pending) = (before(summary, &["failures"]), before(summary, &["pending"]));
        (before(summary, &["examples"]) - failed - pending, failed, pending)
    });
}

#[test]
fn of_go_they_are_those_of_the_terminal() {
    same("go", "go", "go", &["go test -v -count=1 ./..."], |text| {
        // A test with subtests counts as well as they do.
        let told: Vec<_> = text.lines().map(str::trim_start).collect();
        let count = |start: &str| told.iter().filter(|line| line.starts_with(start)).count() as u64;
        (count("--- PASS"), count("--- FAIL"), count("--- SKIP"))
    });
}

#[test]
fn of_ctest_they_are_those_of_the_terminal() {
    let commands = ["cmake -S . -B build", "cmake --build build", "ctest --test-dir build"];
    same("ctest", "ctest", "ctest", &commands, |text| {
        let summary = text.lines().find(|line| line.contains("% tests passed")).unwrap();
        let (failed, all) = (before(summary, &["tests"]), after(summary, "out of"));
        let disabled = text.matches("***Not Run (Disabled)").count() as u64;
        (all - failed, failed, disabled)
    });
}

#[test]
fn of_maven_they_are_those_of_the_terminal() {
    same("maven", "mvn", "maven", &["mvn --batch-mode test"], |text| {
        let (failures, errors) = (after(text, "Failures:"), after(text, "Errors:"));
        let (skipped, run) = (after(text, "Skipped:"), after(text, "Tests run:"));
        (run - failures - errors - skipped, failures + errors, skipped)
    });
}

#[test]
fn of_make_the_exit_code_is_that_of_the_terminal() {
    let Some(sample) = SampleProject::of("make", "make") else { return };
    let report = sample.run("make", "");
    let (_, code) = bare(&sample, &["make test"]);
    assert_eq!(report.exit_code, u32::try_from(code).ok(), "{}", report.to_text());
    assert_eq!(report.success, Some(false), "{}", report.to_text());
}
