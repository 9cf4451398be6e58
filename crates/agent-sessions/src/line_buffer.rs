//! Joins bytes that come in pieces to whole lines.

use memchr::memchr_iter;

/// The length at which a line is taken for whole although it has no end.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A buffer that joins pieces of output to whole lines, and removes what only a terminal needs.
#[derive(Debug, Default)]
pub(crate) struct SessionLineBuffer {
    /// The line that has no end yet.
    partial_line: Vec<u8>,
}

impl SessionLineBuffer {
    /// Adds bytes, and returns the lines that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut from = 0;
        for end in memchr_iter(b'\n', bytes) {
            self.partial_line.extend_from_slice(&bytes[from..end]);
            lines.extend(self.finish());
            from = end + 1;
        }
        self.partial_line.extend_from_slice(&bytes[from..]);
        // A program may print megabytes without a break, such as a progress bar. They must not pile up here.
        if self.partial_line.len() >= MAX_LINE_BYTES {
            lines.extend(self.finish());
        }
        lines
    }

    /// Returns the line that has no end yet: nothing more comes.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if self.partial_line.is_empty() {
            return None;
        }
        // Output is not always UTF-8, and a log with a few replacement characters is better than none.
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial_line)).into_owned();
        Some(process_runner::clean(line.trim_end_matches('\r')).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_cut_anywhere_is_joined_to_lines() {
        let text = "one\ntwo\r\n\u{1b}[31mthree\u{1b}[0m\nä four";
        for cut in 1..text.len() {
            let mut lines = SessionLineBuffer::default();
            let mut seen = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                seen.extend(lines.push(piece));
            }
            seen.extend(lines.finish());
            assert_eq!(seen, ["one", "two", "three", "ä four"], "{cut}");
        }
        let mut lines = SessionLineBuffer::default();
        assert_eq!(lines.push(&vec![b'x'; 200_000]).len(), 1);
    }
}
