//! [`LiveDisplay`]: the progress of a call on a terminal, drawn anew in place while the call runs.

use crate::terminal::{TerminalColours, can_redraw, colours, width};
use core_tools::mcp::{ProgressEvent, ProgressReporter};
use core_tools::redact::Redactor;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The lines of output that are shown at once. All of them are in the answer.
const MAX_LINES: usize = 8;

/// The time before the first drawing: most calls are done by then.
const DELAY: Duration = Duration::from_millis(400);

/// The progress of one call on standard error: the latest lines of output, and below them the state of the work. Nothing
/// of it is left when the call ends.
pub(super) struct LiveDisplay {
    tool: String,
    progress: Arc<Mutex<LatestReports>>,
    colours: TerminalColours,
    started: Instant,
    drawn: Vec<String>,
}

/// The reports that are shown.
#[derive(Default)]
struct LatestReports {
    status: Option<String>,
    lines: VecDeque<String>,
}

impl LiveDisplay {
    /// Returns the display for a call of `tool`. Returns `None` if standard error is no terminal on which lines can be
    /// drawn anew.
    pub(super) fn on_terminal(tool: &str) -> Option<Self> {
        let stderr = std::io::stderr();
        can_redraw(&stderr).then(|| Self {
            tool: tool.to_owned(),
            progress: Arc::default(),
            colours: colours(&stderr),
            started: Instant::now(),
            drawn: Vec::new(),
        })
    }

    /// Returns the reporter by which the call reports to this display. Secrets are masked by `redactor`.
    pub(super) fn reporter(&self, redactor: Redactor) -> ProgressReporter {
        let progress = Arc::clone(&self.progress);
        ProgressReporter::to_listener(move |event| {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                ProgressEvent::Status(text) => progress.status = Some(redactor.redact(text).into_owned()),
                ProgressEvent::Line(text) => progress.push(redactor.redact(text).into_owned()),
            }
        })
    }

    /// Draws the state of now.
    pub(super) fn draw(&mut self) {
        if self.started.elapsed() < DELAY {
            return;
        }
        let lines = {
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.to_lines(&self.tool, self.started.elapsed(), self.colours, width())
        };
        self.replace(lines);
    }

    /// Removes what was drawn.
    pub(super) fn clear(&mut self) {
        self.replace(Vec::new());
    }

    /// Writes `lines` in place of those that were drawn last, in one piece, so that nothing flickers.
    fn replace(&mut self, lines: Vec<String>) {
        if lines == self.drawn {
            return;
        }
        let mut text = String::new();
        if !self.drawn.is_empty() {
            // Up to the first line that was drawn; from there all is erased.
            let _ = write!(text, "\u{1b}[{}A\r\u{1b}[J", self.drawn.len());
        }
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines;
        let mut stderr = std::io::stderr().lock();
        // A terminal that has gone away ends the program by a signal.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl LatestReports {
    fn push(&mut self, line: String) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn to_lines(&self, tool: &str, elapsed: Duration, colours: TerminalColours, width: usize) -> Vec<String> {
        // The last column stays free: some terminals wrap once it is filled.
        let columns = width.saturating_sub(1).max(10);
        let mut lines: Vec<_> = self.lines.iter().map(|line| colours.dim(&fitted(line, columns))).collect();
        let status = self.status.as_deref().map_or_else(String::new, |status| format!("  {status}"));
        let state = format!("{tool}  {} s{status}", elapsed.as_secs());
        lines.push(colours.bold(&fitted(&state, columns)));
        lines
    }
}

/// Returns the part of the first line of `text` that fits, without characters that would move the cursor.
fn fitted(text: &str, columns: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut used = 0;
    let fits = |character: &char| {
        // A letter of an East Asian script takes two columns, so each from there on is counted as two.
        used += if *character > '\u{10ff}' { 2 } else { 1 };
        used <= columns
    };
    let plain = line.chars().map(|character| if character.is_control() { ' ' } else { character });
    plain.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_lines_stand_above_the_state_and_each_fits_the_terminal() {
        let mut reports = LatestReports::default();
        for number in 0..20 {
            reports.push(format!("line {number} {}", "x".repeat(100)));
        }
        reports.status = Some("3 of 9 tests done, 0 failed".to_owned());
        let lines = reports.to_lines("run_tests", Duration::from_secs(12), TerminalColours::OFF, 40);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert!(lines[0].starts_with("line 12 x") && lines.iter().all(|line| line.chars().count() <= 39));
        assert_eq!(lines[MAX_LINES], "run_tests  12 s  3 of 9 tests done, 0 f");
    }

    #[test]
    fn nothing_in_a_line_moves_the_cursor_and_wide_letters_count_twice() {
        assert_eq!(fitted("a\u{1b}[2Jb\tc\nd", 80), "a [2Jb c");
        assert_eq!(fitted("漢字漢字", 5), "漢字");
    }
}
