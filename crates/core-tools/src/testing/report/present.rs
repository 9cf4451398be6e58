//! The last step of a report: failures first, secrets masked, paths relative, and no larger than requested.

use super::foreign_frames::without_foreign_frames;
use super::test_report::TestReport;
use crate::testing::results::{OutputExcerpt, TestCase, TestStatus};

/// The number of bytes of a runner's output in a report.
const MAX_OUTPUT_BYTES: usize = 8_000;
/// The number of bytes of one message in a report.
const MAX_MESSAGE_BYTES: usize = 4_000;
/// The number of bytes of a message where many tests failed.
const MIN_MESSAGE_BYTES: usize = 200;
/// The number of bytes of one command of a project's own test command.
const MAX_COMMAND_BYTES: usize = 500;
/// The number of bytes that a test takes in JSON beside its name, its message and its file.
const TEST_OVERHEAD_BYTES: usize = 48;

/// Orders, masks and shortens a report. Its tests take at most `max_bytes`; passing ones are left out first.
/// Paths beneath `folder` become relative to it.
pub(crate) fn present(
    report: &mut TestReport,
    folder: &str,
    redact: impl Fn(&str) -> String,
    max_bytes: usize,
) {
    // The sort is stable, so that tests of the same status stay in the order of the runner.
    report.tests.sort_by_key(|test| match test.status {
        status if status.is_failure() => 0,
        TestStatus::Skipped => 2,
        _ if test.flaky => 1,
        _ => 3,
    });
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    present_tests(report, &prefix, &redact, max_bytes);
    if let Some(error) = &mut report.error {
        error.message =
            OutputExcerpt::new(&redact(&error.message.replace(&prefix, "")), MAX_MESSAGE_BYTES).text;
    }
    for command in &mut report.commands {
        command.command = OutputExcerpt::new(&redact(&command.command), MAX_COMMAND_BYTES).text;
        command.note = command.note.take().map(|note| redact(&note.replace(&prefix, "")));
    }
    for tests in &mut report.not_run {
        tests.why = redact(&tests.why.replace(&prefix, ""));
        for what in &mut tests.what {
            *what = redact(&what.replace(&prefix, ""));
        }
    }
    for diagnostic in &mut report.diagnostics {
        diagnostic.message = redact(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    if let Some(output) = &mut report.output {
        let redacted = redact(output);
        // The end is kept, because a runner prints its error last.
        let start = redacted.ceil_char_boundary(redacted.len().saturating_sub(MAX_OUTPUT_BYTES));
        report.truncated |= start > 0;
        *output = redacted[start..].to_owned();
    }
}

fn present_tests(report: &mut TestReport, prefix: &str, redact: &impl Fn(&str) -> String, max_bytes: usize) {
    let mut room = max_bytes;
    let max_message_bytes = max_message_bytes(&report.tests, max_bytes);
    for mut test in std::mem::take(&mut report.tests) {
        report.truncated |= present_test(&mut test, prefix, redact, max_message_bytes);
        match room.checked_sub(size(&test)) {
            Some(rest) => {
                room = rest;
                report.tests.push(test);
            }
            // A smaller test that comes later may still fit, so the loop goes on.
            None if test.status.is_failure() => report.omitted_failures += 1,
            None => report.omitted_others += 1,
        }
    }
    report.truncated |= report.omitted_failures + report.omitted_others > 0;
}

/// Returns the number of bytes that the message of each failure may have, so that the names of all failures fit.
fn max_message_bytes(tests: &[TestCase], max_bytes: usize) -> usize {
    let failures: Vec<_> = tests.iter().filter(|test| test.status.is_failure()).collect();
    let without_message = |test: &TestCase| size(test) - test.error.as_ref().map_or(0, String::len);
    let names: usize = failures.iter().map(|test| without_message(test)).sum();
    // A message that is cut says so.
    const NOTE_BYTES: usize = 48;
    let share = max_bytes.saturating_sub(names) / failures.len().max(1);
    share.saturating_sub(NOTE_BYTES).clamp(MIN_MESSAGE_BYTES, MAX_MESSAGE_BYTES)
}

/// Masks and shortens a test. Returns true if something was cut.
fn present_test(
    test: &mut TestCase,
    prefix: &str,
    redact: &impl Fn(&str) -> String,
    max_message_bytes: usize,
) -> bool {
    test.name = redact(&test.name.replace(prefix, ""));
    test.file = test.file.take().map(|file| {
        let file = file.strip_prefix("file://").unwrap_or(&file);
        file.strip_prefix(prefix).unwrap_or(file).to_owned()
    });
    test.raised_at = test.raised_at.take().map(|place| redact(place.strip_prefix(prefix).unwrap_or(&place)));
    let Some(error) = test.error.take() else { return false };
    // Masked before it is cut: half a secret is not recognised.
    let redacted = redact(&without_foreign_frames(&error.replace(prefix, "")));
    let error = OutputExcerpt::new(redacted.trim_matches('\n'), max_message_bytes);
    test.error = Some(error.text).filter(|error| !error.is_empty());
    error.is_cut
}

fn size(test: &TestCase) -> usize {
    TEST_OVERHEAD_BYTES
        + test.name.len()
        + test.error.as_ref().map_or(0, String::len)
        + test.file.as_ref().map_or(0, String::len)
        + test.raised_at.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_never_hide_the_names_of_other_failures() {
        let mut report = TestReport::new("nextest");
        let error = Some("x".repeat(8_000));
        for index in 0..60 {
            let failed = TestCase::new(format!("failed {index}"), TestStatus::Failed);
            report.tests.push(TestCase { error: error.clone(), ..failed });
            report.tests.push(TestCase::new(format!("passed {index}"), TestStatus::Passed));
        }
        present(&mut report, "/project", str::to_owned, 40_000);
        let failed = report.tests.iter().filter(|test| test.status.is_failure()).count();
        assert_eq!((failed, report.omitted_failures), (60, 0));
        assert_eq!(report.tests.len() as u64 + report.omitted_others, 120);
        assert!(report.truncated && report.tests[0].error.as_ref().unwrap().len() > 400);
        assert!(report.tests.iter().map(size).sum::<usize>() <= 40_000);
    }
}
