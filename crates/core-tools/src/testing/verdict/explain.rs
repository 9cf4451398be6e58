//! The reason of a failure without a report, from what the runner printed for people.

use crate::testing::results::{RunnerEndMarker, TestResults, TestRunProblem, TestRunProblemKind};
use crate::testing::runner::TestRunner;

/// Returns the problem that a failed runner names in its output, if it is one that we know.
pub(super) fn explain_failure(
    runner: TestRunner,
    text: &str,
    results: &TestResults,
) -> Option<TestRunProblem> {
    let output = FailedRunnerOutput { runner, text, results };
    let TestRunFailureReason { kind, line } = match runner {
        TestRunner::Cargo | TestRunner::Nextest => output.cargo(),
        TestRunner::Vitest
        | TestRunner::Jest
        | TestRunner::Mocha
        | TestRunner::Ava
        | TestRunner::Playwright
            if output.lacks_a_module() =>
        {
            output.missing_module()
        }
        TestRunner::Vitest | TestRunner::Jest | TestRunner::Mocha | TestRunner::Ava | TestRunner::Node => {
            output.javascript()
        }
        TestRunner::Pytest => output.pytest(),
        TestRunner::Deno => output.deno(),
        TestRunner::Bats => {
            let phrases = ["syntax error", "does not exist", "ERROR"];
            output.without_tests(TestRunProblemKind::CollectionError, &phrases)
        }
        TestRunner::Maven => output.maven(),
        TestRunner::Mix => output.mix(),
        TestRunner::Gradle => output.gradle(),
        TestRunner::Ctest => output.without_tests(TestRunProblemKind::NoTests, &["No tests were found"]),
        _ => None,
    }?;
    let mut message = line.trim().trim_start_matches("[ERROR] ").to_owned();
    if kind == TestRunProblemKind::RunnerMissing {
        message.push_str(&format!(". It is usually installed so: {}", runner.installation()));
    }
    Some(TestRunProblem::new(kind, message))
}

/// A problem, and the line that says so.
struct TestRunFailureReason<'a> {
    kind: TestRunProblemKind,
    line: &'a str,
}

/// The output of a runner that failed, and the results that it had reported by then.
struct FailedRunnerOutput<'a> {
    runner: TestRunner,
    text: &'a str,
    results: &'a TestResults,
}

impl<'a> FailedRunnerOutput<'a> {
    /// Returns the first line that contains one of `phrases`.
    fn line_with(&self, phrases: &[&str]) -> Option<&'a str> {
        self.text.lines().find(|line| phrases.iter().any(|phrase| line.contains(phrase)))
    }

    fn reason(&self, kind: TestRunProblemKind, phrases: &[&str]) -> Option<TestRunFailureReason<'a>> {
        self.line_with(phrases).map(|line| TestRunFailureReason { kind, line })
    }

    /// Returns the reason only if no test was reported: a line among tests may have been printed by one of them.
    fn without_tests(&self, kind: TestRunProblemKind, phrases: &[&str]) -> Option<TestRunFailureReason<'a>> {
        if self.has_tests() { None } else { self.reason(kind, phrases) }
    }

    fn has_tests(&self) -> bool {
        self.results.counts.total() > 0
    }

    fn cargo(&self) -> Option<TestRunFailureReason<'a>> {
        let missing = ["error: no such command: `nextest`", "error: no such subcommand"];
        let broken = ["error: could not compile", "error: failed to parse manifest"];
        self.reason(TestRunProblemKind::RunnerMissing, &missing)
            .or_else(|| self.without_tests(TestRunProblemKind::CompileError, &broken))
    }

    fn lacks_a_module(&self) -> bool {
        self.line_with(&["MODULE_NOT_FOUND"]).is_some()
            // A test may fail with the same code on purpose. Only a path of dependencies tells that the run lacks a
            // module.
            && self.line_with(&["node_modules"]).is_some()
            && self.results.runner_end != RunnerEndMarker::Reached
    }

    /// Returns the module that was not found: the runner itself, or one that a test file imports.
    fn missing_module(&self) -> Option<TestRunFailureReason<'a>> {
        const RUNNERS: [&str; 5] = [
            "vitest/vitest.mjs",
            "jest/bin/jest.js",
            "mocha/bin/mocha.js",
            "ava/entrypoints/cli.mjs",
            "@playwright/test/cli.js",
        ];
        let line = self.line_with(&["Cannot find module"])?;
        let is_runner = RUNNERS.iter().any(|runner| line.contains(runner));
        let kind =
            if is_runner { TestRunProblemKind::RunnerMissing } else { TestRunProblemKind::CollectionError };
        Some(TestRunFailureReason { kind, line })
    }

    fn javascript(&self) -> Option<TestRunFailureReason<'a>> {
        if self.has_tests() {
            return None;
        }
        let no_files = [
            "No test files found",
            "No tests found",
            "Could not find '",
            "Couldn’t find any files to test",
            "Couldn’t find any matching tests",
        ];
        if let Some(reason) = self.reason(TestRunProblemKind::NoTests, &no_files) {
            return Some(reason);
        }
        // AVA plans no tests, and vitest leaves it to its own reporter to print that there are none.
        let ended_without_files = match self.runner {
            TestRunner::Ava => self.results.expected == Some(0),
            TestRunner::Vitest => self.results.runner_end == RunnerEndMarker::Reached,
            _ => false,
        };
        if ended_without_files && self.results.problems.is_empty() {
            let line = "no test was executed: no test file matches";
            return Some(TestRunFailureReason { kind: TestRunProblemKind::NoTests, line });
        }
        let errors = ["SyntaxError", "ReferenceError", "Cannot find module", "Error: "];
        self.reason(TestRunProblemKind::CollectionError, &errors)
    }

    fn pytest(&self) -> Option<TestRunFailureReason<'a>> {
        // The error itself is on the last line of what follows, which the report has as the runner's output.
        self.without_tests(TestRunProblemKind::CollectionError, &["while loading conftest", "ERROR: "])
    }

    fn deno(&self) -> Option<TestRunFailureReason<'a>> {
        let none = ["No test modules found"];
        // The general `error: ` comes last, because the other two lines begin with it as well.
        self.without_tests(TestRunProblemKind::CompileError, &["Type checking failed"])
            .or_else(|| self.without_tests(TestRunProblemKind::NoTests, &none))
            .or_else(|| self.without_tests(TestRunProblemKind::CollectionError, &["error: "]))
    }

    fn maven(&self) -> Option<TestRunFailureReason<'a>> {
        self.reason(TestRunProblemKind::Crashed, &["The forked VM terminated without"])
            .or_else(|| self.without_tests(TestRunProblemKind::CompileError, &["COMPILATION ERROR"]))
            .or_else(|| self.without_tests(TestRunProblemKind::RunnerMissing, &["Could not resolve"]))
            .or_else(|| self.without_tests(TestRunProblemKind::RunnerFailed, &["[ERROR]"]))
    }

    /// A subproject without one of the selected tests makes Gradle fail, also where they ran in another one.
    fn gradle(&self) -> Option<TestRunFailureReason<'a>> {
        let kind =
            if self.has_tests() { TestRunProblemKind::RunnerFailed } else { TestRunProblemKind::NoTests };
        self.reason(kind, &["No tests found for given includes"])
    }

    fn mix(&self) -> Option<TestRunFailureReason<'a>> {
        let no_tests = ["There are no tests to run", "no tests to run", "did not match"];
        let broken = ["Compilation error", "SyntaxError", "TokenMissingError", "** ("];
        self.without_tests(TestRunProblemKind::NoTests, &no_tests)
            .or_else(|| self.without_tests(TestRunProblemKind::CompileError, &broken))
    }
}
