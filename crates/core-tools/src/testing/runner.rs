//! The test runners.

use std::fmt;

/// A test runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is named after its program")]
pub enum TestRunner {
    Cargo,
    Nextest,
    Bats,
    Pytest,
    Vitest,
    Jest,
    Mocha,
    Ava,
    Playwright,
    Node,
    Deno,
    Bun,
    Npm,
    Go,
    Dotnet,
    Maven,
    Gradle,
    Ctest,
    Rspec,
    Phpunit,
    Mix,
    Zig,
    Swift,
    Just,
    Make,
    Unittest,
    Tox,
    Nox,
    Rake,
    Script,
}

impl TestRunner {
    /// All runners.
    pub const ALL: [Self; 30] = [
        Self::Cargo,
        Self::Nextest,
        Self::Bats,
        Self::Pytest,
        Self::Vitest,
        Self::Jest,
        Self::Mocha,
        Self::Ava,
        Self::Playwright,
        Self::Node,
        Self::Deno,
        Self::Bun,
        Self::Npm,
        Self::Go,
        Self::Dotnet,
        Self::Maven,
        Self::Gradle,
        Self::Ctest,
        Self::Rspec,
        Self::Phpunit,
        Self::Mix,
        Self::Zig,
        Self::Swift,
        Self::Just,
        Self::Make,
        Self::Unittest,
        Self::Tox,
        Self::Nox,
        Self::Rake,
        Self::Script,
    ];

    /// Returns the runner of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runner| runner.name() == name)
    }

    /// Returns the name, as the parameter `runner` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Nextest => "nextest",
            Self::Bats => "bats",
            Self::Pytest => "pytest",
            Self::Vitest => "vitest",
            Self::Jest => "jest",
            Self::Mocha => "mocha",
            Self::Ava => "ava",
            Self::Playwright => "playwright",
            Self::Node => "node",
            Self::Deno => "deno",
            Self::Bun => "bun",
            Self::Npm => "npm",
            Self::Go => "go",
            Self::Dotnet => "dotnet",
            Self::Maven => "maven",
            Self::Gradle => "gradle",
            Self::Ctest => "ctest",
            Self::Rspec => "rspec",
            Self::Phpunit => "phpunit",
            Self::Mix => "mix",
            Self::Zig => "zig",
            Self::Swift => "swift",
            Self::Just => "just",
            Self::Make => "make",
            Self::Unittest => "unittest",
            Self::Tox => "tox",
            Self::Nox => "nox",
            Self::Rake => "rake",
            Self::Script => "script",
        }
    }

    /// Returns true if the runner reports only an exit code. The tests of a run are then the tests that the programs in
    /// the run report.
    pub fn reports_only_exit_code(self) -> bool {
        matches!(
            self,
            Self::Npm
                | Self::Zig
                | Self::Swift
                | Self::Just
                | Self::Make
                | Self::Tox
                | Self::Nox
                | Self::Rake
                | Self::Script
        )
    }

    /// Returns true if it selects tests by an expression that may match other names than the requested one.
    pub(crate) fn selects_by_pattern(self) -> bool {
        use TestRunner::{Ava, Bats, Ctest, Go, Jest, Mocha, Node, Playwright, Vitest};
        matches!(self, Bats | Vitest | Jest | Mocha | Ava | Playwright | Node | Go | Ctest)
    }

    /// Returns true if it writes its XML report at the end of every run that it calls a success, also of one
    /// without tests.
    pub(crate) fn always_writes_report(self) -> bool {
        matches!(self, Self::Bun | Self::Deno | Self::Phpunit)
    }

    /// Returns true if it can run the tests of any Node project, whatever the project's files name.
    pub(crate) fn runs_any_node_project(self) -> bool {
        use TestRunner::{Ava, Bun, Jest, Mocha, Node, Npm, Playwright, Vitest};
        matches!(self, Vitest | Jest | Mocha | Ava | Playwright | Node | Npm | Bun)
    }

    /// Returns the exit code that means that no test was selected, where the runner has one for that alone.
    pub(crate) fn no_tests_exit_code(self) -> Option<u32> {
        match self {
            Self::Nextest => Some(4),
            Self::Pytest => Some(5),
            Self::Dotnet => Some(8),
            // jest, vitest, mocha, deno and bun use the code that failing tests have.
            _ => None,
        }
    }

    /// Returns the usual way to install the runner.
    pub fn installation(self) -> &'static str {
        match self {
            Self::Cargo => "https://rustup.rs",
            Self::Nextest => "cargo install --locked cargo-nextest",
            Self::Bats => "apt-get install bats, brew install bats-core, npm install --save-dev bats",
            Self::Pytest => "python3 from the system's packages, then python3 -m pip install pytest",
            Self::Vitest
            | Self::Jest
            | Self::Mocha
            | Self::Ava
            | Self::Playwright
            | Self::Node
            | Self::Npm => "https://nodejs.org, then the project's own dependencies (npm install)",
            Self::Deno => "https://deno.com",
            Self::Bun => "https://bun.sh",
            Self::Go => "https://go.dev/dl or apt-get install golang-go",
            Self::Dotnet => "https://dot.net or apt-get install dotnet-sdk-8.0",
            Self::Maven => "apt-get install maven, brew install maven",
            Self::Gradle => "https://gradle.org/install, or the project's own ./gradlew",
            Self::Ctest => "apt-get install cmake, brew install cmake",
            Self::Rspec => "apt-get install ruby-rspec, or the project's own gems (bundle install)",
            Self::Phpunit => "composer require --dev phpunit/phpunit",
            Self::Mix => "https://elixir-lang.org/install.html",
            Self::Zig => "https://ziglang.org/download",
            Self::Swift => "https://swift.org/install",
            Self::Just => "cargo install just, apt-get install just",
            Self::Make => "apt-get install make",
            Self::Unittest => "python3 from the system's packages",
            Self::Tox => "python3 -m pip install tox; `runner` `pytest` runs pytest without it",
            Self::Nox => "python3 -m pip install nox; `runner` `pytest` runs pytest without it",
            Self::Rake => "apt-get install rake, or the project's own gems (bundle install)",
            Self::Script => "it is a file of the project, which must be executable",
        }
    }
}

impl fmt::Display for TestRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_is_found_by_its_name() {
        for runner in TestRunner::ALL {
            assert_eq!(TestRunner::from_name(runner.name()), Some(runner));
        }
    }
}
