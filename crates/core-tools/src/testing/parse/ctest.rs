//! What `ctest` prints while it runs: how far it is, and all there is if it dies before it writes its report.

use super::super::found::Found;
use super::super::report::{Status, TestCase};
use super::Lines;

/// The parser.
#[derive(Default)]
pub(in super::super) struct Ctest;

/// `#3: name` of `2/6 Test #3: name ....   Passed    0.01 sec` and of `    Start 3: name`.
fn numbered(text: &str) -> Option<&str> {
    let (number, rest) = text.trim_start().trim_start_matches('#').split_once(": ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

impl Lines for Ctest {
    fn line(&mut self, line: &str, found: &mut Found) {
        if let Some(name) =
            line.strip_prefix("    ").and_then(|line| line.trim_start().strip_prefix("Start "))
        {
            if let Some(name) = numbered(name) {
                found.start(name.trim_end());
            }
            return;
        }
        let Some((progress, rest)) = line.split_once(" Test ") else { return };
        let Some((done, of)) = progress.trim().split_once('/') else { return };
        let (Ok(_), Ok(of)) = (done.parse::<u64>(), of.parse()) else { return };
        // A name may hold anything; the result is behind the last run of dots.
        let Some((name, result)) = numbered(rest).and_then(|rest| {
            let end = rest.rfind("..")? + 2;
            Some((rest[..end].trim_end_matches('.').trim_end(), &rest[end..]))
        }) else {
            return;
        };
        found.expected = Some(of);
        let result = result.trim_start_matches('.').trim_start();
        let (word, time) = result.rsplit_once("  ").unwrap_or((result, ""));
        let status = match word.trim().trim_start_matches('*') {
            "Passed" => Status::Passed,
            "Timeout" => Status::TimedOut,
            word if word.starts_with("Skipped") || word.starts_with("Not Run (Disabled)") => Status::Skipped,
            word if word.starts_with("Not Run") || word.contains("Exception") => Status::Errored,
            _ => Status::Failed,
        };
        let seconds = time.trim().strip_suffix(" sec").and_then(|seconds| seconds.trim().parse::<f64>().ok());
        let reason = word.trim().replace("***", " ").trim().trim_end_matches(':').to_owned();
        found.push(TestCase {
            error: Some(reason).filter(|_| matches!(status, Status::TimedOut | Status::Errored)),
            duration_ms: seconds.map(|seconds| seconds * 1000.0),
            ..TestCase::new(name, status)
        });
    }

    fn end(&mut self, _: &mut Found) {}
}
