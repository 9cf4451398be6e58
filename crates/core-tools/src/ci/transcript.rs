//! The transcript of a command: complete lines, masked once and never cut open again.

use crate::redact::LineRedactor;
use process_runner::clean;
use std::collections::VecDeque;

/// The end of what a command has printed, as text. Positions count the bytes of that text from its start.
///
/// Lines are masked when they are complete and before they are stored, so no cursor can open a masked secret.
#[derive(Debug)]
pub(super) struct Transcript {
    redactor: LineRedactor,
    /// Complete lines, masked.
    lines: VecDeque<String>,
    /// The position of the first of `lines`.
    start: u64,
    /// The position after the last of `lines`.
    end: u64,
    /// The line that has not ended yet, as it was printed.
    open_line: Vec<u8>,
}

/// A part of a transcript.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TranscriptPart {
    pub(super) text: String,
    pub(super) next_cursor: u64,
    pub(super) lost_bytes: u64,
}

/// The length of a transcript, in bytes; older lines are dropped.
const MAX_TRANSCRIPT_BYTES: u64 = 1 << 20;
/// The length at which a line without an end counts as complete, in bytes: memory stays bounded.
const MAX_LINE_BYTES: usize = 64 * 1024;

impl Transcript {
    pub(super) fn new(redactor: LineRedactor) -> Self {
        Self { redactor, lines: VecDeque::new(), start: 0, end: 0, open_line: Vec::new() }
    }

    /// Creates the transcript of a text that is masked already, however long it is.
    pub(super) fn of_masked(redactor: LineRedactor, text: &str) -> Self {
        let lines = text.split_inclusive('\n').map(str::to_owned).collect();
        Self { lines, end: text.len() as u64, ..Self::new(redactor) }
    }

    /// Adds output, cut anywhere.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open_line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.open_line.len() >= MAX_LINE_BYTES {
                self.complete_line();
            }
        }
    }

    /// Ends the transcript: what was printed last is a line, even without a line end.
    pub(super) fn finish(&mut self) {
        if !self.open_line.is_empty() {
            self.complete_line();
        }
    }

    fn complete_line(&mut self) {
        let bytes = std::mem::take(&mut self.open_line);
        let line = self.redactor.line(&clean(&String::from_utf8_lossy(&bytes)));
        self.end += line.len() as u64;
        self.lines.push_back(line);
        // The last line always stays, so that even a line longer than the transcript can be read.
        while self.end - self.start > MAX_TRANSCRIPT_BYTES && self.lines.len() > 1 {
            if let Some(oldest) = self.lines.pop_front() {
                self.start += oldest.len() as u64;
            }
        }
    }

    /// Returns the text from `cursor` on, at most `max_bytes` of it, cut where a line ends; of a line longer
    /// than that, a part.
    ///
    /// After the complete lines comes the open one, a prompt for example, as far as it can be shown. The cursor
    /// does not count it, so the next read from there shows it again.
    pub(super) fn read(&self, cursor: u64, max_bytes: usize) -> TranscriptPart {
        let mut part = self.read_lines(cursor, max_bytes);
        if part.next_cursor == self.end {
            let room = max_bytes - part.text.len();
            part.text.push_str(&self.open_line_text(room));
        }
        part
    }

    /// Returns the complete lines from `cursor` on, as [`read`](Self::read) does.
    pub(super) fn read_lines(&self, cursor: u64, max_bytes: usize) -> TranscriptPart {
        let from = cursor.clamp(self.start, self.end);
        let mut text = String::new();
        let mut position = self.start;
        for line in &self.lines {
            let next = position + line.len() as u64;
            if next > from {
                // A cursor within a line is one that a cut left there: lines are masked, so no cut opens one.
                let skipped = usize::try_from(from.saturating_sub(position)).unwrap_or(usize::MAX);
                // The cursor is a number of the caller, which may point into a character.
                let rest = &line[line.ceil_char_boundary(skipped)..];
                let room = max_bytes - text.len();
                if rest.len() > room {
                    if text.is_empty() {
                        text.push_str(&rest[..rest.floor_char_boundary(room)]);
                    }
                    break;
                }
                text.push_str(rest);
            }
            position = next;
        }
        let next_cursor = from + text.len() as u64;
        TranscriptPart { text, next_cursor, lost_bytes: from.saturating_sub(cursor) }
    }

    /// Returns the position after the last complete line.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns true if an open line can be shown.
    pub(super) fn has_open_line(&self) -> bool {
        !self.open_line_text(1).is_empty()
    }

    /// Returns true if `text` stands in a line that has come since `position`, or in the open one.
    pub(super) fn contains_since(&self, position: u64, text: &str) -> bool {
        let mut line_end = self.end;
        for line in self.lines.iter().rev() {
            // Older lines were searched by an earlier call already.
            if line_end <= position {
                break;
            }
            if line.contains(text) {
                return true;
            }
            line_end -= line.len() as u64;
        }
        self.open_line_text(MAX_LINE_BYTES).contains(text)
    }

    /// Returns the position where the last `max_bytes` begin, at the start of a line.
    pub(super) fn start_of_last(&self, max_bytes: usize) -> u64 {
        let mut position = self.end;
        for line in self.lines.iter().rev() {
            if self.end - position + line.len() as u64 > max_bytes as u64 {
                break;
            }
            position -= line.len() as u64;
        }
        position
    }

    /// Returns the open line up to its last word: what could be the beginning of a secret waits for its end.
    fn open_line_text(&self, max_bytes: usize) -> String {
        /// Longer than the last word of any prompt, shorter than any secret worth the name.
        const MAX_OPEN_WORD_BYTES: usize = 12;
        let text = String::from_utf8_lossy(&self.open_line);
        let text = clean(&text);
        let word_end =
            text.rfind(|character: char| character.is_whitespace() || "?:>#$%)]".contains(character));
        let shown = self.without_beginning_of_secret(match word_end {
            Some(end) if text.len() - end > MAX_OPEN_WORD_BYTES => &text[..text.floor_char_boundary(end + 1)],
            None if text.len() > MAX_OPEN_WORD_BYTES => "",
            _ => &text,
        });
        // A copy of the redactor: it remembers open keys, and this line is not complete.
        let mut shown = self.redactor.clone().line(shown);
        shown.truncate(shown.floor_char_boundary(max_bytes));
        shown
    }

    /// Returns `text` up to the place from which on it would be a secret if more characters followed.
    fn without_beginning_of_secret<'a>(&self, text: &'a str) -> &'a str {
        /// Characters as a secret has them: enough for every form that has no fixed length.
        const CONTINUATION: &str = "x7Kq9Zr2Wm5Tb8Np4Vc6Ld3Hs1Gf0Jy7Qw2Re9";
        let continued = format!("{text}{CONTINUATION}");
        let reaches_end = |span: &std::ops::Range<usize>| span.end > text.len() && span.start < text.len();
        match self.redactor.spans(&continued).into_iter().find(reaches_end) {
            Some(span) => &text[..text.floor_char_boundary(span.start)],
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::{RedactionOptions, Redactor};

    fn transcript() -> Transcript {
        Transcript::new(Redactor::new(RedactionOptions::default()).unwrap().lines())
    }

    fn token() -> String {
        format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5")
    }

    #[test]
    fn an_open_line_shows_no_beginning_of_a_secret() {
        for (before, secret) in [
            ("key ", token()),
            ("password=", "hunter2secret".to_owned()),
            ("password: ", "Tr0ub#dor9".to_owned()),
            ("{\"password\": \"", "hunter2secret".to_owned()),
            ("curl -u alice:", "h2s3cret".to_owned()),
        ] {
            for cut in 0..=secret.len() {
                let mut transcript = transcript();
                transcript.push(format!("{before}{}", &secret[..cut]).as_bytes());
                let seen = transcript.read(0, 1000).text;
                assert!(cut < 4 || !seen.contains(&secret[..4]), "{before}{}: {seen}", &secret[..cut]);
            }
        }
        // What a program asks is shown while it waits for the answer.
        for prompt in ["Continue? [y/n] ", "Downloading 45", "Password: ", "name>", "42%"] {
            let mut transcript = transcript();
            transcript.push(prompt.as_bytes());
            assert_eq!(transcript.read(0, 1000).text, prompt);
        }
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
        assert_eq!(transcript.start_of_last(5_000), 3_000_000 - 5_000);
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
