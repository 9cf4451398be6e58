//! The screen of a program's terminal, as text.

use process_runner::TerminalSize;
use std::fmt;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vt100::capture::{BasicFormattedCaptureState, RowContents, basic_formatted_to_plain};
use vt100::{Callbacks, Parser, Screen};

/// The terminal that a program draws on.
pub(super) struct TerminalScreen {
    size: TerminalSize,
    parser: Parser<TerminalEvents>,
}

/// The events of one piece of output, apart from what it drew.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TerminalEvents {
    /// The answers to the program's questions to its terminal. They are typed.
    pub(super) replies: Vec<u8>,
    /// The text that left the screen at its top. A line that goes on there has no line end yet.
    pub(super) scrolled: String,
}

/// The text on a screen.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ScreenText {
    /// The lines, without blank ones at the end. A line that goes on in the next row is one line.
    pub text: String,
    /// The columns of the screen.
    pub columns: u16,
    /// The rows of the screen.
    pub rows: u16,
    /// The row of the cursor, from 1.
    pub cursor_row: u16,
    /// The column of the cursor, from 1.
    pub cursor_column: u16,
}

/// The most text that one piece of output can push off the screen, in bytes, beside what was on the screen; what is beyond is
/// left out. A program that repeats a character by a sequence can write far more than it prints.
const MAX_SCROLLED_BYTES: usize = 256 << 10;

impl TerminalScreen {
    pub(super) fn new(size: TerminalSize) -> Self {
        let [rows, columns] =
            [size.rows, size.columns].map(|side| NonZeroU16::new(side).unwrap_or(NonZeroU16::MIN));
        // No scrollback of its own: what leaves the screen goes where all output is kept.
        let parser = Parser::new_with_callbacks(rows, columns, 0, TerminalEvents::default());
        Self { size, parser }
    }

    /// Draws output, cut anywhere.
    pub(super) fn draw(&mut self, bytes: &[u8]) -> TerminalEvents {
        // The emulator is written by others and reads what strangers write: a fault in it costs the screen, not the run.
        if catch_unwind(AssertUnwindSafe(|| self.parser.process(bytes))).is_err() {
            *self = Self::new(self.size);
        }
        std::mem::take(self.parser.callbacks_mut())
    }

    /// Returns what is on the screen now.
    pub(super) fn text(&self) -> ScreenText {
        let screen = self.parser.screen();
        let mut text = String::new();
        for (index, row) in (0..).zip(screen.rows(0, self.size.columns)) {
            text.push_str(&row);
            if !screen.row_wrapped(index) {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        let (row, column) = screen.cursor_position();
        let TerminalSize { columns, rows } = self.size;
        ScreenText { text, columns, rows, cursor_row: row + 1, cursor_column: column + 1 }
    }
}

impl fmt::Debug for TerminalScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalScreen").field("size", &self.size).finish_non_exhaustive()
    }
}

impl fmt::Display for ScreenText {
    /// Writes a line with the size and the cursor, and the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, columns, rows, cursor_row, cursor_column } = self;
        write!(
            f,
            "--- screen {columns}x{rows}, cursor at row {cursor_row}, column {cursor_column} ---\n{text}"
        )
    }
}

impl Callbacks for TerminalEvents {
    /// Answers what programs ask (ECMA-48 DSR, DA): without an answer some wait, and some refuse to go on.
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        command: char,
    ) {
        let parameter = parameters.first().and_then(|values| values.first()).copied().unwrap_or(0);
        let reply = match (first, command, parameter) {
            (None, 'n', 5) => "\x1b[0n".to_owned(),
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            (None, 'c', 0) => "\x1b[?1;2c".to_owned(),
            (Some(b'>'), 'c', 0) => "\x1b[>0;0;0c".to_owned(),
            _ => return,
        };
        self.replies.extend_from_slice(reply.as_bytes());
    }

    fn on_scroll(&mut self, row: RowContents<'_>, is_alternate: bool) {
        // A program on the alternate screen draws it anew; what it scrolls away there is no output.
        if is_alternate || self.scrolled.len() > MAX_SCROLLED_BYTES {
            return;
        }
        let mut state = BasicFormattedCaptureState::new();
        let (mut line, mut next) = (String::new(), String::new());
        // Written twice, as the line end comes before a second row, and only if the first does not go on there.
        let written = row
            .write_formatted_basic(&mut line, &mut state)
            .and_then(|()| row.write_formatted_basic(&mut next, &mut state));
        if written.is_ok() {
            self.scrolled.extend(basic_formatted_to_plain(&line));
            if next.starts_with('\n') {
                self.scrolled.truncate(self.scrolled.trim_end_matches(' ').len());
                self.scrolled.push('\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn screen() -> TerminalScreen {
        TerminalScreen::new(TerminalSize { columns: 20, rows: 4 })
    }

    #[test]
    fn what_was_drawn_is_there_as_text_and_what_left_the_screen_comes_once() {
        let mut screen = screen();
        let mut scrolled = String::new();
        for line in 1..=6 {
            scrolled += &screen.draw(format!("\x1b[3{line}mline {line}\x1b[0m  \r\n").as_bytes()).scrolled;
        }
        assert_eq!(scrolled, "line 1\nline 2\nline 3\n");
        assert_eq!(screen.text().text, "line 4\nline 5\nline 6");
        screen.draw(b"\x1b[H\x1b[2Jmenu\x1b[3;5Hitem");
        let text = screen.text();
        assert_eq!((text.text.as_str(), text.cursor_row, text.cursor_column), ("menu\n\n    item", 3, 9));
        assert!(
            text.to_string().starts_with("--- screen 20x4, cursor at row 3, column 9 ---\nmenu"),
            "{text}"
        );
    }

    #[test]
    fn a_line_over_several_rows_is_one_line_on_the_screen_and_above_it() {
        let mut screen = screen();
        screen.draw(b"0123456789012345678901234\r\n");
        assert_eq!(screen.text().text, "0123456789012345678901234");
        let events = screen.draw(b"a\r\nb\r\nc\r\nd");
        assert_eq!(events.scrolled, "0123456789012345678901234\n");
    }

    #[test]
    fn a_program_that_leaves_the_alternate_screen_leaves_nothing_of_it() {
        let mut screen = screen();
        screen.draw(b"before\r\n\x1b[?1049h\x1b[2J\x1b[Hfull\r\n1\r\n2\r\n3\r\n4");
        let events = screen.draw(b"\r\n5\x1b[?1049lafter");
        assert_eq!((events.scrolled.as_str(), screen.text().text.as_str()), ("", "before\nafter"));
    }

    #[test]
    fn a_program_that_asks_its_terminal_is_answered() {
        let mut screen = screen();
        assert_eq!(screen.draw(b"ab\x1b[6n").replies, b"\x1b[1;3R");
        assert_eq!(screen.draw(b"\x1b[5n\x1b[c\x1b[>c").replies, b"\x1b[0n\x1b[?1;2c\x1b[>0;0;0c");
        assert_eq!(screen.draw(b"\x1b[?25l\x1b[99n").replies, b"");
    }

    proptest! {
        #[test]
        fn any_bytes_are_drawn_within_the_screen(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            columns in 1..60_u16,
            rows in 1..30_u16,
        ) {
            let mut screen = TerminalScreen::new(TerminalSize { columns, rows });
            screen.draw(&bytes);
            let text = screen.text();
            prop_assert!(text.text.lines().count() <= usize::from(rows));
            prop_assert!(text.cursor_row <= rows && text.cursor_column <= columns + 1);
        }

        #[test]
        fn any_control_sequences_are_drawn_within_the_screen(
            text in r"(\x1b\[[0-9;?]{0,7}[A-Za-z@`]|\x1b[()#78cDEHM=>]|[\r\n\t\x08\x0e]|[a-zé漢👩‍🚀]{0,9}){0,60}"
        ) {
            let mut screen = TerminalScreen::new(TerminalSize { columns: 7, rows: 3 });
            let panics = catch_unwind(AssertUnwindSafe(|| screen.parser.process(text.as_bytes()))).is_err();
            prop_assert!(!panics, "the emulator panics");
            prop_assert!(screen.text().text.lines().count() <= 3);
        }
    }
}
