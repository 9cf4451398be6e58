//! Pieces of text that several formats have.

/// Appends a line to a message, which stays bounded.
pub(super) fn append_line(message: &mut String, line: &str) {
    const MAX_BYTES: usize = 64 << 10;
    if message.len() < MAX_BYTES {
        if !message.is_empty() {
            message.push('\n');
        }
        message.push_str(&line[..line.floor_char_boundary(MAX_BYTES)]);
    }
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailureLocation {
    pub(super) file: String,
    pub(super) line: u64,
}

impl FailureLocation {
    /// Reads `FILE:LINE` at the beginning of `text`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (file, line) = (parts.next()?, parts.next()?);
        let line = line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        (!file.is_empty()).then(|| Self { file: file.to_owned(), line })
    }
}
