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
    /// The shell that ran the line, with `shell`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
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
    /// The whole output, where something of it was left out.
    #[serde(skip)]
    full_output: Option<CapturedCommandOutput>,
}

/// The output of a command as far as it was captured, masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturedCommandOutput {
    /// Standard output, and then standard error.
    pub(super) text: String,
    /// The position of the first byte that was left out of the report.
    pub(super) cut_at: usize,
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
        if let Some(shell) = &self.shell {
            let _ = write!(text, " in {shell}");
        }
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
    pub(super) fn new(output: &Output, redactor: &Redactor, max_bytes: usize) -> Self {
        let stdout = CommandOutputExcerpt::new(&output.stdout, redactor, max_bytes);
        let stderr = CommandOutputExcerpt::new(&output.stderr, redactor, max_bytes);
        let mut report = Self::of_excerpts(output, redactor, stdout, stderr);
        if output.stdout.binary || output.stderr.binary {
            report.notes.push("the output is not text; what is shown of it is approximate".to_owned());
        }
        // A program that succeeded had no need of the rest.
        if output.stdin.broken_pipe && !report.is_success() {
            report
                .notes
                .push(format!("the program read {} bytes of its input and no more", output.stdin.written));
        }
        report
    }

    /// Creates the report on a program with a terminal, which printed `text`, masked already.
    pub(super) fn of_terminal(output: &Output, redactor: &Redactor, text: String, max_bytes: usize) -> Self {
        let text = CommandOutputExcerpt::of_text(text, max_bytes);
        Self::of_excerpts(output, redactor, text, CommandOutputExcerpt::default())
    }

    fn of_excerpts(
        output: &Output,
        redactor: &Redactor,
        stdout: CommandOutputExcerpt,
        stderr: CommandOutputExcerpt,
    ) -> Self {
        let exit = ExitDetails::from(output);
        let mut notes = termination_notes(output, redactor);
        let cut: Vec<_> = [("stdout", &stdout), ("stderr", &stderr)]
            .into_iter()
            .filter(|(_, excerpt)| excerpt.is_cut)
            .map(|(name, excerpt)| format!("{name} had {} bytes", excerpt.total_bytes))
            .collect();
        if !cut.is_empty() {
            notes.push(format!("{}; max_output_bytes sets how much of it is shown", cut.join(", ")));
        }
        let full_output = CapturedCommandOutput::of(&stdout, &stderr);
        Self {
            outcome: CommandOutcome::from(&output.termination),
            exit_code: exit.code,
            signal: exit.signal,
            shell: None,
            truncated: stdout.is_cut || stderr.is_cut,
            stdout: stdout.text,
            stderr: stderr.text,
            duration_ms: as_millis(output.to_exit.unwrap_or(output.elapsed)),
            notes,
            full_output,
        }
    }

    /// Takes the whole output out of the report, where something of it was left out.
    pub(super) fn take_full_output(&mut self) -> Option<CapturedCommandOutput> {
        self.full_output.take()
    }

    /// Adds how the words of the command came about: the shell that read them, a glob that nothing replaced.
    pub(super) fn with_words(mut self, shell: Option<&str>, literal_glob: Option<&ShellSyntax>) -> Self {
        self.shell = shell.map(str::to_owned);
        // Only after a failure: a word such as `*` may be meant as it is.
        if let Some(syntax) = literal_glob.filter(|_| !self.is_success()) {
            self.notes.push(format!("{syntax}, and this ran without one; no file matched there"));
        }
        self
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

impl CapturedCommandOutput {
    /// Joins both streams. `None` if nothing was left out of them.
    fn of(stdout: &CommandOutputExcerpt, stderr: &CommandOutputExcerpt) -> Option<Self> {
        const BETWEEN: &str = "\n--- stderr ---\n";
        let whole =
            |excerpt: &CommandOutputExcerpt| excerpt.whole.clone().unwrap_or_else(|| excerpt.text.clone());
        let (out, err) = (whole(stdout), whole(stderr));
        let cut_at = match (stdout.is_cut, stderr.is_cut) {
            (true, _) => stdout.head_bytes,
            (false, true) => out.len() + BETWEEN.len() + stderr.head_bytes,
            (false, false) => return None,
        };
        let text = if err.is_empty() { out } else { format!("{out}{BETWEEN}{err}") };
        Some(Self { text, cut_at })
    }
}

/// A captured stream as text: cleaned, masked, and then cut.
#[derive(Default)]
struct CommandOutputExcerpt {
    text: String,
    is_cut: bool,
    /// The text before the cut, as far as it was captured.
    whole: Option<String>,
    /// The bytes of the text before the part that is left out.
    head_bytes: usize,
    /// The bytes that the program printed.
    total_bytes: u64,
}

impl CommandOutputExcerpt {
    /// Cuts a stream to `max_bytes`.
    fn new(stream: &CapturedStream, redactor: &Redactor, max_bytes: usize) -> Self {
        let masked = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            redactor.redact(&clean(&text)).into_owned()
        };
        if !stream.truncated() {
            let whole = masked(stream.bytes());
            return Self { total_bytes: stream.total_bytes, ..Self::of_text(whole, max_bytes) };
        }
        let (head, tail) = (masked(stream.head()), masked(stream.tail()));
        // The margin is left out even where masking has made the text shorter than what may be shown: in it may be the
        // rest of a secret whose beginning was not captured.
        let head = &head[..head.floor_char_boundary(head.len().saturating_sub(REDACTION_MARGIN_BYTES))];
        let tail = &tail[tail.ceil_char_boundary(Ord::min(REDACTION_MARGIN_BYTES, tail.len()))..];
        Self::cut(head, tail, true, stream.total_bytes, max_bytes)
    }

    /// Cuts a text that is masked to `max_bytes`.
    fn of_text(text: String, max_bytes: usize) -> Self {
        let total_bytes = text.len() as u64;
        if text.len() <= max_bytes {
            return Self { text, total_bytes, ..Self::default() };
        }
        Self::cut(&text, &text, false, total_bytes, max_bytes)
    }

    /// Joins the beginning of `head` and the end of `tail`. A quarter is from the beginning: the end of a failed command's
    /// output says more than its beginning. `gap` says that something between the two was not captured.
    fn cut(head: &str, tail: &str, gap: bool, total_bytes: u64, max_bytes: usize) -> Self {
        let whole = if gap { join_around_gap(head, tail, total_bytes) } else { head.to_owned() };
        let head_end = head.floor_char_boundary(Ord::min(max_bytes / 4, head.len()));
        let tail_start = tail.ceil_char_boundary(tail.len().saturating_sub(max_bytes - max_bytes / 4));
        let (head, tail) = (whole_lines_before(&head[..head_end]), whole_lines_after(tail, tail_start));
        let text = join_around_gap(head, tail, total_bytes);
        Self { text, is_cut: true, whole: Some(whole), head_bytes: head.len(), total_bytes }
    }
}

/// Joins the beginning and the end of a text with a line that says how much is left out.
fn join_around_gap(head: &str, tail: &str, total_bytes: u64) -> String {
    let omitted = total_bytes.saturating_sub((head.len() + tail.len()) as u64);
    let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{line_end}[... about {omitted} bytes left out ...]\n{tail}")
}

/// Returns `text` up to its last line end, if that is near.
fn whole_lines_before(text: &str) -> &str {
    match text.rfind('\n') {
        Some(at) if text.len() - at < MAX_PART_OF_LINE => &text[..=at],
        _ => text,
    }
}

/// Returns `text` from the first start of a line at `start` or after it, if that is near.
fn whole_lines_after(text: &str, start: usize) -> &str {
    if text[..start].ends_with('\n') {
        return &text[start..];
    }
    match text[start..].find('\n') {
        Some(at) if at < MAX_PART_OF_LINE => &text[start + at + 1..],
        _ => &text[start..],
    }
}

/// The length of a piece of a line that is left out, so that an excerpt begins and ends with whole lines.
const MAX_PART_OF_LINE: usize = 400;

/// Returns what is worth knowing of the end: the limit, and processes that were ended or could not be.
fn termination_notes(output: &Output, redactor: &Redactor) -> Vec<String> {
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
    notes.extend(output.exceeded_limits.iter().map(ToString::to_string));
    // After a time limit it goes without saying that everything was ended.
    let has_exited = matches!(output.termination, Termination::Exited { .. });
    let left: Vec<_> = output
        .leftovers
        .iter()
        .filter(|process| !process.killed && !process.held_pipe && has_exited)
        .map(|process| {
            let line = process.command_line.as_deref().unwrap_or(&process.name);
            format!("`{}` (pid {})", redactor.redact(line), process.pid)
        })
        .collect();
    if !left.is_empty() {
        notes.push(format!(
            "left running: {}; list_commands lists it and stop_command ends it",
            left.join(", ")
        ));
    }
    let refused = output.leftovers.iter().filter_map(|process| Some((process, process.refused.as_ref()?)));
    let (refused, reasons): (Vec<_>, Vec<_>) = refused
        .map(|(process, reason)| {
            let line = process.command_line.as_deref().unwrap_or(&process.name);
            (format!("`{}` (pid {})", redactor.redact(line), process.pid), reason)
        })
        .unzip();
    if let Some(reason) = reasons.first() {
        notes.push(format!("ended, and not left running: {}: {reason}", refused.join(", ")));
    }
    let unknown: Vec<_> = output
        .leftovers
        .iter()
        .filter(|process| process.killed && !process.held_pipe && process.refused.is_none() && has_exited)
        .map(|process| {
            let line = process.command_line.as_deref().unwrap_or(&process.name);
            format!("`{}` (pid {})", redactor.redact(line), process.pid)
        })
        .collect();
    if !unknown.is_empty() {
        notes.push(format!(
            "processes of which it could not be told whose command had started them were ended: {}; start_command runs \
             things in the background",
            unknown.join(", ")
        ));
    }
    let killed: Vec<_> = output
        .leftovers
        .iter()
        .filter(|process| process.killed && process.held_pipe && process.refused.is_none() && has_exited)
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
