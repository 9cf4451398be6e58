//! The last step of a report: failures first, secrets masked, paths relative, and no larger than requested.

use super::test_report::TestReport;
use crate::testing::results::{OutputExcerpt, TestCase, TestStatus};

/// The number of bytes of a runner's output in a report.
const MAX_OUTPUT_BYTES: usize = 8_000;
/// The number of bytes of one message in a report.
const MAX_MESSAGE_BYTES: usize = 4_000;
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
    for diagnostic in &mut report.diagnostics {
        diagnostic.message = redact(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    if let Some(output) = &mut report.output {
        let redacted = redact(output);
        let start = redacted.ceil_char_boundary(redacted.len().saturating_sub(MAX_OUTPUT_BYTES));
        report.truncated |= start > 0;
        *output = redacted[start..].to_owned();
    }
}

fn present_tests(report: &mut TestReport, prefix: &str, redact: &impl Fn(&str) -> String, max_bytes: usize) {
    let mut room = max_bytes;
    let (mut omitted_failures, mut omitted_others) = (0_u64, 0_u64);
    for mut test in std::mem::take(&mut report.tests) {
        report.truncated |= present_test(&mut test, prefix, redact);
        match room.checked_sub(size(&test)) {
            Some(rest) => {
                room = rest;
                report.tests.push(test);
            }
            None if test.status.is_failure() => omitted_failures += 1,
            None => omitted_others += 1,
        }
    }
    if omitted_failures + omitted_others > 0 {
        report.truncated = true;
        let listed = report.tests.len();
        report.notes.push(format!(
            "all tests that are counted above ran or were skipped; to keep the answer short, the list `tests` has {listed} of them, without {omitted_failures} that failed and {omitted_others} others"
        ));
    }
}

/// Masks and shortens a test. Returns true if something was cut.
fn present_test(test: &mut TestCase, prefix: &str, redact: &impl Fn(&str) -> String) -> bool {
    test.name = redact(&test.name.replace(prefix, ""));
    test.file = test.file.take().map(|file| {
        let file = file.strip_prefix("file://").unwrap_or(&file);
        file.strip_prefix(prefix).unwrap_or(file).to_owned()
    });
    let Some(error) = test.error.take() else { return false };
    // Masked before it is cut: half a secret is not recognised.
    let redacted = redact(&error.replace(prefix, ""));
    let error = OutputExcerpt::new(redacted.trim_matches('\n'), MAX_MESSAGE_BYTES);
    test.error = Some(error.text).filter(|error| !error.is_empty());
    error.is_cut
}

fn size(test: &TestCase) -> usize {
    TEST_OVERHEAD_BYTES
        + test.name.len()
        + test.error.as_ref().map_or(0, String::len)
        + test.file.as_ref().map_or(0, String::len)
}
