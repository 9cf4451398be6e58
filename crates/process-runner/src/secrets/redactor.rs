//! Hides secrets in a stream.

use std::fmt;
use std::sync::Arc;

use super::matcher::{MIN_SECRET_BYTES, SecretMatcher};

/// The text that replaces a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// A redactor of one stream, which finds a secret also where chunks divide it.
///
/// The redactor holds back only bytes that could be the beginning of a secret, until the next chunk decides, so that a
/// prompt is seen at once. The redactor never holds back more bytes than the longest secret has.
#[derive(Clone)]
pub struct StreamRedactor {
    matcher: Option<Arc<SecretMatcher>>,
    /// The end of the stream so far that could be the beginning of a secret.
    held: Vec<u8>,
    /// The number of bytes at the start of `held` that a `[redacted]` already stands for.
    covered: usize,
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamRedactor(..)")
    }
}

impl StreamRedactor {
    pub(super) fn new(matcher: Option<Arc<SecretMatcher>>) -> Self {
        Self { matcher, held: Vec::new(), covered: 0 }
    }

    /// Takes the next chunk, and gives `out` everything that is decided, in order.
    pub fn push(&mut self, chunk: &[u8], mut out: impl FnMut(&[u8])) {
        let Some(matcher) = self.matcher.clone() else { return out(chunk) };
        if self.held.is_empty() {
            // The usual case: nothing is held, so the chunk need not be copied.
            let (keep_from, covered) = redact(&matcher, chunk, 0, &mut out);
            self.held.extend_from_slice(&chunk[keep_from..]);
            self.covered = covered;
            return;
        }
        let mut text = Vec::with_capacity(self.held.len() + chunk.len());
        text.extend_from_slice(&self.held);
        text.extend_from_slice(chunk);
        let (keep_from, covered) = redact(&matcher, &text, self.covered, &mut out);
        self.held.clear();
        self.held.extend_from_slice(&text[keep_from..]);
        self.covered = covered;
    }

    /// Ends the stream, and gives `out` what was held back.
    ///
    /// If the stream ends within a secret, because the program was killed while it wrote, a beginning of 6 bytes or
    /// more is replaced too.
    pub fn finish(&mut self, mut out: impl FnMut(&[u8])) {
        let rest = std::mem::take(&mut self.held);
        let covered = std::mem::take(&mut self.covered);
        let Some(matcher) = &self.matcher else { return };
        let rest = &rest[covered.min(rest.len())..];
        let unfinished = matcher.find_unfinished(rest);
        if rest.len() - unfinished >= MIN_SECRET_BYTES {
            out(&rest[..unfinished]);
            out(REDACTED.as_bytes());
        } else {
            out(rest);
        }
    }
}

/// Gives `out` the beginning of `text` that is decided, with secrets replaced. The first `covered` bytes were given out
/// before as `[redacted]`. Returns where the undecided rest begins, and how much of it is covered.
fn redact(
    matcher: &SecretMatcher,
    text: &[u8],
    covered: usize,
    out: &mut impl FnMut(&[u8]),
) -> (usize, usize) {
    let undecided = matcher.find_unfinished(text);
    let mut shown = covered; // everything before this was given out
    let mut from = 0;
    while let Some((start, end)) = matcher.find(text, from) {
        if start >= undecided {
            break;
        }
        if start >= shown {
            if start > shown {
                out(&text[shown..start]);
            }
            out(REDACTED.as_bytes());
        }
        shown = shown.max(end);
        // Secrets may overlap: the next one may begin within this one.
        from = start + 1;
    }
    if undecided > shown {
        out(&text[shown..undecided]);
        shown = undecided;
    }
    (undecided, shown - undecided)
}

#[cfg(test)]
impl StreamRedactor {
    /// Returns how many bytes are held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }
}
