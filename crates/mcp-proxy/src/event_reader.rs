//! Server-sent events, by the event and not by the line (WHATWG HTML §9.2.6).

use std::io::{self, Read};

/// Reads the data of one event after another.
#[derive(Debug)]
pub(super) struct EventReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// The offset of the first byte of the buffer that is not read yet.
    at: usize,
    /// The most bytes that one event may have.
    limit: usize,
    /// True if the last line ended with a carriage return, whose line feed may still come.
    after_return: bool,
}

impl<R: Read> EventReader<R> {
    /// Reads `source`; an event of more than `limit` bytes is an error.
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: Vec::new(), at: 0, limit, after_return: false }
    }

    /// Returns the data of the next event that is a message, or `None` at the end. A last event without its blank line
    /// is dropped, as the specification demands.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut data, mut has_data, mut is_message) = (Vec::new(), false, true);
        let mut event_bytes = 0;
        while let Some(line) = self.next_line()? {
            // Every line counts, so that an event of nothing but comments is bounded too.
            event_bytes += line.len();
            if event_bytes > self.limit {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "an event is too long"));
            }
            if line.is_empty() {
                if has_data && is_message {
                    return Ok(Some(data));
                }
                (data, has_data, is_message, event_bytes) = (Vec::new(), false, true, 0);
                continue;
            }
            let (field, value) = match line.iter().position(|byte| *byte == b':') {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => (&line[..], &[][..]),
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" => {
                    if has_data {
                        data.push(b'\n');
                    }
                    data.extend_from_slice(value);
                    has_data = true;
                }
                // `message` is the type of an event that names none. MCP sends no messages under another one.
                b"event" => is_message = value.is_empty() || value == b"message",
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the next line, which ends with LF, CR or both.
    fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            if self.at == self.buffer.len() && !self.fill()? {
                return Ok(None);
            }
            if std::mem::take(&mut self.after_return) && self.buffer[self.at] == b'\n' {
                self.at += 1;
                continue;
            }
            let rest = &self.buffer[self.at..];
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            if line.len() > self.limit {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a line is too long"));
            }
            match end {
                Some(end) => {
                    self.after_return = rest[end] == b'\r';
                    self.at += end + 1;
                    return Ok(Some(line));
                }
                None => self.at = self.buffer.len(),
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.resize(16 * 1024, 0);
        self.at = 0;
        let read = loop {
            match self.source.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.buffer.truncate(read);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct SlowReader<'a>(&'a [u8]);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            buffer[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn events(text: &str) -> Vec<String> {
        let mut events = EventReader::new(SlowReader(text.as_bytes()), 1000);
        let mut found = Vec::new();
        while let Some(data) = events.next().unwrap() {
            found.push(String::from_utf8(data).unwrap());
        }
        found
    }

    #[test]
    fn an_event_is_what_stands_before_a_blank_line_however_lines_end() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ": hello\nevent: message\ndata: {\"a\":\ndata:1}\nid: 5\n\nevent: other\ndata: no\n\ndata\n\nretry: 3\n\ndata: x\n\ndata: cut";
            assert_eq!(events(&text.replace('\n', end)), ["{\"a\":\n1}", "", "x"], "{end:?}");
        }
        assert_eq!(events("data: a\r\n\ndata: b\r\r"), ["a", "b"]);
    }

    #[test]
    fn an_event_that_does_not_end_is_an_error() {
        let mut events = EventReader::new(io::repeat(b'x'), 1000);
        assert!(events.next().is_err());
        let many = "data: 0123456789\n".repeat(100);
        assert!(EventReader::new(many.as_bytes(), 1000).next().is_err());
    }
}
