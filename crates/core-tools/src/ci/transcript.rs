//! What a background command has printed: whole lines, masked once, and then never cut open again.

use crate::redact::LineRedactor;
use process_runner::clean;
use std::collections::VecDeque;

/// The end of what a command has printed, as text. Positions count the bytes of that text from its start.
#[derive(Debug)]
pub(super) struct Transcript {
    redactor: LineRedactor,
    /// Whole lines, masked.
    lines: VecDeque<String>,
    /// Where the first of `lines` begins.
    begin: u64,
    /// Where the last of them ends.
    end: u64,
    /// The line that has not ended yet, as it came.
    open: Vec<u8>,
}

/// A part of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) next_cursor: u64,
    pub(super) lost_bytes: u64,
}

/// Kept of a transcript.
const KEPT: u64 = 1 << 20;
/// A line without an end is taken for whole at this length.
const LONGEST_LINE: usize = 64 * 1024;

impl Transcript {
    pub(super) fn new(redactor: LineRedactor) -> Self {
        Self { redactor, lines: VecDeque::new(), begin: 0, end: 0, open: Vec::new() }
    }

    /// Adds what was printed, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.open.len() >= LONGEST_LINE {
                self.close_line();
            }
        }
    }

    /// No more will come.
    pub(super) fn end(&mut self) {
        if !self.open.is_empty() {
            self.close_line();
        }
    }

    fn close_line(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let line = self.redactor.line(&clean(&String::from_utf8_lossy(&bytes)));
        self.end += line.len() as u64;
        self.lines.push_back(line);
        while self.end - self.begin > KEPT && self.lines.len() > 1 {
            if let Some(oldest) = self.lines.pop_front() {
                self.begin += oldest.len() as u64;
            }
        }
    }

    /// The text from `cursor` on, at most `max` bytes of it, cut where a line ends; of a line longer than
    /// that, a part. After the whole lines comes the one that has not ended, a prompt for example, as far
    /// as it can be shown; the next read shows it again.
    pub(super) fn read(&self, cursor: u64, max: usize) -> Part {
        let from = cursor.clamp(self.begin, self.end);
        let mut text = String::new();
        let mut at = self.begin;
        for line in &self.lines {
            let next = at + line.len() as u64;
            if next > from {
                // A cursor in a line is one that a cut left there: lines are masked, so no cut opens one.
                let rest =
                    &line[ceil(line, usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX))..];
                let room = max - text.len();
                if rest.len() > room {
                    if text.is_empty() {
                        text.push_str(&rest[..floor(rest, room)]);
                    }
                    break;
                }
                text.push_str(rest);
            }
            at = next;
        }
        let next_cursor = from + text.len() as u64;
        if next_cursor == self.end {
            text.push_str(&self.prompt(max - text.len()));
        }
        Part { text, next_cursor, lost_bytes: from.saturating_sub(cursor) }
    }

    /// Where the last `max` bytes begin.
    pub(super) fn last(&self, max: usize) -> u64 {
        let mut at = self.end;
        for line in self.lines.iter().rev() {
            if self.end - at + line.len() as u64 > max as u64 {
                break;
            }
            at -= line.len() as u64;
        }
        at
    }

    /// The open line up to its last word: what could be the beginning of a secret waits for its end.
    fn prompt(&self, room: usize) -> String {
        /// Longer than the last word of any prompt, shorter than any secret worth the name.
        const WORD: usize = 12;
        let text = String::from_utf8_lossy(&self.open);
        let text = clean(&text);
        let word = text.rfind(|character: char| character.is_whitespace() || "?:>#$%)]".contains(character));
        let shown = match word {
            Some(at) if text.len() - at > WORD => &text[..floor(&text, at + 1)],
            None if text.len() > WORD => "",
            _ => &text,
        };
        let mut shown = self.redactor.clone().line(shown);
        shown.truncate(floor(&shown, room));
        shown
    }
}

fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

fn ceil(text: &str, index: usize) -> usize {
    (index.min(text.len())..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{Options, Redactor};

    fn transcript() -> Transcript {
        Transcript::new(Redactor::new(Options::default()).unwrap().lines())
    }

    fn token() -> String {
        format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5")
    }

    #[test]
    fn a_token_is_masked_however_it_is_printed_and_wherever_reading_begins() {
        let token = token();
        for cut in 0..token.len() {
            let mut transcript = transcript();
            transcript.push(format!("key {}", &token[..cut]).as_bytes());
            let early = transcript.read(0, 1000).text;
            transcript.push(format!("{}\nend\n", &token[cut..]).as_bytes());
            for cursor in 0..60 {
                let late = transcript.read(cursor, 1000).text;
                for seen in [&early, &late] {
                    assert!(
                        !(0..token.len() - 12).any(|at| seen.contains(&token[at..at + 12])),
                        "{cut} {cursor}: {seen}"
                    );
                }
            }
        }
    }

    #[test]
    fn reading_on_from_each_cursor_gives_every_line_once() {
        let mut transcript = transcript();
        let text: String = (0..1000).map(|line| format!("line {line} ä\n")).collect();
        transcript.push(text.as_bytes());
        let (mut cursor, mut all) = (0, String::new());
        loop {
            let part = transcript.read(cursor, 1000);
            assert!(part.text.len() <= 1000);
            if part.text.is_empty() {
                break;
            }
            all.push_str(&part.text);
            cursor = part.next_cursor;
        }
        assert_eq!(all, text);
    }

    #[test]
    fn a_prompt_is_seen_before_its_line_ends_and_again_with_it() {
        let mut transcript = transcript();
        transcript.push(b"hello\nName? ");
        let part = transcript.read(0, 1000);
        assert_eq!((part.text.as_str(), part.next_cursor), ("hello\nName? ", 6));
        transcript.push(b"Ada\n");
        assert_eq!(transcript.read(6, 1000).text, "Name? Ada\n");
    }

    #[test]
    fn old_lines_go_and_are_counted() {
        let mut transcript = transcript();
        for _ in 0..3000 {
            transcript.push(format!("{}\n", "x".repeat(999)).as_bytes());
        }
        let part = transcript.read(0, 10_000);
        assert!(part.lost_bytes >= 1_900_000, "{}", part.lost_bytes);
        assert_eq!(part.lost_bytes + 10_000, part.next_cursor);
        assert_eq!(transcript.last(5_000), 3_000_000 - 5_000);
    }

    #[test]
    fn colours_are_gone_and_a_progress_bar_is_its_last_state() {
        let mut transcript = transcript();
        transcript.push(b"\x1b[31mred\x1b[0m\n 1%\r50%\r99%\n");
        assert_eq!(transcript.read(0, 1000).text, "red\n99%\n");
    }

    #[test]
    fn a_line_without_end_is_given_out_in_parts() {
        let mut transcript = transcript();
        transcript.push(&b"y".repeat(200_000));
        let part = transcript.read(0, 1000);
        assert_eq!((part.text.len(), part.next_cursor), (1000, 1000));
    }
}
