//! Guards the cost of the server: the instructions that a start, a read, a list, a command and a decision of the policy
//! take, as valgrind counts them, compared with `counts.toml`.
//!
//! ```sh
//! .ci/run instructions                        # fails if a count has grown by more than 3 %
//! UPDATE_INSTRUCTIONS=1 .ci/run instructions  # writes the counts of this machine's compiler
//! ```
//!
//! Instructions and not time: a loaded machine counts the same. docs/benchmarks/start.md has the spread.
#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and this one reports what it has counted"
)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod counts;
mod served;
mod valgrind;
mod workloads;

use counts::{Counts, MAX_GROWTH, RecordedCounts};
use integration_tests::require;
use std::path::Path;

/// Returns the counts of this build.
fn measure() -> Counts {
    let start = served::start();
    // With the first call, which sets up what later calls use.
    let per_call = |count: u64| count.saturating_sub(start) / u64::from(served::CALLS);
    Counts::from([
        ("start", start),
        ("read", per_call(served::calls(served::READ))),
        ("list", per_call(served::calls(served::LIST))),
        ("echo", workloads::echo()),
        ("decision", workloads::decision()),
    ])
}

#[test]
fn no_operation_takes_more_instructions_than_recorded() {
    if require(valgrind::is_installed().then_some(()), valgrind::MISSING).is_none()
        || require(valgrind::has_namespaces().then_some(()), valgrind::NO_NAMESPACES).is_none()
    {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions/counts.toml");
    let mut recorded = RecordedCounts::read(&file);
    let measured = measure();
    let profile = if cfg!(debug_assertions) { "debug" } else { "dist" };
    if std::env::var_os("UPDATE_INSTRUCTIONS").is_some() {
        recorded.replace(profile, measured);
        recorded.write(&file);
        return;
    }
    let comparison = recorded.compare(profile, &measured);
    eprintln!("{comparison}");
    assert!(
        comparison.grown().is_empty(),
        "{} grew by more than {MAX_GROWTH} % in the profile {profile}:\n{comparison}\nFind out why. If it must be so, record \
         it: UPDATE_INSTRUCTIONS=1 .ci/run instructions",
        comparison.grown().join(", ")
    );
}
