//! [`OutputMask`]: the output of a process without the secrets in it.

use redaction::{LineRedactor, Redactor};

/// The size at which a line is passed on before it has ended.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Masks the output of one stream. A line is masked as a whole, and passed on when it ends or when the stream is quiet, as
/// after a prompt.
#[derive(Debug)]
pub(crate) struct OutputMask {
    lines: LineRedactor,
    partial: Vec<u8>,
}

impl OutputMask {
    pub(crate) fn new(redactor: &Redactor) -> Self {
        Self { lines: redactor.lines(), partial: Vec::new() }
    }

    /// Returns true if a part of a line waits.
    pub(crate) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Takes bytes, and returns what can be passed on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.partial.extend_from_slice(bytes);
        let mut masked = Vec::new();
        let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.partial.split_off(whole);
        let lines = std::mem::replace(&mut self.partial, rest);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            masked.extend(self.line(line));
        }
        if self.partial.len() >= MAX_LINE_BYTES {
            masked.extend(self.flush());
        }
        masked
    }

    /// Returns the part of a line that waits.
    pub(crate) fn flush(&mut self) -> Vec<u8> {
        let partial = std::mem::take(&mut self.partial);
        if partial.is_empty() { partial } else { self.line(&partial) }
    }

    /// Masks a line. One without a secret stays as it is, also where it is no text.
    fn line(&mut self, line: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(line);
        let masked = self.lines.line(&text);
        if masked == text { line.to_vec() } else { masked.into_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_masked_where_it_comes_in_pieces_and_bytes_stay_bytes() {
        let redactor = Redactor::new(Default::default()).unwrap();
        let mut mask = OutputMask::new(&redactor);
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let (first, second) = token.split_at(10);
        assert_eq!(mask.push(first.as_bytes()), b"");
        let masked = String::from_utf8(mask.push(format!("{second}\nrest").as_bytes())).unwrap();
        assert!(masked.contains("redacted") && !masked.contains(first), "{masked}");
        assert!(mask.has_partial());
        assert_eq!(mask.flush(), b"rest");
        assert_eq!(mask.push(b"\xff\xfe\x00\n"), b"\xff\xfe\x00\n");
        assert_eq!(mask.push(&vec![b'.'; MAX_LINE_BYTES]).len(), MAX_LINE_BYTES);
    }
}
