//! Build a project, and fetch what it depends on: the ecosystem's own command, and what its compiler says.

use super::command::{CommandError, Commands, quoted, without_ours};
use super::compiler::{Diagnostic, DiagnosticReader};
use super::ecosystem::{Ecosystem, choose};
use super::project::Project;
use super::run::{ending, millis};
use crate::workspace;
use process_runner::{Limits, Output, SpawnErrorKind, Termination};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BuildReport {
    /// The command ended by itself with exit code 0.
    pub success: bool,
    /// The command, as it could be typed in `folder`: those that ran, with `&&` between them.
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
    /// What it told, errors first, at most 100. One that is told twice is told once.
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
/// The longest manifest that is looked into, in bytes: [`Project::read`] reads no more.
const MAX_MANIFEST: u64 = 1 << 20;
/// Diagnostics in a report.
const SHOWN: usize = 100;
/// The longest line that is read, in bytes: cargo puts a message with all its context into one.
const MAX_LINE: usize = 4 << 20;
/// What is kept of each stream, in bytes.
const KEPT: usize = 256 << 10;
/// What is shown of the output.
const SHOWN_OUTPUT: usize = 8_000;

/// Builds or restores the project at `input`, in `commands`' environment and fence. `said` gets the latest line of
/// output from time to time, masked.
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
    said: impl Fn(&str),
) -> Result<BuildReport, BuildError> {
    let choice = choose(commands.workspace(), input.project_path.as_deref(), input.ecosystem.as_deref())?;
    let timeout = super::run::time_limit(input.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
    let steps = choice.ecosystem.steps(goal, &choice.project, choice.file.as_deref())?;
    if steps.is_empty() {
        if choice.ecosystem == Ecosystem::Node && is_too_large(&choice.project, "package.json") {
            return Err(BuildError::Nothing(format!(
                "`package.json` in `{}` is too large to read: over {MAX_MANIFEST} bytes",
                choice.project.0.shown()
            )));
        }
        let (verb, name) = if goal == Goal::Build { ("build", "build") } else { ("fetch", "restore") };
        return Err(BuildError::Nothing(format!(
            "there is nothing to {verb} in `{}`: {} has no command for {name} there",
            choice.project.0.shown(),
            choice.ecosystem.name()
        )));
    }
    let reader = Arc::new(Mutex::new(DiagnosticReader::default()));
    let started = Instant::now();
    let (mut ran, mut text, mut last) = (Vec::new(), String::new(), None);
    for words in &steps {
        let Some((program, arguments)) = words.split_first() else { continue };
        let found = Arc::clone(&reader);
        let limits = Limits::default()
            .timeout(timeout.saturating_sub(started.elapsed()))
            .capture(KEPT)
            .max_line(MAX_LINE);
        let command = without_ours(commands.at(program, &choice.project.0)?)
            .args(arguments.iter())
            .limits(limits)
            .cancel(cancel.clone())
            .on_line(move |stream, line| {
                let line = line.text();
                let line = process_runner::clean(&line);
                found.lock().unwrap_or_else(PoisonError::into_inner).line(stream, &line);
            });
        let running = match commands.runner().start(command).await {
            Ok(running) => running,
            Err(process_runner::Error::Spawn(error))
                if matches!(error.kind, SpawnErrorKind::NotFound { .. }) =>
            {
                let error = CommandError::from(process_runner::Error::Spawn(error)).to_string();
                return Err(BuildError::Missing { error, installation: choice.ecosystem.installation() });
            }
            Err(error) => return Err(BuildError::Command(error.into())),
        };
        let output = commands.attend(running, &said).await?;
        ran.push(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
        text.push_str(&printed(&output));
        let success = output.success();
        last = Some(output);
        if !success {
            break;
        }
    }
    let elapsed = started.elapsed();
    let mut notes = Vec::new();
    if let Some(Termination::TimedOut { .. }) = last.as_ref().map(|output| &output.termination) {
        let limit = timeout.as_millis();
        notes.push(format!("ended at the time limit of {limit} ms with everything it had started"));
    }
    if !choice.also.is_empty() {
        let names: Vec<_> = choice.also.iter().map(|other| other.name()).collect();
        notes.push(format!("the folder is a project of {} too; `ecosystem` chooses", names.join(", ")));
    }
    let reader = std::mem::take(&mut *reader.lock().unwrap_or_else(PoisonError::into_inner));
    let (errors, warnings) = (reader.errors(), reader.warnings());
    let mut diagnostics = reader.into_diagnostics();
    diagnostics.truncate(SHOWN);
    let told = diagnostics.iter().filter(|diagnostic| diagnostic.severity != "note").count();
    if errors + warnings > told {
        notes.push(format!("{} more diagnostics are left out", errors + warnings - told));
    }
    let folder = choice.project.0.to_absolute();
    let prefix = format!("{}/", folder.to_string_lossy().trim_end_matches('/'));
    for diagnostic in &mut diagnostics {
        diagnostic.message = commands.mask(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    let success = last.as_ref().is_some_and(Output::success);
    if success && errors > 0 {
        notes.push(format!(
            "the exit code is 0, though {errors} errors were told: it may have been swallowed"
        ));
    }
    Ok(BuildReport {
        success,
        command: commands.mask(&ran.join(" && ")),
        folder: choice.project.0.shown(),
        exit_code: last.as_ref().and_then(|output| ending(output).0),
        duration_ms: millis(elapsed),
        errors,
        warnings,
        diagnostics,
        output: (!success && errors == 0).then(|| tail(&commands.mask(&text))),
        notes,
    })
}

/// What a step printed for people.
fn printed(output: &Output) -> String {
    let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
    let lines = stdout.lines().filter(|line| !line.starts_with("{\"reason\":")).chain(stderr.lines());
    lines.flat_map(|line| [line, "\n"]).collect()
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
    /// The command lines for `goal`, in their order; none where there is nothing to do. `file` is a project file
    /// in the folder.
    fn steps(
        self,
        goal: Goal,
        project: &Project,
        file: Option<&str>,
    ) -> Result<Vec<Vec<String>>, BuildError> {
        use Goal::{Build, Restore};
        let manager = super::ecosystem::package_manager(project);
        let tsc;
        let steps: Vec<Vec<&str>> = match (self, goal) {
            (Self::Cargo, Build) => vec![vec!["cargo", "build", "--message-format=json"]],
            (Self::Cargo, Restore) => vec![vec!["cargo", "fetch"]],
            // As the original had it: in a folder the command alone, for a file its name.
            (Self::Dotnet, Build) => vec![["dotnet", "build"].into_iter().chain(file).collect()],
            (Self::Dotnet, Restore) => vec![["dotnet", "restore"].into_iter().chain(file).collect()],
            (Self::Node, Build) if has_build_script(project) => vec![vec![manager, "run", "build"]],
            (Self::Node, Build) if project.has("tsconfig.json") => {
                tsc = typescript(project)?;
                vec![vec!["node", &tsc, "--pretty", "false", "--noEmit"]]
            }
            (Self::Node, Restore) => vec![vec![manager, "install"]],
            (Self::Python, Build) => vec![vec![python(project), "-m", "build"]],
            (Self::Python, Restore) if project.has("uv.lock") => vec![vec!["uv", "sync"]],
            (Self::Python, Restore) if project.has("poetry.lock") => vec![vec!["poetry", "install"]],
            (Self::Python, Restore) if project.has("requirements.txt") => {
                vec![vec![python(project), "-m", "pip", "install", "-r", "requirements.txt"]]
            }
            (Self::Python, Restore) => vec![vec![python(project), "-m", "pip", "install", "-e", "."]],
            (Self::Go, Build) => vec![vec!["go", "build", "./..."]],
            (Self::Go, Restore) => vec![vec!["go", "mod", "download"]],
            (Self::Maven, Build) => vec![vec!["mvn", "--batch-mode", "--no-transfer-progress", "compile"]],
            (Self::Maven, Restore) => {
                vec![vec!["mvn", "--batch-mode", "--no-transfer-progress", "dependency:resolve"]]
            }
            (Self::Gradle, goal) => {
                let program = if project.has("gradlew") { "./gradlew" } else { "gradle" };
                vec![vec![
                    program,
                    "--console=plain",
                    if goal == Build { "assemble" } else { "dependencies" },
                ]]
            }
            (Self::Cmake, goal) => {
                let configure = (goal == Restore || !project.has("build/CMakeCache.txt"))
                    .then(|| vec!["cmake", "-S", ".", "-B", "build"]);
                let compile = (goal == Build).then(|| vec!["cmake", "--build", "build"]);
                configure.into_iter().chain(compile).collect()
            }
            (Self::Make, Build) => vec![vec!["make"]],
            (Self::Just, Build) => vec![vec!["just", "build"]],
            (Self::Node, Build) | (Self::Make | Self::Just, Restore) => Vec::new(),
        };
        Ok(steps.into_iter().map(|words| words.into_iter().map(str::to_owned).collect()).collect())
    }
}

fn is_too_large(project: &Project, file: &str) -> bool {
    let metadata = project.0.join(file).and_then(|path| path.metadata());
    metadata.is_ok_and(|metadata| metadata.size > MAX_MANIFEST)
}

fn has_build_script(project: &Project) -> bool {
    let package = project.read("package.json").unwrap_or_default();
    let package: serde_json::Value = serde_json::from_str(&package).unwrap_or_default();
    package.pointer("/scripts/build").is_some_and(serde_json::Value::is_string)
}

/// The interpreter of the project's own environment, else the one on PATH.
fn python(project: &Project) -> &'static str {
    [".venv/bin/python", "venv/bin/python"].into_iter().find(|path| project.has(path)).unwrap_or("python3")
}

/// TypeScript's compiler as this project would find it.
fn typescript(project: &Project) -> Result<String, BuildError> {
    const PATH: &str = "node_modules/typescript/bin/tsc";
    let folder = project.upward().find(|folder| folder.has(PATH)).ok_or_else(|| BuildError::Missing {
        error: format!("there is no `{PATH}` in `{}` or above it.", project.0.shown()),
        installation: "npm install --save-dev typescript",
    })?;
    if folder.0.relative() == project.0.relative() {
        return Ok(PATH.to_owned());
    }
    Ok(folder.0.to_absolute().join(PATH).to_string_lossy().into_owned())
}
