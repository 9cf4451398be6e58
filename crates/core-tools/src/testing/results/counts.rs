//! The number of tests of each outcome.

use super::test_case::TestStatus;
use std::fmt;
use std::ops::AddAssign;

/// The number of tests of each outcome. Sums saturate: a report may claim any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl TestCounts {
    /// Counts one more test of this status.
    pub(crate) fn count(&mut self, status: TestStatus) {
        match status {
            TestStatus::Passed => self.passed += 1,
            TestStatus::Skipped => self.skipped += 1,
            _ => self.failed += 1,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.executed().saturating_add(self.skipped)
    }

    /// Returns the number of tests that were not skipped.
    pub(crate) fn executed(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}
