//! The lines with which a script says by hand that a test of it failed: `FAIL: add`, `✗ add`, `2 passed, 1 failed`.

/// The length of the longest line that is looked at, in bytes.
const MAX_LINE_BYTES: usize = 300;
/// The words that a script begins or ends a line with where a test failed.
const WORDS: [&str; 3] = ["FAIL", "FAILED", "FAILURE"];
/// The marks that it begins a line with.
const MARKS: [&str; 7] = ["✗", "✘", "✖", "❌", "not ok ", "Assertion failed", "AssertionError"];

/// Returns true for a line that says so. Such a line alone decides nothing: any program may print one.
pub(super) fn is_failure_line(line: &str) -> bool {
    let text = line.trim();
    if text.len() > MAX_LINE_BYTES {
        return false;
    }
    let unframed = text.trim_start_matches(['[', '(', '*', '-', '=', '#', '>', ' ']);
    let begins = WORDS.iter().any(|word| {
        let rest = unframed.strip_prefix(word);
        rest.is_some_and(|rest| {
            rest.starts_with([':', ' ', ']', ')', '-', '\t', '!', '.']) || rest.is_empty()
        })
    });
    let last = text.trim_end_matches([']', ')', '*', '!', '.', ' ']);
    let ends = WORDS.iter().any(|word| {
        let before = last.strip_suffix(word);
        before.is_some_and(|before| before.ends_with([' ', '[', '(', '.', ':', '\t', '*']))
    });
    begins || ends || MARKS.iter().any(|mark| unframed.starts_with(mark)) || counts_failures(text)
}

/// Returns true for a line of counts, one of which is of failures and not 0: `1 of 3 tests failed`, `passed: 2 failed: 1`.
fn counts_failures(text: &str) -> bool {
    let text = text.to_lowercase();
    if !text.contains("fail") {
        return false;
    }
    let words: Vec<_> = text
        .split([' ', ',', ';', '|', '(', ')', '=', ':', '/', '\t'])
        .filter(|word| !word.is_empty())
        .collect();
    let is_failure = |word: &str| matches!(word, "failed" | "failure" | "failures" | "failing" | "fails");
    let is_count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_of_tests = words.iter().any(|word| {
        ["assertion", "case", "check", "pass", "test"].iter().any(|beginning| word.starts_with(beginning))
    });
    // `2 failed` alone is a count of tests too.
    if !is_of_tests && words.len() > 2 {
        return false;
    }
    // Between a count and its word stands at most what is counted: `1 of 3 tests failed`, `1 test failed`.
    let before = |index: usize| {
        words[index.saturating_sub(4)..index]
            .iter()
            .rev()
            .take_while(|word| !word.starts_with("pass"))
            .filter(|word| word.parse::<u64>().is_ok())
            .last()
            .is_some_and(|word| is_count(word))
    };
    let after = |index: usize| words.get(index + 1).is_some_and(|word| is_count(word));
    words.iter().enumerate().any(|(index, word)| is_failure(word) && (before(index) || after(index)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_scripts_that_tell_a_failure_are_known() {
        for line in [
            "FAIL: add",
            "FAILED",
            "  FAIL - add",
            "[FAIL] add",
            "*** FAIL ***",
            "add ... FAILED",
            "add [FAILED]",
            "--- FAIL: add",
            "✗ add",
            "not ok 2 - add",
            "Assertion failed: 1 == 2",
            "1 failed",
            "2 passed, 1 failed",
            "passed: 2 failed: 1",
            "Passed 2, Failed 1",
            "1 of 3 tests failed",
            "Tests failed: 2",
            "3 checks, 1 failure",
        ] {
            assert!(is_failure_line(line), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "",
            "ok: add",
            "3 passed, 0 failed",
            "passed: 3 failed: 0",
            "0 of 3 tests failed",
            "no test failed",
            "FAILOVER ready",
            "FAIL_FAST=1",
            "download failed after 3 attempts",
            "3 files checked",
            "failed over to node 3 after 2 seconds",
        ] {
            assert!(!is_failure_line(line), "{line}");
        }
    }
}
