//! The environment variables that a command gets.

use super::inheritable_variables::{LOCALE_PREFIX, LOCATIONS, SETTINGS};
use crate::redact::{RedactionOptions, Redactor};
use process_runner::{Command, EnvPolicy, Runner};
use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The part of the server's own environment that a command inherits. All of it by default: right for a local server,
/// whose user's toolchains are found through it.
///
/// The [`Display`](fmt::Display) form is one line that says what is in force, and names what is withheld.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentPolicy(EnvironmentState);

#[derive(Clone, Debug, Default)]
enum EnvironmentState {
    #[default]
    Inherit,
    Minimal(Arc<MinimalEnvironment>),
    Deferred(Arc<OnceLock<EnvironmentPolicy>>),
}

/// The variables that a command inherits from a minimal environment, judged once for all runs.
#[derive(Debug, Default)]
struct MinimalEnvironment {
    inherited: Vec<OsString>,
    /// The names of the server's other variables, sorted.
    withheld: Vec<String>,
    /// The names that a process of another server may inherit, which has another environment.
    inheritable: Vec<String>,
}

/// The pending decision of an [`EnvironmentPolicy::deferred`] policy.
#[derive(Debug)]
pub struct DeferredEnvironment(Arc<OnceLock<EnvironmentPolicy>>);

impl DeferredEnvironment {
    /// Puts `policy` in force for all commands that were created with the deferred one.
    pub fn set(self, policy: EnvironmentPolicy) {
        // The cell is empty: there is one handle to it, and this call consumes it.
        let _ = self.0.set(policy);
    }
}

/// The part of the server's environment that commands get, for people and models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommandEnvironment {
    /// `inherit`: all of it. `minimal`: what programs and toolchains need to work.
    pub mode: String,
    /// The names of the variables that commands do not get. The operator can name some in `commands.variables`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

impl EnvironmentPolicy {
    /// Creates a policy under which a command inherits all variables of the server.
    pub fn inherit() -> Self {
        Self::default()
    }

    /// Creates a policy under which a command inherits, of the environment of `runner`, what programs need to work: the
    /// search path, home, user, locale, time zone, temporary folder, certificates, and the homes, caches and flags of
    /// toolchains. A proxy, a mirror or a flag is left out if its value shows a secret, such as a password in an
    /// address. `further` are the names of other variables that it inherits; a `*` at the end stands for any ending.
    pub fn minimal(runner: &Runner, further: &[String]) -> Self {
        // By form only: a known value may also be a part of a harmless one. Without values it cannot fail.
        let forms = Redactor::new(RedactionOptions::default()).ok();
        let shows_secret = |value: &OsStr| {
            let value = value.to_string_lossy();
            forms.as_ref().is_none_or(|forms| forms.redact(&value) != value)
        };
        let mut environment = MinimalEnvironment {
            inheritable: LOCATIONS
                .into_iter()
                .chain(LOCALE_CATEGORIES)
                .map(str::to_owned)
                .chain(further.iter().cloned())
                .collect(),
            ..MinimalEnvironment::default()
        };
        for name in runner.environment_names() {
            let text = name.to_string_lossy();
            let is_setting = SETTINGS.iter().any(|known| is_same_name(known, &text));
            let is_clean_setting = || is_setting && !runner.environment_value(name).is_some_and(shows_secret);
            if is_location(&text) || is_named(further, &text) || is_clean_setting() {
                if is_setting {
                    environment.inheritable.push(text.into_owned());
                }
                environment.inherited.push(name.to_owned());
            } else if !is_of_server(&text) {
                environment.withheld.push(text.into_owned());
            }
        }
        environment.withheld.sort_unstable();
        Self(EnvironmentState::Minimal(Arc::new(environment)))
    }

    /// Creates a policy whose content follows later, and the handle that sets it: it follows from the role policy, which
    /// judges tools that exist before it. Until then, a command inherits nothing.
    pub fn deferred() -> (Self, DeferredEnvironment) {
        let decision = Arc::default();
        (Self(EnvironmentState::Deferred(Arc::clone(&decision))), DeferredEnvironment(decision))
    }

    /// Returns the mode and the names of the withheld variables.
    pub fn summary(&self) -> CommandEnvironment {
        match self.state() {
            EnvironmentState::Inherit => {
                CommandEnvironment { mode: "inherit".to_owned(), withheld: Vec::new() }
            }
            EnvironmentState::Minimal(environment) => {
                CommandEnvironment { mode: "minimal".to_owned(), withheld: environment.withheld.clone() }
            }
            EnvironmentState::Deferred(_) => {
                CommandEnvironment { mode: "not decided".to_owned(), withheld: Vec::new() }
            }
        }
    }

    /// Returns the names of the variables that a process may inherit from another server of the same user. `None` means
    /// all of them.
    #[cfg(all(feature = "mcp", feature = "sessions", unix))]
    pub(crate) fn inheritable(&self) -> Option<Vec<String>> {
        match self.state() {
            EnvironmentState::Inherit => None,
            EnvironmentState::Minimal(environment) => Some(environment.inheritable.clone()),
            EnvironmentState::Deferred(_) => Some(Vec::new()),
        }
    }

    /// Returns true if a command inherits a variable of this name, where the server has it.
    #[cfg(any(feature = "testing", feature = "git"))]
    pub(crate) fn allows(&self, name: &str) -> bool {
        match self.state() {
            EnvironmentState::Inherit => true,
            EnvironmentState::Minimal(environment) => environment.inherited.iter().any(|other| other == name),
            EnvironmentState::Deferred(_) => false,
        }
    }

    /// Returns `command` with the environment that this policy allows.
    pub(super) fn apply(&self, command: Command) -> Command {
        match self.state() {
            EnvironmentState::Inherit => command,
            EnvironmentState::Minimal(environment) => {
                command.env_policy(EnvPolicy::Allow(environment.inherited.clone()))
            }
            EnvironmentState::Deferred(_) => command.env_policy(EnvPolicy::Clear),
        }
    }

    /// Returns `command`, which chooses its own environment and runs programs of the caller, without the settings that
    /// this policy withholds for the secrets in their values.
    #[cfg(feature = "git")]
    pub(crate) fn withhold_secrets(&self, command: Command) -> Command {
        match self.state() {
            EnvironmentState::Inherit => command,
            _ => SETTINGS.into_iter().filter(|name| !self.allows(name)).fold(command, Command::env_remove),
        }
    }

    /// Returns the state in force: that of the decision, where one was deferred and has been made.
    fn state(&self) -> &EnvironmentState {
        match &self.0 {
            EnvironmentState::Deferred(decision) => decision.get().map_or(&self.0, Self::state),
            state => state,
        }
    }
}

impl fmt::Display for EnvironmentPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommandEnvironment { mode, withheld } = self.summary();
        match withheld.as_slice() {
            [] => f.write_str(&mode),
            names => write!(f, "{mode}; commands do not get {}", names.join(", ")),
        }
    }
}

/// The categories of the locale, for a process that inherits by name from an environment that is not known here.
const LOCALE_CATEGORIES: [&str; 6] =
    ["LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"];

fn is_location(name: &str) -> bool {
    name.starts_with(LOCALE_PREFIX) || LOCATIONS.iter().any(|known| is_same_name(known, name))
}

/// Returns true if one of `patterns` is `name`, or begins it and ends in a `*`.
fn is_named(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => is_same_name(pattern, name),
    })
}

/// Returns true if two names are those of one variable. Windows does not distinguish their case.
fn is_same_name(one: &str, other: &str) -> bool {
    if cfg!(windows) { one.eq_ignore_ascii_case(other) } else { one == other }
}

/// Returns true if a variable describes the server itself, so that no command gets it under any policy.
fn is_of_server(name: &str) -> bool {
    LAUNCHER_VARIABLES.contains(&name)
        || SERVER_VARIABLES.contains(&name)
        || SERVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_no_credential_and_nothing_twice() {
        for (at, name) in LOCATIONS.iter().chain(&SETTINGS).enumerate() {
            // It holds patterns of modules.
            assert!(*name == "GOPRIVATE" || !crate::redact::is_secret_variable(name), "{name}");
            assert!(
                !LOCATIONS.iter().chain(&SETTINGS).skip(at + 1).any(|other| other == name),
                "{name} twice"
            );
        }
    }

    #[test]
    fn a_name_may_be_given_by_its_beginning() {
        let patterns = ["MY_*".to_owned(), "ONE".to_owned()];
        for (name, expected) in
            [("MY_TOKEN", true), ("MY_", true), ("ONE", true), ("ONES", false), ("my_x", cfg!(windows))]
        {
            assert_eq!(is_named(&patterns, name), expected && !(cfg!(windows) && name == "my_x"), "{name}");
        }
    }

    #[test]
    fn until_it_is_decided_a_command_inherits_nothing() {
        let (policy, decision) = EnvironmentPolicy::deferred();
        assert_eq!(policy.to_string(), "not decided");
        let runner = Runner::builder().build();
        decision.set(EnvironmentPolicy::minimal(&runner, &[]));
        assert_eq!(policy.summary().mode, "minimal");
    }
}
