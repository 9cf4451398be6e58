//! The report on a command that ran to its end.

use super::exit::ExitDetails;
use super::timeout::as_millis;
use crate::redact::Redactor;
use process_runner::{CapturedStream, Output, ShellSyntax, Termination, clean};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// The report on a command that ran: how it ended, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct CommandReport {
    /// `exited`, `signaled`, `timed_out`, `cancelled`, `unkillable` or `unknown`.
    #[schemars(with = "String")]
    pub outcome: CommandOutcome,
    /// The exit code. Absent where a signal ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u32>,
    /// The signal that ended the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Standard output: the beginning and the end, with a line between them that says what is left out.
    pub stdout: String,
    /// Standard error, in the same form.
    pub stderr: String,
    /// Something was left out of a stream.
    pub truncated: bool,
    /// The time from start to exit, in milliseconds.
    pub duration_ms: u64,
    /// Further facts: the limit that ended the command, processes that were left over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandOutcome {
    /// It ended by itself, with an exit code.
    Exited,
    /// A signal that the server did not send ended it.
    Signaled,
    /// The time limit ended it.
    TimedOut,
    /// The caller ended it.
    Cancelled,
    /// It was to end, and processes of it cannot be killed.
    Unkillable,
    /// The system did not tell.
    Unknown,
}

impl CommandOutcome {
    /// Returns the words for a person.
    fn description(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Unkillable => "unkillable",
            Self::Unknown => "unknown",
        }
    }
}

impl From<&Termination> for CommandOutcome {
    fn from(termination: &Termination) -> Self {
        match termination {
            Termination::Exited { .. } => Self::Exited,
            Termination::Signaled { .. } => Self::Signaled,
            Termination::TimedOut { .. } => Self::TimedOut,
            Termination::Cancelled { .. } => Self::Cancelled,
            Termination::Unkillable { .. } => Self::Unkillable,
            _ => Self::Unknown,
        }
    }
}

impl CommandReport {
    /// Returns true if the program ended by itself, with exit code 0.
    pub fn is_success(&self) -> bool {
        self.outcome == CommandOutcome::Exited && self.exit_code == Some(0)
    }

    /// Returns the whole report as text, for people and for clients that show only text.
    pub fn to_text(&self) -> String {
        let outcome = self.outcome.description();
        let mut text = match (self.outcome, self.exit_code, &self.signal) {
            (CommandOutcome::Exited, Some(code), _) => format!("exit code {code}"),
            (_, Some(code), _) => format!("{outcome} (exit code {code})"),
            (_, None, Some(signal)) => format!("{outcome} ({signal})"),
            (_, None, None) => outcome.to_owned(),
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

    /// Creates the report, with at most `max_bytes` of each stream.
    pub(super) fn new(
        output: &Output,
        literal_syntax: Option<&ShellSyntax>,
        redactor: &Redactor,
        max_bytes: usize,
    ) -> Self {
        let exit = ExitDetails::from(output);
        let stdout = ReportExcerpt::new(&output.stdout, redactor, max_bytes);
        let stderr = ReportExcerpt::new(&output.stderr, redactor, max_bytes);
        let mut report = Self {
            outcome: CommandOutcome::from(&output.termination),
            exit_code: exit.code,
            signal: exit.signal,
            truncated: stdout.is_cut || stderr.is_cut,
            stdout: stdout.text,
            stderr: stderr.text,
            duration_ms: as_millis(output.to_exit.unwrap_or(output.elapsed)),
            notes: termination_notes(output),
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
        // A program that succeeded had no need of the rest.
        if output.stdin.broken_pipe && !report.is_success() {
            report
                .notes
                .push(format!("the program read {} bytes of its input and no more", output.stdin.written));
        }
        // Only after a failure: a word such as `*` may be meant as it is.
        if let Some(syntax) = literal_syntax.filter(|_| !report.is_success()) {
            report.notes.push(format!("{syntax}, and this ran without one"));
        }
        report
    }
}

/// The number of bytes that are captured beyond those shown at each end of a cut, so that a secret that the cut
/// went through was captured whole and masked, or is left out. No private key is longer.
const REDACTION_MARGIN_BYTES: usize = 4096;

/// Returns the number of bytes to capture of a stream of which `max_bytes` are shown. One half is kept of each end, and
/// three quarters of what is shown are from the end.
pub(super) fn capture_bytes(max_bytes: usize) -> usize {
    max_bytes + max_bytes / 2 + 4 * REDACTION_MARGIN_BYTES
}

/// A captured stream as text: cleaned, masked, and then cut.
struct ReportExcerpt {
    text: String,
    is_cut: bool,
}

impl ReportExcerpt {
    /// Cuts a stream to `max_bytes`, a quarter of them from its beginning: the end of a failed command's output
    /// says more than its beginning.
    fn new(stream: &CapturedStream, redactor: &Redactor, max_bytes: usize) -> Self {
        let masked = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            redactor.redact(&clean(&text)).into_owned()
        };
        let (head, tail, margin) = if stream.truncated() {
            (masked(stream.head()), masked(stream.tail()), REDACTION_MARGIN_BYTES)
        } else {
            let whole = masked(stream.bytes());
            if whole.len() <= max_bytes {
                return Self { text: whole, is_cut: false };
            }
            (whole.clone(), whole, 0)
        };
        // The margin is left out even where masking has made the text shorter than what may be shown: in it may be the
        // rest of a secret whose beginning was not captured.
        let head_end = head.floor_char_boundary(Ord::min(max_bytes / 4, head.len().saturating_sub(margin)));
        let tail_start = Ord::max(tail.len().saturating_sub(max_bytes - max_bytes / 4), margin);
        let tail_start = tail.ceil_char_boundary(Ord::min(tail_start, tail.len()));
        let (head, tail) = (&head[..head_end], &tail[tail_start..]);
        let omitted = stream.total_bytes.saturating_sub((head.len() + tail.len()) as u64);
        let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{line_end}[... about {omitted} bytes left out ...]\n{tail}");
        Self { text, is_cut: true }
    }
}

/// Returns what is worth knowing of the end: the limit, and processes that were ended or could not be.
fn termination_notes(output: &Output) -> Vec<String> {
    let mut notes = Vec::new();
    match &output.termination {
        Termination::TimedOut { after, escalated } => notes.push(format!(
            "ended at the time limit of {} ms with everything it had started{}",
            after.as_millis(),
            if *escalated { "; it did not stop when asked, and was killed" } else { "" }
        )),
        Termination::Unkillable { pids } => {
            notes.push(format!("these processes cannot be ended: {pids:?}"));
        }
        _ => {}
    }
    // After a time limit it goes without saying that everything was ended.
    let has_exited = matches!(output.termination, Termination::Exited { .. });
    let killed: Vec<_> = output
        .leftovers
        .iter()
        .filter(|process| process.killed && has_exited)
        .map(|process| format!("{} ({})", process.name, process.pid))
        .collect();
    if !killed.is_empty() {
        notes.push(format!(
            "processes that still held its output were ended: {}; start_command runs things in the background",
            killed.join(", ")
        ));
    }
    notes
}
