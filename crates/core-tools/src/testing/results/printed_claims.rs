//! Passed tests that rest on what a program printed. The project's files say whether that is enough.

use std::path::PathBuf;

/// The number of entries of each kind that are kept.
const MAX_CLAIMS: usize = 1_000;

/// The passed tests that rest on lines which a program printed, to be compared with the project's files after the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrintedClaims {
    /// The targets of cargo whose binaries printed a suite of libtest.
    pub(crate) cargo_targets: Vec<CargoTarget>,
    /// The passed tests whose output has a summary with failures.
    pub(crate) contradicted: Vec<ContradictedPass>,
}

/// A target of cargo, as cargo's messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CargoTarget {
    /// The path of the package's `Cargo.toml`.
    pub(crate) manifest: PathBuf,
    /// The first of its kinds: `test`, `bin`, `lib`.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The path of its root file.
    pub(crate) source: PathBuf,
}

/// A line with which a runner says for people what its tests came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedSummary {
    /// The runner that prints such lines.
    pub(crate) runner: &'static str,
    pub(crate) has_failures: bool,
    pub(crate) line: String,
}

/// A test that its runner calls passed, by an exit code of 0, and whose own output says that tests failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContradictedPass {
    pub(crate) test: String,
    pub(crate) summary: PrintedSummary,
}

impl PrintedClaims {
    pub(crate) fn add_cargo_target(&mut self, target: CargoTarget) {
        if self.cargo_targets.len() < MAX_CLAIMS && !self.cargo_targets.contains(&target) {
            self.cargo_targets.push(target);
        }
    }

    pub(crate) fn add_contradicted(&mut self, pass: ContradictedPass) {
        if self.contradicted.len() < MAX_CLAIMS {
            self.contradicted.push(pass);
        }
    }

    /// Adds the claims of another report.
    pub(crate) fn merge(&mut self, other: Self) {
        for target in other.cargo_targets {
            self.add_cargo_target(target);
        }
        for pass in other.contradicted {
            self.add_contradicted(pass);
        }
    }
}
