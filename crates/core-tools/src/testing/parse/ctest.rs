//! The lines that `ctest` prints while it runs. Where it dies before it writes its XML report, they are all
//! there is.

use super::line_parser::LineParser;
use crate::testing::results::{TestCase, TestResults, TestStatus};

/// The parser of the lines of `ctest`.
#[derive(Default)]
pub(crate) struct CtestParser;

/// Returns the name in `#3: name ....   Passed    0.01 sec` and in `3: name`, with what follows it.
fn after_number(text: &str) -> Option<&str> {
    let (number, rest) = text.trim_start().trim_start_matches('#').split_once(": ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

impl LineParser for CtestParser {
    fn line(&mut self, line: &str, results: &mut TestResults) {
        if let Some(name) =
            line.strip_prefix("    ").and_then(|line| line.trim_start().strip_prefix("Start "))
        {
            if let Some(name) = after_number(name) {
                results.test_started(name.trim_end());
            }
            return;
        }
        let Some((progress, rest)) = line.split_once(" Test ") else { return };
        let Some((done, total)) = progress.trim().split_once('/') else { return };
        let (Ok(_), Ok(total)) = (done.parse::<u64>(), total.parse()) else { return };
        // A name may contain dots itself; the result follows the last run of them.
        let Some((name, result)) = after_number(rest).and_then(|rest| {
            let end = rest.rfind("..")? + 2;
            Some((rest[..end].trim_end_matches('.').trim_end(), &rest[end..]))
        }) else {
            return;
        };
        results.expected = Some(total);
        let result = result.trim_start_matches('.').trim_start();
        let (word, time) = result.rsplit_once("  ").unwrap_or((result, ""));
        let status = match word.trim().trim_start_matches('*') {
            "Passed" => TestStatus::Passed,
            "Timeout" => TestStatus::TimedOut,
            word if word.starts_with("Skipped") || word.starts_with("Not Run (Disabled)") => {
                TestStatus::Skipped
            }
            // The program of the test was missing, or a signal ended it: the test itself has not failed.
            word if word.starts_with("Not Run") || word.contains("Exception") => TestStatus::Errored,
            // An unknown word counts as a failure, because a run must not pass on a guess.
            _ => TestStatus::Failed,
        };
        let seconds = time.trim().strip_suffix(" sec").and_then(|seconds| seconds.trim().parse::<f64>().ok());
        let reason = word.trim().replace("***", " ").trim().trim_end_matches(':').to_owned();
        results.add_test(TestCase {
            error: Some(reason).filter(|_| matches!(status, TestStatus::TimedOut | TestStatus::Errored)),
            duration_ms: seconds.map(|seconds| seconds * 1000.0),
            ..TestCase::new(name, status)
        });
    }

    fn finish(&mut self, _: &mut TestResults) {}
}
