//! Build a project, and fetch what it depends on: the ecosystem's own command, and what its compiler says.

use super::command::{CommandError, Commands, quoted, without_ours};
use super::compiler::Diagnostic;
use super::ecosystem::{Ecosystem, choose};
use super::run::{ending, millis};
use crate::workspace;
use process_runner::{Limits, SpawnErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A project to build, or whose dependencies to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Folder or project file; default: the first root
    pub project_path: Option<String>,
    /// Where several fit: cargo, npm, go …
    pub ecosystem: Option<String>,
    /// Default 600000
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
}

/// What is done with a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Compile it.
    Build,
    /// Fetch what it depends on.
    Restore,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuildReport {
    /// The command ended by itself with exit code 0.
    pub success: bool,
    /// The command, as it could be typed in `folder`.
    pub command: String,
    /// Where it ran, relative to its root.
    pub folder: String,
    /// The exit code. Absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// Wall time.
    pub duration_ms: u64,
    /// How many errors the compiler told.
    pub errors: usize,
    /// How many warnings.
    pub warnings: usize,
    /// What it told, errors first, at most 100.
    pub diagnostics: Vec<Diagnostic>,
    /// The end of what was printed, where diagnostics do not explain a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The time limit that ended it, the other ecosystems of the folder, what was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The part of a report on a build, or on tests, that is promised in a tool's schema, which every conversation
/// pays for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdict {
    /// All went well.
    pub success: bool,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The files are of no project that is known.
    #[error("no project found at `{path}`; looked, from there up to the root, for {looked_for}")]
    NoProject {
        /// Where the search began.
        path: String,
        /// The files that were looked for.
        looked_for: String,
    },
    /// The project is not of this ecosystem, or there is none of this name.
    #[error("`ecosystem` is `{asked}`: {found}")]
    Ecosystem {
        /// What was asked for.
        asked: String,
        /// What there is.
        found: String,
    },
    /// There is nothing to do.
    #[error("{0}")]
    Nothing(String),
    /// The path leads nowhere that may be used.
    #[error("cannot use that path")]
    Path(#[from] workspace::Error),
    /// The program is missing.
    #[error("{error} It is usually installed so: {installation}")]
    Missing {
        /// Which, and where it was looked for.
        error: String,
        /// How.
        installation: &'static str,
    },
    /// The program did not start, or the run was lost.
    #[error(transparent)]
    Command(#[from] CommandError),
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// Diagnostics in a report.
const SHOWN: usize = 100;
/// What is kept of each stream, in bytes: cargo tells each package.
const KEPT: usize = 16 << 20;
/// What is shown of the output.
const SHOWN_OUTPUT: usize = 8_000;

/// Builds or restores the project at `input`, in `commands`' environment and fence.
///
/// A command that ran is a report, however it ended.
///
/// # Errors
///
/// Nothing was run: no project was found, or its toolchain is missing.
pub async fn build(
    commands: &Commands,
    goal: Goal,
    input: &Build,
    max_timeout: Duration,
    cancel: &CancellationToken,
) -> Result<BuildReport, BuildError> {
    let choice = choose(commands.workspace(), input.project_path.as_deref(), input.ecosystem.as_deref())?;
    let timeout = super::run::time_limit(input.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
    let words = choice.ecosystem.command(goal, &choice.project, choice.file.as_deref());
    let Some(words) = words else {
        let (verb, name) = if goal == Goal::Build { ("build", "build") } else { ("fetch", "restore") };
        return Err(BuildError::Nothing(format!(
            "there is nothing to {verb} in `{}`: {} has no command for {name} there",
            choice.project.0.shown(),
            choice.ecosystem.name()
        )));
    };
    let (program, arguments) =
        words.split_first().map(|(program, rest)| (program.clone(), rest)).unwrap_or_default();
    let limits = Limits::default().timeout(timeout).capture(KEPT);
    let command = without_ours(commands.at(&program, &choice.project.0)?)
        .args(arguments.iter())
        .limits(limits)
        .cancel(cancel.clone());
    let mut running = match commands.runner().start(command).await {
        Ok(running) => running,
        Err(process_runner::Error::Spawn(error)) if matches!(error.kind, SpawnErrorKind::NotFound { .. }) => {
            let error = CommandError::from(process_runner::Error::Spawn(error)).to_string();
            return Err(BuildError::Missing { error, installation: choice.ecosystem.installation() });
        }
        Err(error) => return Err(BuildError::Command(error.into())),
    };
    let output = running.wait().await.map_err(CommandError::from)?;
    let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
    let mut diagnostics: Vec<_> = stdout.lines().filter_map(Diagnostic::from_cargo).collect();
    let text: Vec<_> =
        stdout.lines().filter(|line| !line.starts_with("{\"reason\":")).chain(stderr.lines()).collect();
    let text = text.join("\n");
    if diagnostics.is_empty() {
        diagnostics = Diagnostic::from_text(&text);
    }
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let (errors, warnings) = (count("error"), count("warning"));
    let mut notes = Vec::new();
    if let process_runner::Termination::TimedOut { after, .. } = output.termination {
        notes.push(format!(
            "ended at the time limit of {} ms with everything it had started",
            after.as_millis()
        ));
    }
    if !choice.also.is_empty() {
        let names: Vec<_> = choice.also.iter().map(|other| other.name()).collect();
        notes.push(format!("the folder is a project of {} too; `ecosystem` chooses", names.join(", ")));
    }
    if diagnostics.len() > SHOWN {
        notes.push(format!("{} more diagnostics are left out", diagnostics.len() - SHOWN));
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.severity != "error");
    diagnostics.truncate(SHOWN);
    let prefix = format!("{}/", choice.project.0.to_absolute().display());
    for diagnostic in &mut diagnostics {
        diagnostic.message = commands.mask(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    let success = output.success();
    let command: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    Ok(BuildReport {
        success,
        command: command.join(" "),
        folder: choice.project.0.shown(),
        exit_code: ending(&output).0,
        duration_ms: millis(output.to_exit.unwrap_or(output.elapsed)),
        errors,
        warnings,
        diagnostics,
        output: (!success && errors == 0).then(|| tail(&commands.mask(&text))),
        notes,
    })
}

fn tail(text: &str) -> String {
    let mut start = text.len().saturating_sub(SHOWN_OUTPUT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_owned()
}

impl BuildReport {
    /// Everything there is to know, for people and for clients that show only text.
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

impl Ecosystem {
    /// The command line for `goal`; nothing where there is nothing to do. `file` is a project file in the folder.
    fn command(
        self,
        goal: Goal,
        project: &super::project::Project,
        file: Option<&str>,
    ) -> Option<Vec<String>> {
        use Goal::{Build, Restore};
        let manager = super::ecosystem::package_manager(project);
        let words: Vec<&str> = match (self, goal) {
            (Self::Cargo, Build) => vec!["cargo", "build", "--message-format=json"],
            (Self::Cargo, Restore) => vec!["cargo", "fetch"],
            // As the original had it: in a folder the command alone, for a file its name.
            (Self::Dotnet, Build) => vec!["dotnet", "build"],
            (Self::Dotnet, Restore) => vec!["dotnet", "restore"],
            (Self::Node, Build) if project.says("package.json", "\"build\"") => vec![manager, "run", "build"],
            (Self::Node, Build) if project.has("tsconfig.json") => {
                vec!["node", "node_modules/typescript/bin/tsc", "--pretty", "false", "--noEmit"]
            }
            (Self::Node, Build) => return None,
            (Self::Node, Restore) => vec![manager, "install"],
            (Self::Python, Build) => vec!["python3", "-m", "build"],
            (Self::Python, Restore) if project.has("uv.lock") => vec!["uv", "sync"],
            (Self::Python, Restore) if project.has("poetry.lock") => vec!["poetry", "install"],
            (Self::Python, Restore) => {
                let python = if project.has(".venv/bin/python") { ".venv/bin/python" } else { "python3" };
                let what =
                    if project.has("requirements.txt") { ["-r", "requirements.txt"] } else { ["-e", "."] };
                vec![python, "-m", "pip", "install", what[0], what[1]]
            }
            (Self::Go, Build) => vec!["go", "build", "./..."],
            (Self::Go, Restore) => vec!["go", "mod", "download"],
            (Self::Maven, Build) => vec!["mvn", "--batch-mode", "--no-transfer-progress", "compile"],
            (Self::Maven, Restore) => {
                vec!["mvn", "--batch-mode", "--no-transfer-progress", "dependency:resolve"]
            }
            (Self::Gradle, goal) => {
                let program = if project.has("gradlew") { "./gradlew" } else { "gradle" };
                vec![program, "--console=plain", if goal == Build { "assemble" } else { "dependencies" }]
            }
            (Self::Cmake, Build) if project.has("build/CMakeCache.txt") => vec!["cmake", "--build", "build"],
            (Self::Cmake, _) => vec!["cmake", "-S", ".", "-B", "build"],
            (Self::Make, Build) => vec!["make"],
            (Self::Just, Build) => vec!["just", "build"],
            (Self::Make | Self::Just, Restore) => return None,
        };
        let file = file.filter(|_| self == Self::Dotnet);
        Some(words.into_iter().chain(file).map(str::to_owned).collect())
    }
}
