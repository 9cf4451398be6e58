//! The lines with which test runners end, as people read them: the only report of a runner that holds no reporter of ours.

use crate::testing::results::PrintedSummary;

/// The length of the longest line that is looked at, in bytes.
// The bound keeps minified files and dumps of data, which a test may print, from being searched.
const MAX_LINE_BYTES: usize = 300;

/// The last line of prove where a file failed.
const PROVE_FAILURE: &str = "Result: FAIL";

/// Returns the summary that a line of output is, if it is one.
///
/// Only lines that nothing but a summary looks like count: such a line may decide that a run is a failure.
pub(super) fn printed_summary(line: &str) -> Option<PrintedSummary> {
    let text = line.trim();
    // Most lines have no number, and end here.
    let has_number = text.bytes().any(|byte| byte.is_ascii_digit() || byte == b'!');
    if text.len() > MAX_LINE_BYTES || !(has_number || text == PROVE_FAILURE) {
        return None;
    }
    let (runner, has_failures) =
        [unittest, pytest, node, javascript, labelled, counted, compiled, behaviour, of_c, others]
            .into_iter()
            .find_map(|read| read(line, text))?;
    Some(PrintedSummary { runner, has_failures, line: text.to_owned() })
}

/// A runner, and whether its summary tells of failures.
type Found = Option<(&'static str, bool)>;

/// Reads `Ran 3 tests in 0.001s` and `FAILED (failures=1, errors=2)`.
fn unittest(line: &str, _: &str) -> Found {
    const NAMES: [&str; 6] =
        ["failures", "errors", "skipped", "expected failures", "unexpected successes", "successes"];
    if let Some(counts) = line.strip_prefix("FAILED (").and_then(|rest| rest.trim_end().strip_suffix(')')) {
        let is_count = |word: &str| {
            word.split_once('=').is_some_and(|(name, count)| NAMES.contains(&name) && number(count).is_some())
        };
        return counts.split(", ").all(is_count).then_some(("unittest", true));
    }
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    let seconds = rest.strip_prefix("tests in ").or_else(|| rest.strip_prefix("test in "))?;
    (number(count).is_some() && seconds.trim_end().ends_with('s')).then_some(("unittest", false))
}

/// Reads `==== 1 failed, 2 passed in 0.12s ====`, with and without its frame.
fn pytest(_: &str, text: &str) -> Found {
    const WORDS: [&str; 12] = [
        "failed",
        "passed",
        "skipped",
        "deselected",
        "xfailed",
        "xpassed",
        "warning",
        "warnings",
        "error",
        "errors",
        "rerun",
        "subtests",
    ];
    let (counts, time) = text.trim_matches('=').trim().rsplit_once(" in ")?;
    let seconds = time.split(' ').next().and_then(|time| time.strip_suffix('s'))?;
    let pairs = counts.split(", ").map(counted_word).collect::<Option<Vec<_>>>()?;
    // Every count must be of a known word, since a program may print a sentence that ends with `in 3s`.
    let is_known = |word: &str| WORDS.contains(&word.split(' ').next().unwrap_or_default());
    let is_summary = seconds.parse::<f64>().is_ok() && pairs.iter().all(|(_, word)| is_known(word));
    is_summary.then(|| ("pytest", pairs.iter().any(|(count, word)| *count > 0 && is_failure(word))))
}

/// Reads the last lines of node's own runner and of tape: `ℹ fail 1`, `# fail 1`.
fn node(_: &str, text: &str) -> Found {
    let count = text.strip_prefix("ℹ fail ").or_else(|| text.strip_prefix("# fail "))?;
    number(count.trim()).map(|count| ("node", count > 0))
}

/// Reads `2 passing (4ms)`, `1 failing`, `1 test failed`, `1 failed`, `1 fail`, and deno's `FAILED | 1 passed | 1 failed (2ms)`.
fn javascript(_: &str, text: &str) -> Found {
    if let Some(rest) = text.strip_prefix("FAILED | ").or_else(|| text.strip_prefix("ok | ")) {
        return rest.contains(" passed").then(|| ("deno", text.starts_with("FAILED")));
    }
    let (count, word) = counted_word(text)?;
    let has_failures = count > 0;
    match word {
        "failing" => Some(("mocha", has_failures)),
        "test failed" | "tests failed" => Some(("ava", has_failures)),
        "test passed" | "tests passed" => Some(("ava", false)),
        "fail" => Some(("bun", has_failures)),
        "failed" => Some(("playwright", has_failures)),
        _ if word.starts_with("passing (") => Some(("mocha", false)),
        _ => None,
    }
}

/// Reads counts after a label: `Tests: 1 failed, 2 total`, `Tests run: 3, Failures: 1`, `Tests  1 failed | 2 passed (3)`.
fn labelled(_: &str, text: &str) -> Found {
    const LABELS: [(&str, &str); 8] = [
        ("Tests run: ", "maven"),
        ("Tests: ", "jest"),
        ("Test Suites: ", "jest"),
        ("Tests  ", "vitest"),
        ("Test Files  ", "vitest"),
        ("test cases: ", "Catch2"),
        ("[doctest] test cases: ", "doctest"),
        ("Failed!  - Failed: ", "dotnet"),
    ];
    let text =
        ["[ERROR] ", "[WARNING] ", "[INFO] "].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text);
    let (label, runner) = LABELS.into_iter().find(|(label, _)| text.starts_with(label))?;
    let counts = text[label.len()..].trim_start();
    let has_count = counts.starts_with(|c: char| c.is_ascii_digit());
    let is_of_phpunit = counts.contains("Assertions: ");
    let has_failures = label.starts_with("Failed!") || has_failure_count(counts);
    has_count.then_some((if is_of_phpunit { "phpunit" } else { runner }, has_failures))
}

/// Reads lists of counts: `3 runs, 3 assertions, 1 failures, 0 errors, 0 skips`, `2 examples, 1 failure`.
fn counted(_: &str, text: &str) -> Found {
    const FIRST: [(&str, &str); 10] = [
        ("run", "minitest"),
        ("runs", "minitest"),
        ("test", "test-unit"),
        ("tests", "test-unit"),
        ("doctest", "mix"),
        ("doctests", "mix"),
        ("example", "rspec"),
        ("examples", "rspec"),
        ("spec", "jasmine"),
        ("specs", "jasmine"),
    ];
    let pairs = text.trim_end_matches('.').split(", ").map(counted_word).collect::<Option<Vec<_>>>()?;
    let (_, first) = pairs.first()?;
    let completed = first.strip_suffix(" completed").unwrap_or(first);
    let (_, runner) = FIRST.into_iter().find(|(word, _)| *word == completed)?;
    let tells = pairs.iter().skip(1).any(|(_, word)| is_failure(word));
    tells.then(|| (runner, pairs.iter().any(|(count, word)| *count > 0 && is_failure(word))))
}

/// Reads the summaries of libtest, `go test`, automake and meson, which tell of failures: `test result: FAILED. 0 passed;
/// 1 failed; …`, `FAIL\texample.org/a\t0.1s`, `# FAIL:  1`, `Fail:               1`.
fn compiled(line: &str, text: &str) -> Found {
    if let Some(counts) = line.strip_prefix("test result: FAILED. ") {
        return counts.contains(" passed; ").then_some(("cargo", true));
    }
    if let Some(package) = line.strip_prefix("FAIL\t") {
        return package.contains('\t').then_some(("go", true));
    }
    let of_automake =
        ["# FAIL: ", "# ERROR: ", "# XPASS: "].iter().find_map(|label| line.strip_prefix(label));
    if let Some(count) = of_automake {
        return number(count.trim()).map(|count| ("automake", count > 0));
    }
    // Meson's labels stand in a column of 20 characters.
    let count = line.strip_prefix("Fail:           ")?;
    number(count.trim()).filter(|_| text.starts_with("Fail:")).map(|count| ("meson", count > 0))
}

/// Reads the summaries of Cucumber, behave, karma, busted and prove: `3 scenarios (1 failed, 2 passed)`, `0 features passed, 1
/// failed, 0 skipped`, `Executed 2 of 2 (1 FAILED)`, `1 success / 1 failure / 0 errors / 0 pending`.
fn behaviour(_: &str, text: &str) -> Found {
    if text == PROVE_FAILURE {
        return Some(("prove", true));
    }
    if let Some(counts) = text.strip_prefix("Executed ").filter(|counts| counts.contains(" of ")) {
        return counts.contains(" FAILED)").then_some(("karma", true));
    }
    let (_, words) = counted_word(text)?;
    if let Some(counts) = words.strip_prefix("scenarios (").or_else(|| words.strip_prefix("scenario (")) {
        return Some(("cucumber", has_failure_count(counts)));
    }
    if words.starts_with("features passed, ") || words.starts_with("feature passed, ") {
        return Some(("behave", has_failure_count(text)));
    }
    let is_of_busted =
        (words.starts_with("success / ") || words.starts_with("successes / ")) && words.contains(" pending");
    is_of_busted.then(|| ("busted", has_failure_count(&text.replace(" / ", ", "))))
}

/// Reads the summaries of frameworks of C and C++: `Run:  5   Failures: 2   Errors: 0`, `50%: Checks: 2, Failures: 1, Errors: 0`,
/// `5 Tests 2 Failures 0 Ignored`, `Totals: 3 passed, 1 failed, …`, `*** 1 failure is detected in the test module "a"`.
fn of_c(line: &str, text: &str) -> Found {
    if let Some(counts) = text.strip_prefix("Run: ").filter(|counts| counts.contains("Failure")) {
        return Some(("CppUnit", has_failure_count(&counts.replace("Failure total:", "Failures:"))));
    }
    if let Some((percentage, counts)) = text.split_once("%: Checks: ") {
        return number(percentage).map(|_| ("Check", has_failure_count(counts)));
    }
    if let Some(counts) = line.strip_prefix("*** ").filter(|text| text.contains(" detected in the test ")) {
        return counts.contains(" failure").then_some(("Boost.Test", true));
    }
    if let Some(counts) = text.strip_prefix("Totals: ").filter(|counts| counts.contains(" passed, ")) {
        return Some(("QtTest", has_failure_count(counts)));
    }
    if text.contains("Synthesis: Tested: ") {
        let is_bad = |word: &str| {
            let count = text.split_once(word).and_then(|(_, rest)| rest.trim_start().split(' ').next());
            count.and_then(number).is_some_and(|count| count > 0)
        };
        return Some(("Criterion", is_bad("Failing:") || is_bad("Crashing:")));
    }
    if let Some(counts) = text.strip_prefix("Errors (").filter(|counts| counts.contains(" checks, ")) {
        return counts.contains(" ran, ").then_some(("CppUTest", true));
    }
    if let Some(counts) = text.strip_prefix("FAILURE: ").filter(|counts| counts.contains(" tests failed (")) {
        return counts.contains(" out of ").then_some(("UnitTest++", true));
    }
    let words: Vec<_> = text.split_whitespace().collect();
    match words.as_slice() {
        [tests, "Tests", failures, "Failures", ignored, "Ignored"] => {
            let (Some(_), Some(failures), Some(_)) = (number(tests), number(failures), number(ignored))
            else {
                return None;
            };
            Some(("Unity", failures > 0))
        }
        // The row of a table: all, those that ran, passed, failed, and inactive ones.
        ["tests", counts @ ..] if counts.len() == 5 => {
            let counts = counts.iter().map(|count| number(count)).collect::<Option<Vec<_>>>()?;
            Some(("CUnit", counts.get(3).is_some_and(|failed| *failed > 0)))
        }
        _ => None,
    }
}

/// Reads the summaries of `CTest`, nextest, Swift, `GoogleTest` and cmocka.
fn others(line: &str, text: &str) -> Found {
    if text.contains("% tests passed, ") && text.contains(" tests failed out of ") {
        return Some(("ctest", has_failure_count(&text.replace(" tests failed", " failed"))));
    }
    if text.starts_with("Summary [") && text.contains(" run: ") {
        return Some(("nextest", has_failure_count(text)));
    }
    if text.starts_with("Executed ") && text.contains(" tests, with ") {
        return Some(("swift", has_failure_count(text)));
    }
    let rest = line.strip_prefix("[  FAILED  ] ")?;
    let is_list = ["test", "tests", "test(s)"].iter().any(|word| {
        rest.strip_suffix(", listed below:").is_some_and(|rest| rest.ends_with(&format!(" {word}")))
    });
    is_list.then_some(("GoogleTest", true))
}

/// Returns the number and the words of `1 failed`.
fn counted_word(text: &str) -> Option<(u64, &str)> {
    let (count, word) = text.trim().split_once(' ')?;
    Some((number(count)?, word))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Returns true for a word that counts failures: `failed`, `failures`, `error occurred outside of examples`.
fn is_failure(word: &str) -> bool {
    word.starts_with("fail") || word.starts_with("error")
}

/// Returns true if a text has a count of failures that is not 0, before its word or after it.
fn has_failure_count(text: &str) -> bool {
    let words: Vec<_> = text.split([' ', ',', '|', '(', ')', '.']).filter(|word| !word.is_empty()).collect();
    words.windows(2).any(|pair| {
        let count_of = |count: &str, word: &str| {
            number(count).is_some_and(|count| count > 0) && is_failure(&word.to_lowercase())
        };
        count_of(pair[0], pair[1]) && !pair[1].ends_with(':')
            || (pair[0].ends_with(':') && count_of(pair[1], pair[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Found {
        printed_summary(line).map(|summary| (summary.runner, summary.has_failures))
    }

    #[test]
    fn the_summaries_of_runners_are_known_and_so_is_whether_they_tell_of_failures() {
        for (line, runner, has_failures) in [
            ("FAILED (failures=1)", "unittest", true),
            ("FAILED (errors=1, skipped=2)", "unittest", true),
            ("Ran 3 tests in 0.001s", "unittest", false),
            ("Ran 1 test in 0.001s", "unittest", false),
            ("==== 1 failed, 2 passed in 0.12s ====", "pytest", true),
            ("2 passed, 1 warning in 0.12s", "pytest", false),
            ("======= 2 passed, 1 error in 75.12s (0:01:15) =======", "pytest", true),
            ("1 failed in 0.01s", "pytest", true),
            ("1 runs, 1 assertions, 1 failures, 0 errors, 0 skips", "minitest", true),
            ("1 runs, 1 assertions, 0 failures, 0 errors, 0 skips", "minitest", false),
            (
                "1 tests, 1 assertions, 1 failures, 0 errors, 0 pendings, 0 omissions, 0 notifications",
                "test-unit",
                true,
            ),
            ("3 tests, 1 failure", "test-unit", true),
            ("1 doctest, 3 tests, 0 failures", "mix", false),
            ("2 examples, 1 failure, 1 pending", "rspec", true),
            ("0 examples, 0 failures, 1 error occurred outside of examples", "rspec", true),
            ("Tests:       1 failed, 2 passed, 3 total", "jest", true),
            ("Tests:       3 passed, 3 total", "jest", false),
            ("      Tests  1 failed | 2 passed (3)", "vitest", true),
            (" Test Files  1 passed (1)", "vitest", false),
            ("  1 failing", "mocha", true),
            ("  2 passing (4ms)", "mocha", false),
            ("  1 test failed", "ava", true),
            ("ℹ fail 1", "node", true),
            ("# fail 0", "node", false),
            (" 1 fail", "bun", true),
            ("  1 failed", "playwright", true),
            ("FAILED | 1 passed | 1 failed (2ms)", "deno", true),
            ("ok | 2 passed | 0 failed (2ms)", "deno", false),
            ("Tests: 3, Assertions: 3, Failures: 1.", "phpunit", true),
            ("Tests: 3, Assertions: 3, Skipped: 1.", "phpunit", false),
            ("[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0", "maven", true),
            ("[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0", "maven", false),
            ("Tests run: 3,  Failures: 1", "maven", true),
            ("3 tests completed, 1 failed", "test-unit", true),
            ("Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3", "dotnet", true),
            ("50% tests passed, 1 tests failed out of 2", "ctest", true),
            ("100% tests passed, 0 tests failed out of 2", "ctest", false),
            ("     Summary [   0.005s] 2 tests run: 1 passed, 1 failed, 0 skipped", "nextest", true),
            ("Executed 3 tests, with 1 failure (0 unexpected) in 0.1 (0.1) seconds", "swift", true),
            ("test cases: 2 | 1 passed | 1 failed", "Catch2", true),
            ("[  FAILED  ] 1 test, listed below:", "GoogleTest", true),
            ("[  FAILED  ] tests: 1 test(s), listed below:", "GoogleTest", true),
            ("Run: 5   Failure total: 2   Failures: 2   Errors: 0", "CppUnit", true),
            ("Run: 5   Failure total: 2", "CppUnit", true),
            ("Run:  5   Failures: 0   Errors: 1", "CppUnit", true),
            ("Run:  5   Failures: 0   Errors: 0", "CppUnit", false),
            ("50%: Checks: 2, Failures: 1, Errors: 0", "Check", true),
            ("100%: Checks: 2, Failures: 0, Errors: 0", "Check", false),
            ("5 Tests 2 Failures 0 Ignored ", "Unity", true),
            ("5 Tests 0 Failures 1 Ignored", "Unity", false),
            ("               tests      3      3      2      1        0", "CUnit", true),
            ("               tests      3      3      3      0        0", "CUnit", false),
            ("*** 2 failures are detected in the test module \"a\"", "Boost.Test", true),
            ("*** 1 failure is detected in the test module \"a\"", "Boost.Test", true),
            ("Totals: 3 passed, 1 failed, 0 skipped, 0 blacklisted, 2ms", "QtTest", true),
            ("Totals: 3 passed, 0 failed, 0 skipped, 0 blacklisted, 2ms", "QtTest", false),
            ("[====] Synthesis: Tested: 2 | Passing: 1 | Failing: 1 | Crashing: 0 ", "Criterion", true),
            ("[====] Synthesis: Tested: 2 | Passing: 2 | Failing: 0 | Crashing: 0 ", "Criterion", false),
            (
                "Errors (1 failures, 2 tests, 2 ran, 2 checks, 0 ignored, 0 filtered out, 0 ms)",
                "CppUTest",
                true,
            ),
            ("FAILURE: 1 out of 3 tests failed (1 failures).", "UnitTest++", true),
            ("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out", "cargo", true),
            ("FAIL\texample.org/a\t0.003s", "go", true),
            ("# FAIL:  1", "automake", true),
            ("# FAIL:  0", "automake", false),
            ("Fail:               1   ", "meson", true),
            ("Result: FAIL", "prove", true),
            ("3 scenarios (1 failed, 2 passed)", "cucumber", true),
            ("3 scenarios (3 passed)", "cucumber", false),
            ("0 features passed, 1 failed, 0 skipped", "behave", true),
            ("Executed 2 of 2 (1 FAILED) (0.1 secs / 0.05 secs)", "karma", true),
            ("1 success / 1 failure / 0 errors / 0 pending : 0.001 seconds", "busted", true),
            ("2 successes / 0 failures / 0 errors / 0 pending : 0.001 seconds", "busted", false),
            ("0 fail", "bun", false),
            ("0 failing", "mocha", false),
        ] {
            assert_eq!(found(line), Some((runner, has_failures)), "{line}");
        }
    }

    #[test]
    fn other_lines_with_numbers_are_no_summaries() {
        for line in [
            "",
            "3 files changed, 2 insertions(+)",
            "12 errors, 3 warnings",
            "error: 1 failed to load",
            "Tests: see README 1",
            "FAILED (disk=1)",
            "added 3 packages in 2s",
            "Ran 3 jobs in 1s",
            "1 failed attempt",
            "compiled 3 files in 0.2s",
            "Executed 3 statements",
            "Run: 5 times",
            "tests 1 2",
            "50%: 2 files",
            "Totals: 3 files",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
