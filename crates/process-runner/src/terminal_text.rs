//! Text as a terminal would show it.

use std::borrow::Cow;

/// Returns `text` as a terminal's screen would show it, line by line.
///
/// Colours and all other control sequences are removed (ECMA-48 CSI, OSC, DCS, SOS, PM, APC, in their
/// 7-bit and 8-bit forms). Within a line a carriage return goes back to its start and what follows
/// overwrites it, a backspace goes back one character, and the sequences that erase or move within the
/// line (`CSI K`, `G`, `C`, `D`, `P`, `X`) are applied, so that a progress bar is shown in its last state.
/// CR LF is a line end. Movements between lines are dropped. Text without control characters is borrowed.
///
/// A control string (OSC, DCS ...) that is never terminated loses its introducer only, so that a stray
/// escape cannot swallow the output that follows.
pub fn clean(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    let Some(first) = text.find(|c| !plain(c)) else {
        return Cow::Borrowed(text);
    };
    // The line that holds the first control character is drawn from its start.
    let line_start = memchr::memrchr(b'\n', &text.as_bytes()[..first]).map_or(0, |at| at + 1);
    let mut screen = TerminalLines::new(String::with_capacity(text.len()));
    screen.finished_lines.push_str(&text[..line_start]);
    screen.draw(&text[line_start..]);
    Cow::Owned(screen.finish())
}

/// The line with the cursor, and the finished lines above it.
struct TerminalLines {
    finished_lines: String,
    line: Vec<char>,
    column: usize,
}

impl TerminalLines {
    fn new(finished_lines: String) -> Self {
        Self { finished_lines, line: Vec::new(), column: 0 }
    }

    /// Draws text with its control sequences.
    fn draw(&mut self, text: &str) {
        let mut strings = ControlStrings::default();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            at += c.len_utf8();
            at = match c {
                '\u{1b}' => self.escape(text, at, &mut strings),
                '\u{9b}' => self.control_sequence(text, at),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => strings.end(text, at, c == '\u{9d}'),
                _ => {
                    self.put(c);
                    at
                }
            };
        }
    }

    /// Draws one character that begins no sequence.
    fn put(&mut self, c: char) {
        match c {
            '\n' => self.end_line(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.write(c),
            c if c.is_control() => {}
            c => self.write(c),
        }
    }

    fn write(&mut self, c: char) {
        match self.line.get_mut(self.column) {
            Some(cell) => *cell = c,
            None => self.line.push(c),
        }
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.finished_lines.extend(self.line.drain(..));
        self.finished_lines.push('\n');
        self.column = 0;
    }

    fn finish(mut self) -> String {
        self.finished_lines.extend(self.line.drain(..));
        self.finished_lines
    }

    /// Handles the sequence of an ESC that stands before `at`, and returns where it ends.
    fn escape(&mut self, text: &str, at: usize, strings: &mut ControlStrings) -> usize {
        let bytes = text.as_bytes();
        match bytes.get(at) {
            Some(b'[') => self.control_sequence(text, at + 1),
            Some(b']') => strings.end(text, at + 1, true),
            Some(b'P' | b'X' | b'^' | b'_') => strings.end(text, at + 1, false),
            // nF: intermediates, then one final byte, such as `ESC ( B`.
            Some(0x20..=0x2F) => {
                let end = at + bytes[at..].iter().take_while(|byte| matches!(byte, 0x20..=0x2F)).count();
                if matches!(bytes.get(end), Some(0x30..=0x7E)) { end + 1 } else { end }
            }
            Some(0x30..=0x7E) => at + 1,
            _ => at,
        }
    }

    /// Applies the control sequence of a CSI that stands before `at`, and returns where it ends.
    fn control_sequence(&mut self, text: &str, at: usize) -> usize {
        let bytes = text.as_bytes();
        let parameters = bytes[at..].iter().take_while(|byte| matches!(byte, 0x30..=0x3F)).count();
        let middle = at + parameters;
        let end = middle + bytes[middle..].iter().take_while(|byte| matches!(byte, 0x20..=0x2F)).count();
        let Some(last @ 0x40..=0x7E) = bytes.get(end).copied() else {
            return end; // the sequence is incomplete, and what follows is text
        };
        if middle == end {
            self.apply(last, &text[at..middle]);
        }
        end + 1
    }

    /// Applies a control sequence without intermediates.
    fn apply(&mut self, command: u8, parameters: &str) {
        let number = |default: usize| match parameters {
            "" => default,
            digits => digits.parse().unwrap_or(default),
        };
        let column = self.column.min(self.line.len());
        match command {
            b'K' => match number(0) {
                0 => self.line.truncate(column),
                1 => self.line[..column].fill(' '),
                2 => self.line.clear(),
                _ => {}
            },
            b'P' | b'X' => {
                let end = column.saturating_add(number(1).max(1)).min(self.line.len());
                if command == b'P' {
                    self.line.drain(column..end);
                } else {
                    self.line[column..end].fill(' ');
                }
            }
            b'D' => self.column = self.column.saturating_sub(number(1).max(1)),
            b'G' => self.move_to(number(1).max(1) - 1),
            b'C' => self.move_to(self.column.saturating_add(number(1).max(1))),
            _ => {}
        }
        self.column = self.column.min(self.line.len());
    }

    /// Moves the cursor.
    // Beyond the end of the line one blank stands for the gap: the text stays readable, and a sequence of a few bytes
    // cannot ask for a million blanks.
    fn move_to(&mut self, column: usize) {
        if column > self.line.len() {
            self.line.push(' ');
        }
        self.column = column.min(self.line.len());
    }
}

/// A search for the ends of OSC, DCS, SOS, PM and APC strings that takes linear time over the whole text.
// An end that was looked for once and is not there is not looked for again. Otherwise a text of nothing but openings
// would take quadratic time.
#[derive(Default)]
struct ControlStrings {
    /// No OSC that starts before this position has an end.
    no_osc_end_before: usize,
    /// True if no other control string has an end from here on.
    none_left: bool,
}

impl ControlStrings {
    /// Returns where the string that starts at `at` ends, or `at` itself if it never does.
    fn end(&mut self, text: &str, at: usize, osc: bool) -> usize {
        if osc && at < self.no_osc_end_before || !osc && self.none_left {
            return at;
        }
        for (offset, c) in text[at..].char_indices() {
            let here = at + offset;
            match c {
                '\u{9c}' => return here + 2,
                '\u{7}' if osc => return here + 1,
                '\u{18}' | '\u{1a}' => return here + 1,
                '\u{1b}' if text.as_bytes().get(here + 1) == Some(&b'\\') => return here + 2,
                // A title or a link has no line end, so this one was broken off.
                '\n' if osc => {
                    self.no_osc_end_before = here;
                    return at;
                }
                _ => {}
            }
        }
        if osc {
            self.no_osc_end_before = text.len();
        } else {
            self.none_left = true;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_without_control_characters_is_borrowed() {
        assert!(matches!(clean("a\tb\nc é\n"), Cow::Borrowed("a\tb\nc é\n")));
    }

    #[test]
    fn control_sequences_leave_no_trace() {
        for (text, cleaned) in [
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            ("a\u{1b}[?25lb\u{1b}[?2004hc", "abc"),
            ("a\u{1b}[38:2::1:2:3mb\u{1b}[ qc", "abc"),
            ("\u{1b}]0;title\u{7}a", "a"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\.", "link."),
            ("a\u{1b}Pq#0\n;2\u{1b}\\b", "ab"),
            ("a\u{1b}_Gx=1\u{1b}\\b\u{1b}^p\u{1b}\\c\u{1b}Xs\u{1b}\\d", "abcd"),
            ("a\u{9b}31mb\u{9d}0;t\u{9c}c\u{90}x\u{9c}d", "abcd"),
            ("a\u{1b}(Bb\u{1b}7c\u{1b}=d\u{1b}", "abcd"),
            ("a\u{1b}[", "a"),
            ("a\u{1b}[31\nb", "a\nb"),
            ("a\u{7}\u{0}\u{e}\u{7f}b", "ab"),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
    }

    #[test]
    fn a_control_string_that_never_ends_swallows_nothing() {
        assert_eq!(clean("a\u{1b}]0;title\nb"), "a0;title\nb");
        assert_eq!(clean("a\u{1b}Pb\nc"), "ab\nc");
        assert_eq!(clean("\u{1b}]x\n\u{1b}]0;t\u{7}b"), "x\nb");
    }

    #[test]
    fn within_a_line_the_last_state_is_left() {
        for (text, cleaned) in [
            ("10%\r20%\r100%\n", "100%\n"),
            ("100%\r5%", "5%0%"),
            ("abc\r\ndef\r\n", "abc\ndef\n"),
            ("first\nabc\rx\n", "first\nxbc\n"),
            ("Compiling long\r\u{1b}[KDone\n", "Done\n"),
            ("abc\u{1b}[2K\rd", "d"),
            ("abcdef\r\u{1b}[3Cx\u{1b}[1K!", "    !f"),
            ("abc\u{8}\u{8}x", "axc"),
            ("abcd\u{1b}[2Dx", "abxd"),
            ("abcd\u{1b}[2Gx", "axcd"),
            ("abcd\r\u{1b}[2P", "cd"),
            ("abcd\r\u{1b}[2X", "  cd"),
            ("a\u{1b}[20Gb", "a b"),
            ("a\u{1b}[99999999999999999999Cb", "a b"),
        ] {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
    }

    #[test]
    fn hostile_sequences_cost_linear_time_and_memory() {
        let hostile = "\u{1b}P\u{1b}]\u{1b}[999999999Ca\u{1b}_".repeat(50_000);
        let started = std::time::Instant::now();
        let cleaned = clean(&hostile);
        assert!(cleaned.len() <= hostile.len());
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    proptest! {
        #[test]
        fn clean_text_has_no_control_characters_and_stays_as_it_is(
            text in "([a-zé\n\r\t\u{8}\u{7}\u{9b}\u{9c}\u{9d}\u{90}]|\u{1b}|[\\[\\]PKGCDX0-9;?\\\\m]){0,40}"
        ) {
            let cleaned = clean(&text).into_owned();
            prop_assert!(!cleaned.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(clean(&cleaned), &*cleaned);
        }
    }
}
