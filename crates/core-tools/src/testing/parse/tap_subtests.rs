//! The subtests of TAP: indented documents before the test that sums them up.

use super::tap_test_point::{TapTestPointDescription, split_time};

/// The indentation of the deepest line that belongs to the test before it, and to no subtest.
const MAX_YAML_INDENT: usize = 3;
/// The number of failed subtests that are kept of one test.
const MAX_FAILED: usize = 200;

/// The failed subtests since the latest test of the document. The test that sums them up may be `ok` nevertheless.
#[derive(Default)]
pub(super) struct TapSubtests {
    failed: Vec<FailedTapSubtest>,
    /// The indentation of the YAML block that the lines are in.
    yaml_indent: Option<usize>,
}

struct FailedTapSubtest {
    indent: usize,
    name: String,
}

impl TapSubtests {
    /// Reads a line, and returns true if it is one of a subtest.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if indent <= MAX_YAML_INDENT || text.is_empty() {
            return false;
        }
        if let Some(yaml_indent) = self.yaml_indent {
            if text.trim_end() == "..." && indent == yaml_indent {
                self.yaml_indent = None;
            }
            return true;
        }
        if text.trim_end() == "---" {
            self.yaml_indent = Some(indent);
            return true;
        }
        if let Some((passed, description)) = test_point(text) {
            self.test_point(indent, passed, description);
        }
        true
    }

    fn test_point(&mut self, indent: usize, passed: bool, description: &str) {
        let TapTestPointDescription { name, excuse } = TapTestPointDescription::parse(description);
        let name = split_time(&name).map_or(name.as_str(), |(name, _)| name).to_owned();
        // Those that are indented further are its own subtests.
        let own =
            self.failed.iter().rposition(|subtest| subtest.indent <= indent).map_or(0, |index| index + 1);
        if excuse.is_some() {
            self.failed.truncate(own);
            return;
        }
        for subtest in self.failed.iter_mut().skip(own) {
            *subtest = FailedTapSubtest { indent, name: format!("{name} > {}", subtest.name) };
        }
        if !passed && own == self.failed.len() && self.failed.len() < MAX_FAILED {
            self.failed.push(FailedTapSubtest { indent, name });
        }
    }

    /// Takes the names of those that failed since the test before.
    pub(super) fn take(&mut self) -> Vec<String> {
        self.yaml_indent = None;
        std::mem::take(&mut self.failed).into_iter().map(|subtest| subtest.name).collect()
    }
}

/// Reads `ok 1 - description` and `not ok 1 - description`. A line without a number may be what a test printed.
fn test_point(text: &str) -> Option<(bool, &str)> {
    let (passed, rest) = match text.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok ")?),
    };
    let description = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_number = description.len() < rest.len();
    let description = description.trim_start();
    has_number.then(|| (passed, description.strip_prefix("- ").unwrap_or(description)))
}
