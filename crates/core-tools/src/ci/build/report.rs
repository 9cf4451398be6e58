//! The request for a build, and the report on it.

use crate::ci::compiler::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A project to build, or whose dependencies to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BuildRequest {
    /// The project: its folder, or a file in it. Default: the first root.
    pub project_path: Option<String>,
    /// The build tool, where a folder has files of several: cargo, dotnet, npm, python, go, maven, gradle, cmake, make or
    /// just. Default: the first of these that fits.
    pub ecosystem: Option<String>,
    /// The time limit in milliseconds. Default: 600000.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
}

impl BuildRequest {
    /// Creates a request for the project at the first root, with the default time limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the project: its folder, a project file, or a path in it. The first root by default.
    #[must_use]
    pub fn project_path(mut self, path: impl Into<String>) -> Self {
        self.project_path = Some(path.into());
        self
    }

    /// Sets the ecosystem, by its name. By default the project's files decide.
    #[must_use]
    pub fn ecosystem(mut self, name: impl Into<String>) -> Self {
        self.ecosystem = Some(name.into());
        self
    }

    /// Sets the time limit of the whole run, in milliseconds. 600,000 by default.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }
}

/// The goal of a build request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildGoal {
    /// Compile the project.
    Build,
    /// Fetch the dependencies of the project.
    Restore,
}

impl BuildGoal {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Restore => "fetch",
        }
    }

    /// Returns the name of the tool that has this goal.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Restore => "restore",
        }
    }
}

/// The report on a build or a restore that ran.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[non_exhaustive]
pub struct BuildReport {
    /// The last command exited with code 0.
    pub success: bool,
    /// The commands that ran, as they could be typed in `folder`, with `&&` between them.
    pub command: String,
    /// The folder of the project, relative to its root.
    pub folder: String,
    /// The exit code of the last command. Absent where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The wall time of all commands, in milliseconds.
    pub duration_ms: u64,
    /// The number of errors that the compiler reported.
    pub errors: usize,
    /// The number of warnings that the compiler reported.
    pub warnings: usize,
    /// The messages of the compiler, errors first, at most 100. A repeated one is here once.
    pub diagnostics: Vec<Diagnostic>,
    /// The end of the output, where diagnostics do not explain a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Further facts: the time limit that ended it, the other ecosystems of the folder, what was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl BuildReport {
    /// Returns the whole report as text, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} errors, {} warnings in {}.{:03} s (exit code {})",
            if self.success { "ok" } else { "FAILED" },
            self.errors,
            self.warnings,
            self.duration_ms / 1000,
            self.duration_ms % 1000,
            self.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string()),
        );
        for diagnostic in &self.diagnostics {
            let _ = write!(text, "\n{diagnostic}");
        }
        for note in &self.notes {
            let _ = write!(text, "\nnote: {note}");
        }
        if let Some(output) = &self.output {
            let _ = write!(text, "\n--- output ---\n{}", output.trim_end());
        }
        let _ = write!(text, "\n$ {}", self.command);
        text
    }
}
