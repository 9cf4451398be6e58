//! The scenarios whose faults show once in thousands of runs, with that many; takes minutes.
//!
//! ```sh
//! cargo test --package process-runner --features stress --test stress
//! ```
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests look at what the runs did, with other means")]
#![allow(clippy::print_stderr, reason = "what a failing test says")]
#![allow(dead_code, reason = "of the other scenarios only what these share with them is used")]
#![cfg(target_os = "linux")]

#[path = "scenarios/harness.rs"]
mod harness;
#[path = "scenarios/interleaving.rs"]
mod interleaving;
#[path = "scenarios/pipes.rs"]
mod pipes;
#[path = "scenarios/scale.rs"]
mod scale;
#[path = "scenarios/time.rs"]
mod time;

/// How often a scenario repeats what must hold every time: `few` times in the target `scenarios`, `many` here.
const fn rounds<T: Copy>(_few: T, many: T) -> T {
    many
}

#[test]
fn exit_and_timeout_at_once_on_current_thread() {
    harness::current_thread(
        "exit_and_timeout_at_once_on_current_thread",
        time::s44_exit_and_timeout_at_once_give_one_of_them_with_all_output,
    );
}

#[test]
fn exit_and_timeout_at_once_on_multi_thread() {
    harness::multi_thread(
        "exit_and_timeout_at_once_on_multi_thread",
        time::s44_exit_and_timeout_at_once_give_one_of_them_with_all_output,
    );
}

#[test]
fn thousands_of_short_runs_on_current_thread() {
    harness::current_thread(
        "thousands_of_short_runs_on_current_thread",
        scale::s52_thousands_of_short_runs_leave_nothing_behind,
    );
}

#[test]
fn thousands_of_short_runs_on_multi_thread() {
    harness::multi_thread(
        "thousands_of_short_runs_on_multi_thread",
        scale::s52_thousands_of_short_runs_leave_nothing_behind,
    );
}
