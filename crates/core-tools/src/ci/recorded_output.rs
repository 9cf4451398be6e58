//! The output of a command that somebody reads while it runs: its lines, and its screen if it has a terminal.

use super::screen_emulation::DrawnPiece;
use super::terminal_screen::{ScreenText, TerminalScreen};
use super::transcript::Transcript;
use crate::redact::Redactor;
use process_runner::TerminalSize;

/// The output of one command, masked.
#[derive(Debug)]
pub(super) struct MaskedCommandOutput {
    /// The lines that were printed; of a program with a terminal, those that have left its screen.
    pub(super) lines: Transcript,
    /// The screen as it was last drawn.
    screen: Option<ScreenText>,
    redactor: Redactor,
    /// The number of times that there was output.
    changes: u64,
}

impl MaskedCommandOutput {
    /// Records a command with a terminal of the size `terminal`, or with pipes.
    pub(super) fn new(redactor: &Redactor, terminal: Option<TerminalSize>) -> Self {
        Self {
            lines: Transcript::new(redactor.lines()),
            screen: terminal.map(|size| TerminalScreen::new(size).text()),
            redactor: redactor.clone(),
            changes: 0,
        }
    }

    /// Records the whole output of a command that has ended, masked already.
    pub(super) fn of_masked(redactor: &Redactor, text: &str) -> Self {
        Self { lines: Transcript::of_masked(redactor.lines(), text), ..Self::new(redactor, None) }
    }

    /// Adds output of a command with pipes, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.changes += 1;
        self.lines.push(bytes);
    }

    /// Adds output of a command with a terminal, which was drawn.
    pub(super) fn show(&mut self, drawn: DrawnPiece) {
        self.changes += 1;
        self.lines.push(drawn.scrolled.as_bytes());
        self.screen = Some(drawn.screen);
    }

    /// Ends the output: the last line is a line, even without a line end.
    pub(super) fn finish(&mut self) {
        // A line whose rest is still on the screen goes on there.
        if self.screen.is_none() {
            self.lines.finish();
        }
    }

    /// Returns the number of times that there was output.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns what is on the screen, if there is one.
    pub(super) fn screen(&self) -> Option<ScreenText> {
        let mut screen = self.screen.clone()?;
        screen.text = self.redactor.redact(&screen.text).into_owned();
        Some(screen)
    }

    /// Returns all that was printed, as far as it is kept: the lines, and the screen below them.
    pub(super) fn whole(&self) -> String {
        let part = self.lines.read(0, usize::MAX);
        let lost = match part.lost_bytes {
            0 => String::new(),
            bytes => format!("[... {bytes} bytes are no longer there ...]\n"),
        };
        let screen = self.screen().map(|screen| screen.text).unwrap_or_default();
        format!("{lost}{}{screen}", part.text)
    }

    /// Returns true if `text` was printed since `position`, or is on the screen.
    pub(super) fn contains_since(&self, position: u64, text: &str) -> bool {
        self.lines.contains_since(position, text)
            || self.screen().is_some_and(|screen| screen.text.contains(text))
    }
}
