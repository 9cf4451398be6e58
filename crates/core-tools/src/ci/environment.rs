//! The environment variables that a command gets.

use process_runner::{Command, EnvPolicy, Runner};
use std::ffi::{OsStr, OsString};

/// The part of the server's own environment that a command inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvironmentPolicy {
    /// All variables: right for a local server, whose user's toolchains are found through them.
    #[default]
    Inherit,
    /// The variables that programs need to work at all: `PATH`, home, user, locale, time zone, temporary folder
    /// and the homes of toolchains. No variable that is likely to hold a secret.
    Minimal,
}

impl EnvironmentPolicy {
    /// Returns true if a command inherits a variable of this name, where the server has it.
    #[cfg(feature = "testing")]
    pub(super) fn allows(self, name: &str) -> bool {
        self == Self::Inherit || MINIMAL_VARIABLES.contains(&name)
    }

    /// Returns `command` with the environment that this policy allows.
    pub(super) fn apply(self, command: Command) -> Command {
        match self {
            Self::Inherit => command,
            Self::Minimal => {
                command.env_policy(EnvPolicy::Allow(MINIMAL_VARIABLES.map(OsString::from).to_vec()))
            }
        }
    }
}

/// The variables of [`EnvironmentPolicy::Minimal`].
const MINIMAL_VARIABLES: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "NVM_DIR",
    "PYENV_ROOT",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SYSTEMROOT",
    "PATHEXT",
];

/// Variables that cargo, a test runner or make set for the server when they started it. A terminal does not have
/// them, and toolchains behave differently with them.
const LAUNCHER_VARIABLES: [&str; 45] = [
    "CARGO",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
    "RUST_RECURSION_COUNT",
    "RUST_TEST_NOCAPTURE",
    "RUST_TEST_SHUFFLE",
    // rustup's proxies set it, and it takes precedence over the project's `rust-toolchain.toml`.
    "RUSTUP_TOOLCHAIN",
    "__CARGO_DEFAULT_LIB_METADATA",
    "NEXTEST",
    "NEXTEST_ATTEMPT",
    "NEXTEST_BINARY_ID",
    "NEXTEST_EXECUTION_MODE",
    "NEXTEST_PROFILE",
    "NEXTEST_RUN_ID",
    "NEXTEST_TEST_NAME",
    "NEXTEST_TEST_GROUP",
    // With it, `node --test` believes that it runs inside another `node --test`.
    "NODE_TEST_CONTEXT",
    "NODE_CHANNEL_FD",
    "JEST_WORKER_ID",
    "VITEST",
    "PYTEST_CURRENT_TEST",
    "BATS_TEST_FILENAME",
    "BATS_RUN_TMPDIR",
    // May name the job server of another make, whose descriptors a command does not inherit.
    "MAKEFLAGS",
    "FORCE_COLOR",
];

/// Further variables that say how the server itself, or the test that it runs in, was started, and how it logs. Settings of the user's toolchain, such as
/// `CARGO_HOME`, `RUSTFLAGS` and `RUSTC_WRAPPER`, stay.
const SERVER_VARIABLES: [&str; 20] = [
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
const SERVER_PREFIXES: [&str; 5] =
    ["CARGO_BIN_EXE_", "CARGO_CFG_", "CARGO_FEATURE_", "CARGO_PKG_", "CORETOOLS_"];

/// Variables that name a program which asks for a password in a window, where nobody may sit.
const ASKING_PROGRAMS: [&str; 3] = ["GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS"];

/// Returns `command` with the environment that a terminal would give it, but for what would ask somebody at a screen.
///
/// Nothing is set that a program may look at: no `NO_COLOR`, `TERM`, `PAGER` or `GIT_*`. A program cannot ask or page,
/// because it has no terminal: its session is its own.
pub(super) fn terminal_environment(command: Command, runner: &Runner) -> Command {
    let has_prefix = |name: &OsStr, prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
    // Within a test of nextest its variables are its own; elsewhere they are the user's settings of it.
    let in_nextest = runner.environment_names().any(|name| name == "NEXTEST_RUN_ID");
    let by_prefix = runner.environment_names().filter(|name| {
        SERVER_PREFIXES.iter().any(|prefix| has_prefix(name, prefix))
            || (in_nextest && has_prefix(name, "NEXTEST"))
    });
    let withheld = LAUNCHER_VARIABLES.into_iter().chain(SERVER_VARIABLES).chain(ASKING_PROGRAMS);
    let command = withheld.fold(command, Command::env_remove);
    by_prefix
        .fold(command, Command::env_remove)
        // Without them ssh and git's credential manager would open windows of their own.
        .envs([("SSH_ASKPASS_REQUIRE", "never"), ("GCM_INTERACTIVE", "never")])
}
