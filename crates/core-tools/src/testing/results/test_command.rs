//! One command of a project's own test command, and what it reported.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// One command of a project's own test command: `vitest run` in `vitest run && node check.js`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestCommand {
    /// The command, as the project's files have it or as it was started.
    pub command: String,
    /// The script that it is part of, such as `test` or `pretest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The folder that it runs in, relative to that of the run; absent if it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The runner that reported its tests; absent if nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The exit code, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The number of tests that passed.
    pub passed: u64,
    /// The number of tests that failed, timed out or could not be run.
    pub failed: u64,
    /// The number of tests that were skipped.
    pub skipped: u64,
    /// The reason why its tests are not known, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl fmt::Display for TestCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "{folder}: ")?;
        }
        match self.script.as_deref() {
            None | Some("test") => {}
            Some(script) => write!(f, "{script}: ")?,
        }
        write!(f, "`{}`: ", self.command)?;
        if self.runner.is_some() {
            write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)?;
        } else {
            f.write_str("no report of tests")?;
        }
        if let Some(code) = self.exit_code {
            write!(f, ", exit code {code}")?;
        }
        match &self.note {
            Some(note) => write!(f, "; {note}"),
            None => Ok(()),
        }
    }
}
