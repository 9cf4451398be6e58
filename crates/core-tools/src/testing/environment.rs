//! What a runner does not get of the server's environment, so that it says what it says in a terminal.

use crate::ci::without_ours;
use process_runner::{Command, Runner};
use std::ffi::OsStr;

/// Beside what no command gets: how the server itself, or the test that it runs in, was started, and how it
/// logs. Settings of the user's toolchain, such as `CARGO_HOME`, `RUSTFLAGS` and `RUSTC_WRAPPER`, stay.
const OURS: [&str; 20] = [
    "BATS_ROOT",
    "CORE_TOOLS_EVENTS",
    "FILESYSTEM_TOOLS_BASE_PATH",
    // A hook of git has them.
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_WORK_TREE",
    "MAKELEVEL",
    "MFLAGS",
    "PYTEST_XDIST_TESTRUNUID",
    "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_WORKER_COUNT",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_LOG_STYLE",
    "RUST_TEST_THREADS",
    "RUST_TEST_TIME_INTEGRATION",
    "RUST_TEST_TIME_UNIT",
    "VITEST_POOL_ID",
    "VITEST_WORKER_ID",
];

/// The same of names that are made of others: of what cargo builds, and ours.
const PREFIXES: [&str; 5] = ["CARGO_BIN_EXE_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PKG_", "CORETOOLS_"];

/// `command` as it would be in a terminal.
pub(super) fn as_in_a_terminal(command: Command, runner: &Runner) -> Command {
    let starts = |name: &OsStr, with: &str| name.as_encoded_bytes().starts_with(with.as_bytes());
    // Within a test of nextest its variables are its own; elsewhere they are the user's settings of it.
    let in_nextest = runner.environment_names().any(|name| name == "NEXTEST_RUN_ID");
    let by_prefix = runner.environment_names().filter(|name| {
        PREFIXES.iter().any(|prefix| starts(name, prefix)) || (in_nextest && starts(name, "NEXTEST"))
    });
    let command = OURS.into_iter().fold(without_ours(command), Command::env_remove);
    by_prefix.fold(command, Command::env_remove)
}
