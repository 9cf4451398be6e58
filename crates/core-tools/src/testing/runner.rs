//! The runners, by name.

use super::verdict::ExitCodes;

/// A test runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "they are their names")]
pub enum Runner {
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
}

const NAMES: [(Runner, &str); 25] = [
    (Runner::Cargo, "cargo"),
    (Runner::Nextest, "nextest"),
    (Runner::Bats, "bats"),
    (Runner::Pytest, "pytest"),
    (Runner::Vitest, "vitest"),
    (Runner::Jest, "jest"),
    (Runner::Mocha, "mocha"),
    (Runner::Ava, "ava"),
    (Runner::Playwright, "playwright"),
    (Runner::Node, "node"),
    (Runner::Deno, "deno"),
    (Runner::Bun, "bun"),
    (Runner::Npm, "npm"),
    (Runner::Go, "go"),
    (Runner::Dotnet, "dotnet"),
    (Runner::Maven, "maven"),
    (Runner::Gradle, "gradle"),
    (Runner::Ctest, "ctest"),
    (Runner::Rspec, "rspec"),
    (Runner::Phpunit, "phpunit"),
    (Runner::Mix, "mix"),
    (Runner::Zig, "zig"),
    (Runner::Swift, "swift"),
    (Runner::Just, "just"),
    (Runner::Make, "make"),
];

impl Runner {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(runner, _)| runner)
    }

    /// The runner of this name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|(_, known)| *known == name).map(|(runner, _)| runner)
    }

    /// Its name, as the parameter `runner` takes it.
    pub fn name(self) -> &'static str {
        NAMES.into_iter().find(|(runner, _)| *runner == self).map_or("unknown", |(_, name)| name)
    }

    /// Of it nothing is known but the exit code.
    pub fn only_exit_code(self) -> bool {
        matches!(self, Self::Npm | Self::Zig | Self::Swift | Self::Just | Self::Make)
    }

    /// It selects by an expression that is held up against more than the name in its report, or than all of it.
    pub(super) fn selects_by_pattern(self) -> bool {
        use Runner::{Ava, Bats, Ctest, Go, Jest, Mocha, Node, Playwright, Vitest};
        matches!(self, Bats | Vitest | Jest | Mocha | Ava | Playwright | Node | Go | Ctest)
    }

    pub(super) fn exit_codes(self) -> ExitCodes {
        let no_tests = match self {
            Self::Nextest => Some(4),
            Self::Pytest => Some(5),
            Self::Dotnet => Some(8),
            // jest, vitest, mocha, deno and bun say so with the code that failing tests have.
            _ => None,
        };
        ExitCodes { no_tests, only: false }
    }

    /// How what it needs is usually installed.
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
        }
    }
}

impl std::fmt::Display for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runner_is_found_by_its_name() {
        for runner in Runner::all() {
            assert_eq!(Runner::named(runner.name()), Some(runner));
        }
    }
}
