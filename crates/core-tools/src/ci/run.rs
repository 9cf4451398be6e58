//! One command, run to its end.

use super::command::{CommandError, CommandText, Commands};
use crate::redact::Redactor;
use process_runner::{
    Captured, ExitStatus, Limits, Output, Running, ShellSyntax, Stdin, Stream, Termination, clean,
    signal_name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A command to run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// Program and arguments, or one line (no shell)
    pub command: CommandText,
    /// Default: the first root
    pub working_directory: Option<String>,
    /// Time limit; default 120000
    #[schemars(range(min = 1, max = 86_400_000))]
    pub timeout_ms: Option<u64>,
    /// Standard input
    pub stdin: Option<String>,
    /// Variables to set
    pub env: Option<BTreeMap<String, String>>,
    /// Kept of each stream; default 20000
    #[schemars(range(min = 1_000, max = 1_000_000))]
    pub max_output_bytes: Option<usize>,
}

impl RunCommand {
    /// `line` in the first root, with the default limits.
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            command: CommandText::Line(line.into()),
            working_directory: None,
            timeout_ms: None,
            stdin: None,
            env: None,
            max_output_bytes: None,
        }
    }
}

/// The default time limit of a command.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The default of what is kept of each stream.
const DEFAULT_OUTPUT_BYTES: usize = 20_000;

/// How a command ended, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandReport {
    /// `exited`, `signaled`, `timed_out`, `cancelled`, `unkillable` or `unknown`.
    pub outcome: &'static str,
    /// What the program passed to `exit`. Absent where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Standard output: the beginning and the end, with a line between them that says what is left out.
    pub stdout: String,
    /// Standard error, in the same way.
    pub stderr: String,
    /// Something was left out of a stream.
    pub truncated: bool,
    /// Start to exit, in milliseconds.
    pub duration_ms: u64,
    /// What else there is to know: the limit that ended it, processes that were left over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl CommandReport {
    /// Whether the program ended by itself, with exit code 0.
    pub fn is_success(&self) -> bool {
        self.outcome == "exited" && self.exit_code == Some(0)
    }

    /// Everything there is to know, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let mut text = match (self.outcome, self.exit_code, &self.signal) {
            ("exited", Some(code), _) => format!("exit code {code}"),
            (outcome, Some(code), _) => format!("{} (exit code {code})", outcome.replace('_', " ")),
            (outcome, None, Some(signal)) => format!("{} ({signal})", outcome.replace('_', " ")),
            (outcome, None, None) => outcome.replace('_', " "),
        };
        let _ = write!(text, " after {}.{:03} s", self.duration_ms / 1000, self.duration_ms % 1000);
        for note in &self.notes {
            let _ = write!(text, "\nnote: {note}");
        }
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                let _ = write!(text, "\n--- {name} ---\n{}", stream.trim_end_matches('\n'));
            }
        }
        text
    }

    fn new(output: &Output, literal: Option<&ShellSyntax>, redactor: &Redactor, max: usize) -> Self {
        let (outcome, notes) = outcome(output);
        let (exit_code, signal) = ending(output);
        let (stdout, stdout_cut) = shown(&output.stdout, redactor, max);
        let (stderr, stderr_cut) = shown(&output.stderr, redactor, max);
        let mut report = Self {
            outcome,
            exit_code,
            signal,
            stdout,
            stderr,
            truncated: stdout_cut || stderr_cut,
            duration_ms: millis(output.to_exit.unwrap_or(output.elapsed)),
            notes,
        };
        if report.truncated {
            report.notes.push(format!(
                "stdout had {} bytes, stderr {}; ask for more with max_output_bytes, or have the command write to a file",
                output.stdout.total_bytes, output.stderr.total_bytes
            ));
        }
        if output.stdout.binary || output.stderr.binary {
            report.notes.push("the output is not text; what is shown of it is approximate".to_owned());
        }
        if output.stdin.broken_pipe && !report.is_success() {
            report
                .notes
                .push(format!("the program read {} bytes of its input and no more", output.stdin.written));
        }
        if let Some(syntax) = literal.filter(|_| !report.is_success()) {
            report.notes.push(format!("{syntax}, and this ran without one"));
        }
        report
    }
}

/// Kept beyond what is shown at each end of a cut, so that a secret that the cut went through has been
/// seen whole, masked, or is left out. No private key is longer.
const MARGIN: usize = 4096;

/// A stream as text: cleaned, masked, and then cut to `max` bytes, a quarter of them from its beginning.
/// True where something is left out.
fn shown(stream: &Captured, redactor: &Redactor, max: usize) -> (String, bool) {
    let masked = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        redactor.redact(&clean(&text)).into_owned()
    };
    let (head, tail) = if stream.truncated() {
        (masked(stream.head()), masked(stream.tail()))
    } else {
        let whole = masked(stream.bytes());
        if whole.len() <= max {
            return (whole, false);
        }
        (whole.clone(), whole)
    };
    let mut head_end = (max / 4).min(head.len());
    while !head.is_char_boundary(head_end) {
        head_end -= 1;
    }
    let mut tail_start = tail.len().saturating_sub(max - max / 4);
    while !tail.is_char_boundary(tail_start) {
        tail_start += 1;
    }
    let (head, tail) = (&head[..head_end], &tail[tail_start..]);
    let omitted = stream.total_bytes.saturating_sub((head.len() + tail.len()) as u64);
    let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    (format!("{head}{line_end}[... about {omitted} bytes left out ...]\n{tail}"), true)
}

fn outcome(output: &Output) -> (&'static str, Vec<String>) {
    let mut notes = Vec::new();
    let name = match &output.termination {
        Termination::Exited { .. } => "exited",
        Termination::Signaled { .. } => "signaled",
        Termination::TimedOut { after, escalated } => {
            notes.push(format!(
                "ended at the time limit of {} ms with everything it had started{}",
                after.as_millis(),
                if *escalated { "; it did not stop when asked, and was killed" } else { "" }
            ));
            "timed_out"
        }
        Termination::Cancelled { .. } => "cancelled",
        Termination::Unkillable { pids } => {
            notes.push(format!("these processes cannot be ended: {pids:?}"));
            "unkillable"
        }
        _ => "unknown",
    };
    let killed: Vec<_> = output
        .leftovers
        .iter()
        .filter(|left| left.killed && matches!(output.termination, Termination::Exited { .. }))
        .map(|left| format!("{} ({})", left.name, left.pid))
        .collect();
    if !killed.is_empty() {
        notes.push(format!(
            "processes that still held its output were ended: {}; start_command runs things in the background",
            killed.join(", ")
        ));
    }
    (name, notes)
}

/// The exit code, or the signal, that ended the program.
pub(super) fn ending(output: &Output) -> (Option<u32>, Option<String>) {
    match output.status {
        Some(ExitStatus::Exited { code }) => (Some(code), None),
        Some(ExitStatus::Signaled { signal, .. }) => {
            (None, Some(signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)))
        }
        _ => (None, None),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The time limit that was asked for, or the default as far as it is allowed.
pub(super) fn time_limit(
    asked: Option<u64>,
    default: Duration,
    most: Duration,
) -> Result<Duration, CommandError> {
    match asked.map(Duration::from_millis) {
        Some(asked) if asked > most => {
            Err(CommandError::TooLong { asked: asked.as_millis(), most: most.as_millis() })
        }
        Some(asked) => Ok(asked),
        None => Ok(default.min(most)),
    }
}

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// The latest whole line that says something. One long word is nothing to read, and may be a piece of a key.
fn last_line(running: &Running) -> Option<String> {
    const LONGEST: u64 = 400;
    const WORD: usize = 40;
    [Stream::Stdout, Stream::Stderr].into_iter().find_map(|stream| {
        let end = running.snapshot(stream, u64::MAX, 0).next_cursor;
        let part = running.snapshot(stream, end.saturating_sub(LONGEST), 2 * 400).bytes;
        let text = String::from_utf8_lossy(&part);
        // The first piece may be the end of a longer line, and the last one may go on.
        let whole = text.rsplit_once('\n')?.0;
        let lines: Vec<_> = whole.split('\n').skip(usize::from(end > LONGEST)).collect();
        let line =
            lines.iter().rev().map(|line| clean(line).trim().to_owned()).find(|line| !line.is_empty())?;
        (line.len() < WORD || line.contains(' ')).then_some(line)
    })
}

impl Commands {
    /// Runs a command to its end, and everything it starts with it. `max_timeout` is the longest time limit
    /// the caller may ask for. `said` gets the latest line from time to time, masked.
    ///
    /// A command that ran is a report, however it ended: see [`CommandReport::is_success`].
    ///
    /// # Errors
    ///
    /// Where the command was refused, did not start, or its run was lost.
    pub async fn run(
        &self,
        input: &RunCommand,
        max_timeout: Duration,
        cancel: &CancellationToken,
        said: impl Fn(&str),
    ) -> Result<CommandReport, CommandError> {
        let (command, literal) =
            self.prepare(&input.command, input.working_directory.as_deref(), input.env.as_ref())?;
        let timeout = time_limit(input.timeout_ms, DEFAULT_TIMEOUT, max_timeout)?;
        let max = input.max_output_bytes.unwrap_or(DEFAULT_OUTPUT_BYTES);
        let limits = Limits::default().timeout(timeout).capture(max + 4 * MARGIN);
        let mut command = command.limits(limits).cancel(cancel.clone());
        if let Some(text) = &input.stdin {
            command = command.stdin(Stdin::bytes(text.as_bytes()));
        }
        let running = self.runner.start(command).await?;
        let output = self.attend(running, said).await?;
        Ok(CommandReport::new(&output, literal.as_ref(), &self.redactor, max))
    }
    /// Waits for the end of a program; `said` gets its latest line from time to time, masked.
    pub(super) async fn attend(
        &self,
        mut running: Running,
        said: impl Fn(&str),
    ) -> Result<Output, CommandError> {
        // Looking from time to time costs the same whatever is printed; a call for each line would not.
        let mut looks = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
        loop {
            tokio::select! {
                () = running.finished() => break,
                _ = looks.tick() => {
                    if let Some(line) = last_line(&running) {
                        said(&self.redactor.redact(&line));
                    }
                }
            }
        }
        Ok(running.wait().await?)
    }
}
