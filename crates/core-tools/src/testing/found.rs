//! What has been found so far, bounded.

use super::report::{Problem, ProblemKind, Status, TestCase};
use crate::ci::Diagnostic;
use std::collections::VecDeque;

/// Tests that are kept; the others are counted.
const MAX_TESTS: usize = 20_000;
/// Bytes of messages that are kept of all tests together.
const MAX_MESSAGES: usize = 8 << 20;
/// Bytes that are kept of one message: its beginning and its end.
const MAX_MESSAGE: usize = 16 << 10;
/// Bytes of a name.
const MAX_NAME: usize = 2_000;
/// Tests that are remembered as running.
const MAX_RUNNING: usize = 1_000;
/// Problems and diagnostics that are kept.
const MAX_PROBLEMS: usize = 100;

/// How many tests there are of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Counts {
    pub(super) fn add(&mut self, status: Status) {
        match status {
            Status::Passed => self.passed += 1,
            Status::Skipped => self.skipped += 1,
            _ => self.failed += 1,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.passed.saturating_add(self.failed).saturating_add(self.skipped)
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// What the parsers fill.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) tests: Vec<TestCase>,
    pub(super) counts: Counts,
    /// What the runner itself says there were, where it does.
    pub(super) declared: Option<Counts>,
    /// How many tests there will be, where the runner says so early.
    pub(super) expected: Option<u64>,
    /// Every one of those is told, whatever becomes of it.
    pub(super) planned: bool,
    /// Begun and not ended, oldest first.
    pub(super) running: VecDeque<String>,
    pub(super) problems: Vec<Problem>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The runner reached its end; `None` where its format does not say.
    pub(super) ended: Option<bool>,
    pub(super) truncated: bool,
    /// The time limit is ending the run: what fails now is ended by it.
    pub(super) limit_reached: bool,
    /// The name that was asked for, where the runner selects by a pattern that others may match too.
    pub(super) wanted: Option<String>,
    /// A test that was executed bears it.
    pub(super) borne: bool,
    bytes: usize,
    /// So many of the kept tests, from the first on, are known to be failures.
    failures: usize,
}

impl Found {
    /// Nothing yet, where a test of this name was asked for.
    pub(super) fn wanting(wanted: Option<String>) -> Self {
        Self { wanted, ..Self::default() }
    }

    pub(super) fn start(&mut self, name: &str) {
        if self.running.len() == MAX_RUNNING {
            self.running.pop_front();
        }
        self.running.push_back(shortened(name, MAX_NAME).0);
    }

    pub(super) fn finish(&mut self, name: &str) {
        let name = shortened(name, MAX_NAME).0;
        if let Some(index) = self.running.iter().position(|running| *running == name) {
            self.running.remove(index);
        }
    }

    /// A test that has ended.
    pub(super) fn push(&mut self, mut test: TestCase) {
        if self.limit_reached && test.status.is_failure() {
            test.status = Status::TimedOut;
        }
        self.counts.add(test.status);
        self.borne |= test.status != Status::Skipped
            && self.wanted.as_ref().is_some_and(|wanted| plain(&test.name).contains(&plain(wanted)));
        let (name, mut cut) = shortened(&test.name, MAX_NAME);
        test.name = name;
        // A report may say anything; JSON has no infinity.
        test.duration_ms = test.duration_ms.filter(|time| time.is_finite() && *time >= 0.0);
        if !self.running.is_empty() {
            self.finish(&test.name);
        }
        if let Some(error) = &test.error {
            let room = MAX_MESSAGES.saturating_sub(self.bytes).min(MAX_MESSAGE);
            let (error, shorter) = shortened(error, room);
            cut |= shorter;
            self.bytes += error.len();
            test.error = Some(error).filter(|error| !error.is_empty());
        }
        self.truncated |= cut;
        if self.tests.len() < MAX_TESTS {
            self.tests.push(test);
        } else {
            self.truncated = true;
            // A failure is worth more than any success. Where one was found the search goes on.
            if test.status.is_failure()
                && let Some(index) =
                    (self.failures..self.tests.len()).find(|index| !self.tests[*index].status.is_failure())
            {
                self.failures = index + 1;
                self.tests[index] = test;
            } else if test.status.is_failure() {
                self.failures = self.tests.len();
            }
        }
    }

    pub(super) fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            let message = shortened(&message.into(), MAX_MESSAGE).0;
            self.problems.push(Problem { kind, message });
        }
    }

    pub(super) fn diagnostic(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_PROBLEMS {
            self.diagnostics.push(diagnostic);
        } else {
            self.truncated = true;
        }
    }

    pub(super) fn declare(&mut self, counts: Counts) {
        *self.declared.get_or_insert_default() += counts;
    }
}

/// A name without what reports have between the titles of suites and tests.
fn plain(name: &str) -> String {
    name.replace(" > ", " ")
}

/// `text` in at most about `max` bytes, its beginning and its end; and whether that is less than it was.
pub(super) fn shortened(text: &str, max: usize) -> (String, bool) {
    if text.len() <= max {
        return (text.to_owned(), false);
    }
    let mut head = max / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - (max - max / 2);
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    if max < 64 {
        return (text[..head].to_owned(), true);
    }
    (format!("{}[... {} bytes left out ...]{}", &text[..head], tail - head, &text[tail..]), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_failures_are_kept_before_successes() {
        let mut found = Found::default();
        for index in 0..MAX_TESTS {
            found.push(TestCase::new(format!("test {index}"), Status::Passed));
        }
        let error = Some("é".repeat(1 << 20));
        for index in 0..600 {
            found.push(TestCase {
                error: error.clone(),
                ..TestCase::new(format!("bad {index}"), Status::Failed)
            });
        }
        assert_eq!(found.tests.len(), MAX_TESTS);
        assert_eq!(found.counts, Counts { passed: 20_000, failed: 600, skipped: 0 });
        assert_eq!(found.tests.iter().filter(|test| test.status.is_failure()).count(), 600);
        let bytes: usize = found.tests.iter().filter_map(|test| test.error.as_ref()).map(String::len).sum();
        assert!(bytes <= MAX_MESSAGES + 600 * 64, "{bytes}");
        assert!(found.truncated);
    }
}
