//! Runs the commands of a build, and makes a report of what they print.

use super::error::BuildError;
use super::plan;
use super::report::{BuildGoal, BuildReport, BuildRequest};
use super::target::BuildTarget;
use crate::ci::command::Commands;
use crate::ci::compiler::{DiagnosticReader, DiagnosticSeverity};
use crate::ci::error::CommandError;
use crate::ci::exit::ExitDetails;
use crate::ci::timeout::{as_millis, effective_timeout};
use crate::shell_quote::shell_join;
use process_runner::{Limits, Output, SpawnErrorKind, Termination, clean};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

// A first build of a large project with its dependencies takes minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// The number of diagnostics in a report.
const MAX_DIAGNOSTICS: usize = 100;
/// The longest line that is read, in bytes: cargo puts a message with all its context into one.
const MAX_LINE_BYTES: usize = 4 << 20;
/// The number of bytes of each stream that are captured.
const CAPTURE_BYTES: usize = 256 << 10;
/// The number of bytes of output in a report.
const MAX_OUTPUT_BYTES: usize = 8_000;

/// Builds or restores the project of `request`, with the environment and confinement of `commands`.
/// `on_progress` gets the latest line of output from time to time, masked.
///
/// A command that ran is a report, however it ended.
///
/// # Errors
///
/// Nothing was run: no project was found, or its toolchain is missing.
pub async fn build(
    commands: &Commands,
    goal: BuildGoal,
    request: &BuildRequest,
    max_timeout: Duration,
    cancel: &CancellationToken,
    on_progress: impl Fn(&str),
) -> Result<BuildReport, BuildError> {
    let target = BuildTarget::find(
        commands.workspace(),
        request.project_path.as_deref(),
        request.ecosystem.as_deref(),
    )?;
    let timeout = effective_timeout(request.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
    let mut run = BuildRun { commands, target: &target, cancel, reader: Arc::default() };
    let started = Instant::now();
    let (mut command_lines, mut text, mut last) = (Vec::new(), String::new(), None);
    // All commands share one time limit.
    for words in plan::commands(goal, &target)? {
        let output = run.command(&words, timeout.saturating_sub(started.elapsed()), &on_progress).await?;
        command_lines.push(shell_join(&words));
        text.push_str(&printed_for_people(&output));
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
    if !target.other_ecosystems.is_empty() {
        let names: Vec<_> = target.other_ecosystems.iter().map(|other| other.name()).collect();
        notes.push(format!("the folder is a project of {} too; `ecosystem` chooses", names.join(", ")));
    }
    let reader = run.take_reader();
    let (errors, warnings) = (reader.errors(), reader.warnings());
    let mut diagnostics = reader.into_diagnostics();
    diagnostics.truncate(MAX_DIAGNOSTICS);
    // Notes are kept with the diagnostics and are not in the counts, so they must not fill the difference.
    let is_counted = |severity| severity != DiagnosticSeverity::Note;
    let reported = diagnostics.iter().filter(|diagnostic| is_counted(diagnostic.severity)).count();
    if errors + warnings > reported {
        notes.push(format!("{} more diagnostics are left out", errors + warnings - reported));
    }
    let folder = target.project.folder().to_absolute();
    let prefix = format!("{}/", folder.to_string_lossy().trim_end_matches('/'));
    for diagnostic in &mut diagnostics {
        diagnostic.message = commands.redact(&diagnostic.message);
        diagnostic.relative_to(&prefix);
    }
    let success = last.as_ref().is_some_and(Output::success);
    // A script may end with another command, whose exit code hides that of the compiler.
    if success && errors > 0 {
        notes.push(format!(
            "the exit code is 0, though {errors} errors were told: it may have been swallowed"
        ));
    }
    Ok(BuildReport {
        success,
        command: commands.redact(&command_lines.join(" && ")),
        folder: target.project.folder().display_path(),
        exit_code: last.as_ref().and_then(|output| ExitDetails::from(output).code),
        duration_ms: as_millis(elapsed),
        errors,
        warnings,
        diagnostics,
        // With diagnostics the output would tell the same errors a second time.
        output: (!success && errors == 0).then(|| last_bytes(&commands.redact(&text))),
        notes,
    })
}

/// The commands of one build while they run.
struct BuildRun<'a> {
    commands: &'a Commands,
    target: &'a BuildTarget,
    cancel: &'a CancellationToken,
    /// Shared with the callback that reads the lines of the running command.
    reader: Arc<Mutex<DiagnosticReader>>,
}

impl BuildRun<'_> {
    /// Runs one command to its end and reads its diagnostics.
    async fn command(
        &self,
        words: &[String],
        timeout: Duration,
        on_progress: impl Fn(&str),
    ) -> Result<Output, BuildError> {
        let (program, arguments) = words.split_first().ok_or(BuildError::Command(CommandError::Empty))?;
        let reader = Arc::clone(&self.reader);
        let limits = Limits::default().timeout(timeout).capture(CAPTURE_BYTES).max_line(MAX_LINE_BYTES);
        let command = self.commands.command_in(program, self.target.project.folder())?;
        let command = command
            .env("CARGO_TERM_COLOR", "never")
            // Colours and a progress bar would stand in the lines that are parsed.
            .env("CARGO_TERM_PROGRESS_WHEN", "never")
            .args(arguments.iter())
            .limits(limits)
            .cancel(self.cancel.clone())
            .on_line(move |stream, line| {
                let line = line.text();
                let line = clean(&line);
                reader.lock().unwrap_or_else(PoisonError::into_inner).line(stream, &line);
            });
        let running = match self.commands.runner().start(command).await {
            Ok(running) => running,
            Err(process_runner::Error::Spawn(error))
                if matches!(error.kind, SpawnErrorKind::NotFound { .. }) =>
            {
                return Err(BuildError::ToolchainMissing {
                    error: Box::new(process_runner::Error::Spawn(error).into()),
                    installation: self.target.ecosystem.installation(),
                });
            }
            Err(error) => return Err(BuildError::Command(error.into())),
        };
        Ok(self.commands.wait_with_progress(running, on_progress).await?)
    }

    fn take_reader(&mut self) -> DiagnosticReader {
        std::mem::take(&mut *self.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the output without cargo's JSON messages.
fn printed_for_people(output: &Output) -> String {
    let (stdout, stderr) = (output.stdout.clean(), output.stderr.clean());
    // The diagnostics in cargo's messages are reported already, in a readable form.
    let lines = stdout.lines().filter(|line| !line.starts_with("{\"reason\":")).chain(stderr.lines());
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the end of the output: a failed build prints its error last.
fn last_bytes(text: &str) -> String {
    text[text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT_BYTES))..].to_owned()
}
