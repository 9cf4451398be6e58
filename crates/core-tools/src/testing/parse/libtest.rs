//! What `cargo test` prints: libtest's text for each binary, and cargo's messages as JSON between.
//!
//! The text can be imitated by a test that writes past libtest's capture, or that runs cargo itself. So a suite
//! that begins within another waits: if the outer one goes on to its own summary, which has as many tests as were
//! to run, the inner one was printed by a test, and is left out; if it never does, its process has ended in the
//! middle, and what followed was real. Counts are held up against each summary, and against cargo's exit code.

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
    /// Cargo has named the binary, which has not begun yet.
    headed: bool,
    /// Those that it began in, the outermost first.
    outer: Vec<Suite>,
    /// What cargo says of a binary that died, after `Caused by:`.
    caused_by: bool,
}

#[derive(Default)]
struct Suite {
    /// The binary that it is of, and whether cargo has just named it.
    binary: String,
    headed: bool,
    expected: u64,
    seen: Counts,
    /// What has been told of it where it began in another: what becomes of it depends on that one.
    told: Vec<TestCase>,
    /// Suites that began and ended in it.
    inner: Vec<Suite>,
    /// The latest summary that has as many tests as were to run, though not those that were seen.
    summary: Option<Counts>,
    /// It has come to its end.
    whole: bool,
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

/// Suites within suites that are followed.
const MOST_INNER: usize = 100;

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
    /// Ends the suite. One that is not whole has died, unless there is a summary that may be its own.
    fn close(&mut self, found: &mut Found, whole: bool) {
        let Some(mut suite) = self.suite.take() else { return };
        suite.whole = whole;
        match self.outer.pop() {
            Some(mut outer) => {
                if outer.inner.len() < MOST_INNER {
                    outer.inner.push(suite);
                }
                self.suite = Some(outer);
            }
            None => Self::tell(suite, found),
        }
    }

    /// Ends all that is open.
    fn close_all(&mut self, found: &mut Found) {
        while self.suite.is_some() {
            self.close(found, false);
        }
    }

    fn tell(mut suite: Suite, found: &mut Found) {
        // What one of its tests printed has no part in this.
        let mut inner = if suite.whole { Vec::new() } else { suite.inner };
        let mut told = suite.told;
        if suite.summary.is_none() {
            // One that only seemed to begin may have had its very number of tests.
            let own = inner.iter().rposition(|inner| {
                let mut seen = suite.seen;
                seen += inner.seen;
                !inner.headed && inner.summary == Some(seen) && seen.total() == suite.expected
            });
            if let Some(own) = own {
                inner.drain(..own);
                let own = inner.remove(0);
                suite.summary = own.summary;
                told.extend(own.told.into_iter().chain(own.failed));
            }
        }
        if let Some(summary) = suite.summary {
            // What only seemed to begin, and took its tests.
            for part in inner.extract_if(.., |inner| !inner.headed && inner.summary.is_none()) {
                told.extend(part.told.into_iter().chain(part.failed));
            }
            found.declare(summary);
        } else {
            if let Some(name) = suite.open {
                found.start(&name);
            }
            let missing = suite.expected.saturating_sub(suite.seen.total());
            let message = format!(
                "the test binary {} died with {missing} of its {} tests not reported",
                suite.binary, suite.expected
            );
            found.problem(ProblemKind::Crashed, message);
        }
        for mut test in told.into_iter().chain(suite.failed) {
            if test.status == Status::Failed
                && let Some((file, line)) = test.error.as_deref().and_then(panic_place)
            {
                (test.file, test.line) = (Some(file), Some(line));
            }
            found.push(test);
        }
        for inner in inner {
            Self::tell(inner, found);
        }
    }

    /// A summary. It is that of the suite if it has as many tests as were to run there.
    fn summary(&mut self, counts: Counts, measured: u64, found: &mut Found) {
        // Of a suite that only seems to have begun, the end may be that of the one around it.
        let fits = |suite: &Suite| counts.total().saturating_add(measured) == suite.expected;
        let Some(suite) = &mut self.suite else { return };
        if fits(suite) && suite.seen == counts {
            suite.summary = Some(counts);
            return self.close(found, true);
        }
        let agrees = |outer: &Suite, suite: &Suite| {
            let mut seen = outer.seen;
            seen += suite.seen;
            fits(outer) && (outer.seen == counts || seen == counts)
        };
        let Some(outer) = self.outer.iter().rposition(|outer| agrees(outer, suite)) else {
            if fits(suite) {
                suite.summary = Some(counts);
            } else if let Some(outer) = self.outer.iter().rposition(fits) {
                while self.outer.len() > outer {
                    self.close(found, false);
                }
                self.suite.iter_mut().for_each(|suite| suite.summary = Some(counts));
            }
            return;
        };
        // What seemed to be within went on with the tests of the one around it.
        let mut lost = self.suite.take();
        while self.outer.len() > outer {
            let Some(mut around) = self.outer.pop() else { break };
            if let Some(inner) = lost.take().filter(|_| self.outer.len() == outer && around.seen != counts) {
                around.seen += inner.seen;
                for test in inner.told.into_iter().chain(inner.failed) {
                    if self.outer.is_empty() && test.status != Status::Failed {
                        found.push(test);
                    } else {
                        around.failed.push(test);
                    }
                }
            }
            lost = Some(around);
        }
        self.suite = lost;
        if let Some(suite) = &mut self.suite {
            suite.summary = Some(counts);
        }
        self.close(found, true);
    }

    fn file(&self) -> Option<String> {
        // `Running tests/api.rs (target/…)`: unit tests lie in any file.
        let binary = self.suite.as_ref().map_or("", |suite| suite.binary.as_str());
        let file = binary.split(" (").next().unwrap_or_default();
        (!file.starts_with("unittests") && file.ends_with(".rs")).then(|| file.to_owned())
    }

    fn test(&mut self, name: &str, status: Status, reason: Option<&str>, found: &mut Found) {
        let file = self.file();
        let nested = !self.outer.is_empty();
        let Some(suite) = &mut self.suite else { return };
        let name = name.trim().trim_end_matches(" - should panic");
        suite.seen.add(status);
        let test = TestCase { file, error: reason.map(str::to_owned), ..TestCase::new(name, status) };
        if status == Status::Failed && suite.failed.len() < 2_000 {
            suite.by_name.insert(name.to_owned(), suite.failed.len());
            suite.failed.push(test);
        } else if nested {
            if suite.told.len() < 20_000 {
                suite.told.push(test);
            }
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
            self.binary = trimmed.strip_prefix("Running ").unwrap_or(trimmed).to_owned();
            self.headed = true;
            return;
        }
        let in_details = self.suite.as_ref().is_some_and(|suite| suite.details);
        if !in_details
            && let Some(count) = line.strip_prefix("running ")
            && let Some((count, "test" | "tests")) = count.split_once(' ')
            && let Ok(expected) = count.parse()
        {
            match self.suite.take() {
                Some(outer) if self.outer.len() < MOST_INNER => self.outer.push(outer),
                Some(suite) => {
                    self.suite = Some(suite);
                    return;
                }
                None => {
                    let all = found.expected.get_or_insert_default();
                    *all = all.saturating_add(expected);
                }
            }
            let (binary, headed) = (self.binary.clone(), std::mem::take(&mut self.headed));
            self.suite = Some(Suite { binary, headed, expected, ..Suite::default() });
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
            let measured = number(summary, "measured").unwrap_or_default();
            return self.summary(Counts { passed, failed, skipped }, measured, found);
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
        self.close_all(found);
    }
}
