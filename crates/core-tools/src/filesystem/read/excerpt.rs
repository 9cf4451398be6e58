//! Lines taken from a file, and the notes that say what they leave out.

use super::request::{ReadLineSelection, TextFile};

/// The UTF-8 byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Consecutive lines of a file.
#[derive(Debug, Default)]
pub(super) struct FileExcerpt {
    pub(super) bytes: Vec<u8>,
    /// The number of the first line, from 1, if it is known.
    pub(super) first: Option<u64>,
    /// The number of lines in `bytes`.
    pub(super) lines: u64,
    /// The number of lines in the whole file, if it was counted.
    pub(super) total: Option<u64>,
    /// True if one line alone is longer than the bound, and only a part of it is given.
    pub(super) line_is_cut: bool,
    /// True if more lines were asked for than fit the bound.
    pub(super) bound_reached: bool,
}

impl FileExcerpt {
    /// Turns the lines into text, with notes for everything that a reader could otherwise not know.
    pub(super) fn into_text_file(
        mut self,
        path: String,
        size: u64,
        selection: ReadLineSelection,
        max_bytes: usize,
    ) -> TextFile {
        let mut notes = Vec::new();
        if self.first == Some(1) && self.bytes.starts_with(BYTE_ORDER_MARK) {
            self.bytes.drain(..BYTE_ORDER_MARK.len());
            notes.push("the file begins with a UTF-8 byte order mark".to_owned());
        }
        let text = match String::from_utf8(std::mem::take(&mut self.bytes)) {
            Ok(text) => text,
            Err(error) => {
                notes.push("not valid UTF-8: bytes that are not are shown as U+FFFD".to_owned());
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        match (selection, self.first) {
            (ReadLineSelection::From { .. }, Some(first)) => {
                self.note_continuation(first, max_bytes, &mut notes);
            }
            (ReadLineSelection::Last(_), _) => self.note_missing_start(max_bytes, &mut notes),
            (ReadLineSelection::From { .. }, None) => {}
        }
        TextFile {
            path,
            text,
            first_line: self.first,
            lines: self.lines,
            total_lines: self.total,
            size,
            notes,
            line_numbers: false,
        }
    }

    fn note_continuation(&self, first: u64, max_bytes: usize, notes: &mut Vec<String>) {
        if self.line_is_cut {
            notes.push(format!("line {first} is longer than {max_bytes} bytes: only its start is given"));
        }
        let next = first + self.lines;
        // Where the file was not counted to its end, there is more.
        if self.total.is_none_or(|total| next <= total) {
            let reason =
                if self.bound_reached { format!("cut at {max_bytes} bytes; ") } else { String::new() };
            notes.push(format!("{reason}continue with offset={next}"));
        }
    }

    fn note_missing_start(&self, max_bytes: usize, notes: &mut Vec<String>) {
        if self.line_is_cut {
            notes.push(format!("the last line is longer than {max_bytes} bytes: only its end is given"));
        } else if self.bound_reached {
            notes.push(format!("cut at {max_bytes} bytes: only the last {} lines are given", self.lines));
        }
    }
}
