//! Puts together an entry that a container's runtime cut, where lines of the other stream stand between its pieces.

use super::container;
use super::forward::{EntrySpan, ForwardReader, ReadLimits};
use super::preceding::read_preceding;
use super::read_at::{RangeReader, ReadAt};
use std::io;

/// Returns the lines of the entry with `span` if `bytes`, which stand there, are not exactly these: the rest of a line
/// that was cut stands behind, or the rest of another entry's line between.
///
/// # Errors
/// The source cannot be read.
pub(super) fn entry_bytes<S: ReadAt + ?Sized>(
    source: &S,
    span: &EntrySpan,
    bytes: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    if !is_interleaved(bytes) {
        return Ok(None);
    }
    let limits = ReadLimits { chunk_bytes: 64 << 10, ..ReadLimits::DEFAULT };
    let preceding = read_preceding(source, span.start, span.start, limits)?;
    let input = RangeReader { source, offset: span.start, end: u64::MAX };
    let mut reader = ForwardReader::new(input, span.start, 0, limits).after(preceding);
    Ok(reader.next()?.map(|entry| entry.bytes))
}

/// Returns whether a piece of the other stream stands among the lines of an entry, or the rest of a cut line does not.
fn is_interleaved(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(first) = lines.next().and_then(container::open) else { return false };
    let mut partial = first.piece.partial;
    for piece in lines.filter_map(container::open).map(|line| line.piece) {
        if piece.stderr != first.piece.stderr {
            return true;
        }
        partial = piece.partial;
    }
    partial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pieces_of_both_streams_or_a_missing_rest_are_put_together_anew() {
        let line = |stream: &str, tag: &str| format!("2026-11-20T10:00:00Z {stream} {tag} x\n");
        for (lines, expected) in [
            (vec![line("stdout", "F")], false),
            (vec![line("stdout", "P"), line("stdout", "F")], false),
            (vec![line("stdout", "P")], true),
            (vec![line("stdout", "P"), line("stderr", "F"), line("stdout", "F")], true),
            (vec!["2026-11-20 10:00:00 INFO x\n".to_owned()], false),
        ] {
            assert_eq!(is_interleaved(lines.concat().as_bytes()), expected, "{lines:?}");
        }
    }
}
