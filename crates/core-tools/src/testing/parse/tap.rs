//! TAP 12, 13 and 14 (<https://testanything.org>), as bats and others print it.

use super::line_parser::LineParser;
use super::tap_subtests::TapSubtests;
use super::tap_test_point::{TapTestPointDescription, split_time};
use super::text::{FailureLocation, append_line};
use crate::testing::results::{TestCase, TestResults, TestRunProblemKind, TestStatus};

/// The parser of TAP. Subtests (indented) are summed up by the test that follows them, so they are left out, but for
/// those that failed although that test is `ok`.
#[derive(Default)]
pub(crate) struct TapParser {
    planned: Option<u64>,
    seen: u64,
    /// The latest test: lines that explain it may follow.
    open: Option<TestCase>,
    /// The lines are of the YAML block of the open test.
    in_yaml: bool,
    bailed_out: bool,
    /// Those that failed since the latest test.
    subtests: TapSubtests,
    dialect: TapDialect,
}

/// The peculiarities of a program that prints TAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TapDialect {
    #[default]
    Standard,
    /// AVA reports what goes wrong outside of tests as failed tests beyond the plan.
    Ava,
    /// bats does not escape a `#` in a name, and puts a time between name and directive.
    Bats,
}

impl TapParser {
    /// Creates a parser of the TAP that AVA prints.
    pub(crate) fn of_ava() -> Self {
        Self { dialect: TapDialect::Ava, ..Self::default() }
    }

    /// Creates a parser of the TAP that bats prints with `--timing`.
    pub(crate) fn of_bats() -> Self {
        Self { dialect: TapDialect::Bats, ..Self::default() }
    }

    fn close_test(&mut self, results: &mut TestResults) {
        self.in_yaml = false;
        let Some(test) = self.open.take() else { return };
        let kind = match test.name.as_str() {
            _ if self.dialect != TapDialect::Ava || !test.status.is_failure() => None,
            name if name.contains(" exited with a non-zero exit code") => {
                Some(TestRunProblemKind::CollectionError)
            }
            name if name.contains(" exited due to ") => Some(TestRunProblemKind::Crashed),
            name if name.starts_with("No tests results in ") => Some(TestRunProblemKind::NoTests),
            _ => None,
        };
        match kind {
            Some(kind) => results.add_problem(kind, test.name),
            None => results.add_test(test),
        }
    }
}

/// Reads the plan: `1..N`.
fn plan(line: &str) -> Option<u64> {
    let count = line.strip_prefix("1..")?;
    count.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Reads the location of a failure in bats: `(in test file tests/a.bats, line 7)`.
fn bats_location(comment: &str) -> Option<FailureLocation> {
    let (_, after) = comment.split_once("file ")?;
    let (file, line) = after.rsplit_once(", line ")?;
    let line = line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some(FailureLocation { file: file.rsplit("file ").next()?.to_owned(), line })
}

/// Adds a line that follows a failed test to its message.
fn explain(test: &mut TestCase, line: &str) {
    if test.file.is_none()
        && let Some(location) = bats_location(line)
    {
        (test.file, test.line) = (Some(location.file), Some(location.line));
    }
    append_line(test.error.get_or_insert_default(), line);
}

impl LineParser for TapParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        if self.in_yaml {
            if line.trim() == "..." {
                self.in_yaml = false;
            } else if let Some(test) = &mut self.open {
                let time = line.trim().strip_prefix("duration_ms: ");
                match time.and_then(|time| time.trim_matches(['"', '\'']).parse().ok()) {
                    Some(time) => test.duration_ms = Some(time),
                    None if test.status.is_failure() && line.trim() != "message: |" => {
                        explain(test, line.trim());
                    }
                    None => {}
                }
            }
            return;
        }
        // The other dialects print no subtests. Their indented lines belong to the message of a test.
        if self.dialect == TapDialect::Standard && self.subtests.line(line) {
            return;
        }
        if line.trim() == "---" && line.starts_with(' ') {
            self.in_yaml = self.open.is_some();
            return;
        }
        let (ok, rest) = match (line.strip_prefix("ok"), line.strip_prefix("not ok")) {
            (_, Some(rest)) => (false, rest),
            (Some(rest), None) => (true, rest),
            (None, None) => {
                if let Some(count) = plan(line) {
                    self.planned = Some(count);
                    results.expected = Some(count);
                } else if let Some(reason) = line.strip_prefix("Bail out!") {
                    self.close_test(results);
                    self.bailed_out = true;
                    results.add_problem(TestRunProblemKind::RunnerFailed, format!("Bail out!{reason}"));
                } else if let (Some(comment), Some(test)) = (line.strip_prefix('#'), &mut self.open)
                    && test.status.is_failure()
                {
                    explain(test, comment.trim());
                }
                return;
            }
        };
        // A word that only begins with `ok`, such as `okay`, is output of a program.
        if !rest.is_empty() && !rest.starts_with(' ') {
            return;
        }
        let rest = rest.trim_start();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest[..digits].parse().ok();
        if self.dialect == TapDialect::Bats && number != Some(self.seen + 1) {
            // A test has printed it. Bats numbers its tests in their order.
            if let Some(test) = self.open.as_mut().filter(|_| number == Some(self.seen) && !ok) {
                // It had printed the line of its own result before: which of the two is the real one, nothing says.
                test.status = TestStatus::Failed;
            }
            return;
        }
        self.close_test(results);
        self.seen += 1;
        let rest = rest[digits..].trim_start();
        let TapTestPointDescription { name, excuse } = match self.dialect {
            TapDialect::Bats => TapTestPointDescription::parse_bats(rest, ok),
            _ => TapTestPointDescription::parse(rest.strip_prefix("- ").unwrap_or(rest)),
        };
        // A directive wins: a TODO that fails is expected to, and one that passes is not done.
        let status = match (&excuse, ok) {
            (Some(_), _) => TestStatus::Skipped,
            (None, true) => TestStatus::Passed,
            (None, false) => TestStatus::Failed,
        };
        let (name, time) = split_time(&name).map_or((name.as_str(), None), |(name, time)| (name, Some(time)));
        let name = if name.is_empty() { format!("test {}", self.seen) } else { name.to_owned() };
        let failed_subtests = self.subtests.take();
        if status == TestStatus::Passed {
            for subtest in &failed_subtests {
                let error = Some("it failed, and the test around it is `ok`".to_owned());
                results.add_test(TestCase {
                    error,
                    ..TestCase::new(format!("{name} > {subtest}"), TestStatus::Failed)
                });
            }
        }
        let mut test = TestCase { duration_ms: time, ..TestCase::new(name, status) };
        test.error = excuse;
        if status == TestStatus::Failed {
            for subtest in &failed_subtests {
                explain(&mut test, &format!("failed: {subtest}"));
            }
        }
        self.open = Some(test);
    }

    fn finish(&mut self, results: &mut TestResults) {
        self.close_test(results);
        match self.planned {
            // AVA counts what goes wrong outside of tests beyond its plan, so that more tests than planned are no fault
            // there.
            Some(planned) if planned < self.seen && self.dialect != TapDialect::Ava => results.add_problem(
                TestRunProblemKind::Mismatch,
                format!("{planned} tests were planned and {} reported", self.seen),
            ),
            Some(planned) if planned > self.seen && !self.bailed_out => results.add_problem(
                TestRunProblemKind::Crashed,
                format!("{planned} tests were planned and {} reported: the run ended early", self.seen),
            ),
            _ => {}
        }
    }
}
