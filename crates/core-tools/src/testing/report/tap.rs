//! A report as TAP 14 (<https://testanything.org/tap-version-14-specification.html>).

use super::test_report::TestReport;
use crate::testing::results::TestStatus;
use std::fmt::Write as _;

impl TestReport {
    /// Returns the report as a TAP 14 document, whatever runner made it: the plan, then each test of the
    /// report, with a YAML block for a failure.
    ///
    /// A run that went wrong as a whole ends with `Bail out!`, so that no harness takes it for a pass. So does
    /// a failed run whose report leaves out tests.
    pub fn to_tap(&self) -> String {
        let mut tap = format!("TAP version 14\n1..{}", self.tests.len());
        if self.tests.is_empty() {
            tap.push_str(match self.success {
                None => " # SKIP nothing was verified: no test was reported",
                Some(_) => " # SKIP no tests",
            });
        }
        tap.push('\n');
        for (index, test) in self.tests.iter().enumerate() {
            let ok = if test.status.is_failure() { "not ok" } else { "ok" };
            let _ = write!(tap, "{ok} {} - {}", index + 1, escaped(&test.name));
            if test.status == TestStatus::Skipped {
                let reason = test.error.as_deref().and_then(|error| error.lines().next());
                let _ = write!(tap, " # SKIP {}", escaped(reason.unwrap_or_default()));
            }
            // A test without a name and a directive without a reason would leave a blank at the end of the line.
            let length = tap.trim_end_matches(' ').len();
            tap.truncate(length);
            tap.push('\n');
            if test.status.is_failure() || test.duration_ms.is_some() {
                tap.push_str("  ---\n");
                let _ = writeln!(tap, "  status: {}", test.status.name());
                if let Some(duration) = test.duration_ms {
                    let _ = writeln!(tap, "  duration_ms: {duration}");
                }
                if let Some(file) = &test.file {
                    // A JSON string is a YAML string.
                    let _ = writeln!(tap, "  file: {}", serde_json::Value::from(file.as_str()));
                }
                if let Some(line) = test.line {
                    let _ = writeln!(tap, "  line: {line}");
                }
                if let (true, Some(error)) = (test.status.is_failure(), &test.error) {
                    let _ = writeln!(tap, "  message: {}", serde_json::Value::from(error.as_str()));
                }
                tap.push_str("  ...\n");
            }
        }
        for tests in &self.not_run {
            let _ = writeln!(tap, "# not run: {}", tests.to_string().replace('\n', " "));
        }
        if let Some(error) = &self.error {
            let _ = writeln!(tap, "Bail out! {}", escaped(&error.message));
        } else if self.success.is_none() && !self.tests.is_empty() {
            tap.push_str("Bail out! not all tests that may have run were reported\n");
        } else if self.truncated && self.is_failure() {
            tap.push_str("Bail out! the report leaves out tests\n");
        }
        tap
    }
}

/// Returns `text` on one line, with `#` and `\` escaped as TAP 14 requires.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '#' => escaped.extend(['\\', c]),
            // A line break in a name would begin a line that a harness reads as TAP.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::results::{TestCase, TestRunProblem, TestRunProblemKind};

    #[test]
    fn names_with_special_characters_and_line_ends_stay_on_their_line() {
        let mut report = TestReport::new("bats");
        report.tests = vec![
            TestCase { error: Some("a\nb".into()), ..TestCase::new("first\n# SKIP\\", TestStatus::Failed) },
            TestCase { error: Some("why".into()), ..TestCase::new("二", TestStatus::Skipped) },
        ];
        report.error = Some(TestRunProblem::new(TestRunProblemKind::Crashed, "died\nhere"));
        insta::assert_snapshot!(report.to_tap(), @r#"
        TAP version 14
        1..2
        not ok 1 - first \# SKIP\\
          ---
          status: failed
          message: "a\nb"
          ...
        ok 2 - 二 # SKIP why
        Bail out! died here
        "#);
    }
}
