//! Parsers of what a runner prints while it runs.

use crate::testing::results::TestResults;

/// A parser of one runner's machine format, line by line.
///
/// A parser never fails: what it does not know it leaves out, and what contradicts itself it adds as a problem.
pub(crate) trait LineParser: Send {
    /// Reads one line, without its end.
    fn line(&mut self, line: &str, results: &mut TestResults);

    /// Reads one line of standard error, where some runners print what their tests came to.
    fn error_line(&mut self, _: &str, _: &mut TestResults) {}

    /// Reads one line of the file of events, without its end. Only a run that has both reads them differently.
    fn event(&mut self, line: &str, results: &mut TestResults) {
        self.line(line, results);
    }

    /// Ends the reading: no more lines come.
    fn finish(&mut self, results: &mut TestResults);
}

/// A parser for a runner that prints nothing for machines.
pub(crate) struct IgnoreLines;

impl LineParser for IgnoreLines {
    fn line(&mut self, _: &str, _: &mut TestResults) {}
    fn finish(&mut self, _: &mut TestResults) {}
}
