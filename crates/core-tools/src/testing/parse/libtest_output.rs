//! The text of libtest among anything else that a command prints.

use super::libtest::LibtestParser;
use super::line_parser::LineParser;
use crate::testing::results::{TestProcessReport, TestResults};

/// Finds the suites of libtest in the output of a command: from `running 2 tests` to `test result: …`.
#[derive(Default)]
pub(super) struct LibtestOutput {
    parser: LibtestParser,
    results: TestResults,
    is_open: bool,
    has_suite: bool,
}

impl LibtestOutput {
    /// Reads a line of the output.
    pub(super) fn line(&mut self, line: &str) {
        let is_first = line
            .strip_prefix("running ")
            .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
            .is_some_and(|count| count.parse::<u64>().is_ok());
        self.is_open |= is_first;
        self.has_suite |= is_first;
        if self.is_open {
            self.parser.line(line, &mut self.results);
            self.is_open = !line.starts_with("test result: ");
        }
    }

    /// Returns the report of all suites, if there was one.
    pub(super) fn report(mut self) -> Option<TestProcessReport> {
        if !self.has_suite {
            return None;
        }
        self.parser.finish(&mut self.results);
        Some(TestProcessReport {
            runner: Some("cargo".to_owned()),
            results: self.results,
            ..TestProcessReport::default()
        })
    }
}
