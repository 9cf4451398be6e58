//! What a runner does not get of the server's environment, so that it says what it says in a terminal.

use crate::ci::without_ours;
use process_runner::Command;

/// Beside what no command gets: how the server itself, or the test that it runs in, was started, and how it
/// logs. Settings of the user's toolchain, such as `CARGO_HOME`, `RUSTFLAGS` and `RUSTC_WRAPPER`, stay.
const OURS: [&str; 35] = [
    "CORETOOLS_AGENT_COMMAND",
    "CORETOOLS_COMMANDS_ENVIRONMENT",
    "CORETOOLS_CONFIG",
    "CORETOOLS_LIMITS_CALL_TIMEOUT_MS",
    "CORETOOLS_LIMITS_MAX_CONCURRENT_CALLS",
    "CORETOOLS_LIMITS_MAX_OUTPUT_BYTES",
    "CORETOOLS_LIMITS_MAX_TIMEOUT_MS",
    "CORETOOLS_LOG",
    "CORETOOLS_POLICY_AUDIT",
    "CORETOOLS_POLICY_AUDIT_WHEN_FULL",
    "CORETOOLS_POLICY_CONFINEMENT",
    "CORETOOLS_POLICY_FILE",
    "CORETOOLS_POLICY_MARKER_KEY",
    "CORETOOLS_POLICY_NETWORK",
    "CORETOOLS_REDACTION_ENABLED",
    "CORETOOLS_REDACTION_ENVIRONMENT_VALUES",
    "CORETOOLS_REDACTION_VARIABLES",
    "CORETOOLS_RESULTS",
    "CORETOOLS_ROLE",
    "CORETOOLS_ROOTS",
    "CORETOOLS_STATE_DIR",
    "CORETOOLS_TOOLSETS",
    "CORE_TOOLS_EVENTS",
    "FILESYSTEM_TOOLS_BASE_PATH",
    "NEXTEST_EXPERIMENTAL_LIBTEST_JSON",
    "NEXTEST_LD_LIBRARY_PATH",
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

/// `command` as it would be in a terminal.
pub(super) fn as_in_a_terminal(command: Command) -> Command {
    OURS.into_iter().fold(without_ours(command), Command::env_remove)
}
