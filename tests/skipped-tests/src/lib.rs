//! Tests need programs, kernels and rights that not every machine has.
//!
//! [`require`] is the only way in which a test of this workspace may be skipped. With the environment variable `CI` set, it
//! fails the test instead: there, everything is installed. Elsewhere it writes the test down, and the test target
//! `summary` of this package, which `cargo test --workspace` runs last, prints one line about all of them.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]
#![allow(
    clippy::disallowed_methods,
    reason = "the record is a file of the test run, and the run is known by the environment"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

/// Names the run to a test that starts itself again: its parent is then not cargo.
pub const RUN_VARIABLE: &str = "SKIPPED_TESTS_RUN";

/// Returns `found`. Where it is `None`, the calling test cannot run and must return: it is recorded with what is `missing`,
/// a clause such as "no chromium; install it: apt install chromium".
///
/// # Panics
/// With the environment variable `CI` set, where nothing may be missing.
#[track_caller]
pub fn require<T>(found: Option<T>, missing: &str) -> Option<T> {
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "this test cannot run: {missing}");
        eprintln!("skipped: {missing}");
        record(missing);
    }
    found
}

/// Appends the current test to the record. A test is not failed for want of a record.
fn record(missing: &str) {
    let thread = std::thread::current();
    let line = format!("{}\t{}\n", thread.name().unwrap_or("unnamed"), missing.replace('\n', " "));
    // One write per line: several processes append at once.
    let file = File::options().create(true).append(true).open(path());
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Returns the line that sums up this run and removes its record; `None` if no test was skipped.
#[must_use]
pub fn take_summary() -> Option<String> {
    let record = std::fs::read_to_string(path()).ok()?;
    let _ = std::fs::remove_file(path());
    summarize(&record)
}

/// Counts the tests by what they miss. How to install it, which follows a semicolon, is left out.
fn summarize(record: &str) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, missing) in record.lines().filter_map(|line| line.split_once('\t')) {
        *counts.entry(missing.split(';').next().unwrap_or(missing)).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let mut text = format!("{total} {} skipped:", if total == 1 { "test was" } else { "tests were" });
    for (number, (missing, count)) in counts.iter().enumerate() {
        let _ = write!(text, "{} {missing} ({count})", if number == 0 { "" } else { "," });
    }
    (total > 0).then(|| text + ". `.ci/run tools` installs what is missing.")
}

fn path() -> PathBuf {
    std::env::temp_dir().join(format!("coretools-skipped-tests-{}", run_id()))
}

/// Returns an id that the test processes of one run share: the one that nextest or a parent test gives them, else the
/// process that started them, which is cargo, with its start time, as process ids are used again.
#[must_use]
pub fn run_id() -> String {
    let given = |name| std::env::var(name).ok();
    given("NEXTEST_RUN_ID").or_else(|| given(RUN_VARIABLE)).unwrap_or_else(parent)
}

#[cfg(unix)]
fn parent() -> String {
    let parent = std::os::unix::process::parent_id();
    let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
    // Field 22 of proc_pid_stat(5); the second field, the name, may hold blanks.
    let started = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(19));
    format!("{parent}-{}", started.unwrap_or("0"))
}

#[cfg(not(unix))]
fn parent() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_tests_by_what_they_miss() {
        let record = "a\tno caddy\nb\tno chromium; install it: apt install chromium\nc\tno chromium; else\n";
        assert_eq!(
            summarize(record).as_deref(),
            Some(
                "3 tests were skipped: no caddy (1), no chromium (2). `.ci/run tools` installs what is missing."
            )
        );
        assert_eq!(summarize(""), None);
    }

    #[test]
    fn what_is_found_is_returned_and_nothing_is_recorded() {
        assert_eq!(require(Some(1), "nothing"), Some(1));
    }
}
