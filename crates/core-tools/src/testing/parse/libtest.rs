//! What `cargo test` prints: libtest's text for each binary, and cargo's messages as JSON between.
//!
//! The text can be imitated by a test that writes past libtest's capture. Its counts are held up against each
//! binary's own summary and cargo's exit code, which say so.

use super::super::found::{Counts, Found};
use super::super::report::{ProblemKind, Status, TestCase};
use super::{Lines, append, place};
use crate::ci::Diagnostic;
use std::collections::HashMap;

/// The parser.
#[derive(Default)]
pub(in super::super) struct Libtest {
    /// The binary that runs, as cargo names it: `tests/api.rs`, `unittests src/lib.rs`, `Doc-tests name`.
    binary: String,
    suite: Option<Suite>,
    /// What cargo says of a binary that died, after `Caused by:`.
    caused_by: bool,
}

#[derive(Default)]
struct Suite {
    expected: u64,
    seen: Counts,
    /// Waiting for what they printed.
    failed: Vec<TestCase>,
    by_name: HashMap<String, usize>,
    /// After `failures:`.
    details: bool,
    /// Whose output this is.
    section: Option<usize>,
    /// A test whose result has not been printed yet.
    open: Option<String>,
}

const RESULTS: [(&str, Status); 3] =
    [("ok", Status::Passed), ("FAILED", Status::Failed), ("ignored", Status::Skipped)];

/// The result at the end of a line.
fn result(text: &str) -> Option<(Status, Option<&str>)> {
    let text = text.trim();
    if let Some(reason) = text.strip_prefix("ignored, ") {
        return Some((Status::Skipped, Some(reason)));
    }
    // With `--report-time` the duration follows.
    let word = text.split_once(" <").map_or(text, |(word, _)| word);
    RESULTS.iter().find(|(name, _)| *name == word).map(|(_, status)| (*status, None))
}

/// The number before `word` in a summary.
fn number(text: &str, word: &str) -> Option<u64> {
    text.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().rsplit(' ').next()?.parse().ok())
}

impl Libtest {
    fn close(&mut self, found: &mut Found, whole: bool) {
        let Some(suite) = self.suite.take() else { return };
        if !whole {
            if let Some(name) = suite.open {
                found.start(&name);
            }
            let missing = suite.expected.saturating_sub(suite.seen.total());
            let message = format!(
                "the test binary {} died with {missing} of its {} tests not reported",
                self.binary, suite.expected
            );
            found.problem(ProblemKind::Crashed, message);
        }
        for mut test in suite.failed {
            if let Some((file, line)) = test.error.as_deref().and_then(panic_place) {
                (test.file, test.line) = (Some(file), Some(line));
            }
            found.push(test);
        }
    }

    fn file(&self) -> Option<String> {
        // `Running tests/api.rs (target/…)`: unit tests lie in any file.
        let file = self.binary.split(" (").next().unwrap_or_default();
        (!file.starts_with("unittests") && file.ends_with(".rs")).then(|| file.to_owned())
    }

    fn test(&mut self, name: &str, status: Status, reason: Option<&str>, found: &mut Found) {
        let file = self.file();
        let Some(suite) = &mut self.suite else { return };
        let name = name.trim().trim_end_matches(" - should panic");
        suite.seen.add(status);
        let test = TestCase { file, error: reason.map(str::to_owned), ..TestCase::new(name, status) };
        if status == Status::Failed && suite.failed.len() < 2_000 {
            suite.by_name.insert(name.to_owned(), suite.failed.len());
            suite.failed.push(test);
        } else {
            found.push(test);
        }
    }

    /// A line of a suite before its failures are told.
    fn result_line(&mut self, line: &str, found: &mut Found) {
        let Some(suite) = &mut self.suite else { return };
        if let Some(name) = suite.open.take() {
            let word = line.rsplit(' ').next().unwrap_or_default();
            // What the test printed itself may stand before the word on its line.
            let ending = RESULTS.iter().find(|(name, _)| word.ends_with(name));
            match result(line).or_else(|| ending.map(|(_, status)| (*status, None))) {
                Some((status, reason)) => return self.test(&name, status, reason, found),
                None => suite.open = Some(name),
            }
        }
        // What a test writes past the capture may stand before `test`.
        let Some((before, after)) = line.split_once(" ... ") else { return };
        let name = match (before.strip_prefix("test "), before.rfind("test ")) {
            (Some(name), _) => name,
            (None, Some(start)) => &before[start + 5..],
            (None, None) => return,
        };
        match result(after) {
            Some((status, reason)) => self.test(name, status, reason, found),
            None if line.starts_with("test ") => {
                if let Some(suite) = &mut self.suite {
                    suite.open = Some(name.to_owned());
                }
            }
            None => {}
        }
    }
}

/// Where a panic was: `panicked at src/lib.rs:3:5:`, before Rust 1.73 `panicked at 'why', src/lib.rs:3:5`.
fn panic_place(error: &str) -> Option<(String, u64)> {
    let (_, after) = error.split_once("panicked at ")?;
    let line = after.lines().next()?;
    place(line).filter(|(file, _)| file.ends_with(".rs")).or_else(|| place(line.rsplit(", ").next()?))
}

impl Lines for Libtest {
    fn line(&mut self, line: &str, found: &mut Found) {
        if line.starts_with("{\"reason\":") {
            if let Some(diagnostic) = Diagnostic::from_cargo(line) {
                found.diagnostic(diagnostic);
            }
            return;
        }
        let trimmed = line.trim_start();
        let header = line.starts_with("     Running ") || line.starts_with("   Doc-tests ");
        if header {
            self.close(found, false);
            self.binary = trimmed.strip_prefix("Running ").unwrap_or(trimmed).to_owned();
            return;
        }
        let in_details = self.suite.as_ref().is_some_and(|suite| suite.details);
        if !in_details
            && let Some(count) = line.strip_prefix("running ")
            && let Some((count, "test" | "tests")) = count.split_once(' ')
            && let Ok(expected) = count.parse()
        {
            self.close(found, false);
            self.suite = Some(Suite { expected, ..Suite::default() });
            let all = found.expected.get_or_insert_default();
            *all = all.saturating_add(expected);
            return;
        }
        if self.suite.is_none() {
            // A binary that is no libtest died, or cargo explains the one that was closed.
            if self.caused_by
                && trimmed.starts_with("process didn't exit successfully")
                && line.contains("(signal:")
            {
                found.problem(ProblemKind::Crashed, trimmed.to_owned());
            }
            self.caused_by = trimmed == "Caused by:" || (self.caused_by && !trimmed.is_empty());
            return;
        }
        if let Some(summary) = line.strip_prefix("test result: ")
            && let (Some(passed), Some(failed), Some(skipped)) =
                (number(summary, "passed"), number(summary, "failed"), number(summary, "ignored"))
        {
            found.declare(Counts { passed, failed, skipped });
            return self.close(found, true);
        }
        if line.starts_with("error: test failed") || line.starts_with("error: doctest failed") {
            // The summary never came.
            return self.close(found, false);
        }
        let Some(suite) = &mut self.suite else { return };
        match line {
            "failures:" | "successes:" if suite.open.is_none() => {
                (suite.details, suite.section) = (true, None);
            }
            _ if !suite.details => self.result_line(line, found),
            _ => {
                let name = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
                if let Some(index) =
                    name.and_then(|name| suite.by_name.get(name.trim_end_matches(" - should panic")))
                {
                    suite.section = Some(*index);
                } else if let Some(test) = suite.section.and_then(|index| suite.failed.get_mut(index)) {
                    append(test.error.get_or_insert_default(), line);
                }
            }
        }
    }

    fn end(&mut self, found: &mut Found) {
        self.close(found, false);
    }
}
