//! A report as text for people.

use super::test_report::TestReport;
use crate::testing::results::TestStatus;
use std::fmt::Write as _;

impl TestReport {
    /// Returns the whole report as text, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} passed, {} failed, {} skipped in {}.{:03} s ({}, exit code {})",
            match self.success {
                Some(true) => "ok",
                Some(false) => "FAILED",
                None => "NOTHING VERIFIED (the command succeeded and reported no test that was executed)",
            },
            self.passed,
            self.failed,
            self.skipped,
            self.duration_ms / 1000,
            self.duration_ms % 1000,
            self.runner,
            self.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        );
        for (count, what) in
            [(self.flaky, "flaky: passed after an attempt that failed"), (self.deselected, "not selected")]
        {
            if count > 0 {
                let _ = write!(text, "\n{count} {what}");
            }
        }
        if let Some(error) = &self.error {
            let _ = write!(text, "\nerror: {}", error.message);
        }
        let explains =
            self.commands.len() > 1 || self.commands.iter().any(|command| command.runner.is_none());
        for command in self.commands.iter().filter(|_| explains) {
            let _ = write!(text, "\ncommand: {command}");
        }
        for diagnostic in &self.diagnostics {
            let _ = write!(text, "\n{diagnostic}");
        }
        for note in &self.notes {
            let _ = write!(text, "\nnote: {note}");
        }
        for test in self.tests.iter().filter(|test| test.status != TestStatus::Passed || test.flaky) {
            let status = if test.flaky { "flaky" } else { test.status.name() };
            let _ = write!(text, "\n{status}: {}", test.name);
            if let Some(attempts) = test.attempts {
                let _ = write!(text, " [attempt {attempts}]");
            }
            if let Some(file) = &test.file {
                let _ = write!(text, " ({file}");
                if let Some(line) = test.line {
                    let _ = write!(text, ":{line}");
                }
                text.push(')');
            }
            for line in test.error.iter().flat_map(|error| error.lines()) {
                let _ = write!(text, "\n    {line}");
            }
        }
        if let Some(output) = &self.output {
            let _ = write!(text, "\n--- output ---\n{}", output.trim_end());
        }
        let _ = write!(text, "\n$ {}", self.command);
        text
    }
}
