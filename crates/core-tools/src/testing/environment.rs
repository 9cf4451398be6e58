//! The environment of a runner, so that it does what it does in a terminal.

use crate::ci::without_launcher_variables;
use process_runner::{Command, Runner};
use std::ffi::OsStr;

/// Variables that are withheld from runners beside those that no command gets: they say how the server itself,
/// or the test that it runs in, was started, and how it logs. Settings of the user's toolchain, such as
/// `CARGO_HOME`, `RUSTFLAGS` and `RUSTC_WRAPPER`, stay.
const LAUNCHER_VARIABLES: [&str; 20] = [
    "BATS_ROOT",
    "CORE_TOOLS_EVENTS",
    "FILESYSTEM_TOOLS_BASE_PATH",
    // Set in a hook of git.
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

/// Prefixes of further such variables: of those that cargo sets for what it builds, and our own.
const LAUNCHER_PREFIXES: [&str; 5] =
    ["CARGO_BIN_EXE_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PKG_", "CORETOOLS_"];

/// Returns `command` with the environment that a terminal would give it.
pub(super) fn terminal_environment(command: Command, runner: &Runner) -> Command {
    let has_prefix = |name: &OsStr, prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
    // Within a test of nextest its variables are its own; elsewhere they are the user's settings of it.
    let in_nextest = runner.environment_names().any(|name| name == "NEXTEST_RUN_ID");
    let by_prefix = runner.environment_names().filter(|name| {
        LAUNCHER_PREFIXES.iter().any(|prefix| has_prefix(name, prefix))
            || (in_nextest && has_prefix(name, "NEXTEST"))
    });
    let command =
        LAUNCHER_VARIABLES.into_iter().fold(without_launcher_variables(command), Command::env_remove);
    by_prefix.fold(command, Command::env_remove)
}
