//! The environment variables that a command gets.

use process_runner::{Command, EnvPolicy};
use std::ffi::OsString;

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

/// Returns `command` as a terminal would start it: without [`LAUNCHER_VARIABLES`].
pub(crate) fn without_launcher_variables(command: Command) -> Command {
    LAUNCHER_VARIABLES.into_iter().fold(command, Command::env_remove)
}
