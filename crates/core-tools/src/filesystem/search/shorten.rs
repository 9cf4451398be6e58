//! Shortens long lines around their match.

/// The most bytes of a line that are shown. Minified files have lines of megabytes.
pub(super) const MAX_LINE_BYTES: usize = 500;
/// The farthest that a cut moves so that it does not go through a word.
const MAX_WORD_BYTES: usize = 100;

/// Returns a line without its terminator; of a long one, the part around byte `match_start`.
///
/// Cuts do not go through a word: secrets are masked when the answer is complete, and half a secret is not
/// recognized.
pub(super) fn shorten_line(line: &[u8], match_start: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= MAX_LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    // A quarter of what is shown stands before the match.
    let from = match match_start.saturating_sub(MAX_LINE_BYTES / 4) {
        0 => 0,
        from => {
            let from = from.min(line.len() - MAX_LINE_BYTES);
            from + word_bytes(line[from..].iter())
        }
    };
    let to = (from + MAX_LINE_BYTES).min(line.len());
    let to = if to == line.len() { to } else { to - word_bytes(line[from..to].iter().rev()) };
    let before = if from > 0 { "… " } else { "" };
    let after = if to < line.len() { " …" } else { "" };
    let text = String::from_utf8_lossy(&line[from..to]);
    // A cut through a character leaves U+FFFD at the ends.
    format!("{before}{}{after} [line of {} bytes]", text.trim_matches('\u{fffd}').trim(), line.len())
}

/// Returns the number of bytes up to the first that belongs to no word; 0 if the word is too long to leave out.
fn word_bytes<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    // The alphabets of Base64, paths and identifiers, and every byte of a multi-byte character.
    let is_word = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.' | b'=' | 0x80..)
    };
    let length = bytes.take(MAX_WORD_BYTES).take_while(|byte| is_word(byte)).count();
    if length == MAX_WORD_BYTES { 0 } else { length }
}
