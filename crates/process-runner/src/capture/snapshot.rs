//! Reads a stream by position.

use crate::lossy_text;

/// A part of a stream, for a reader that comes back for the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputSnapshot {
    /// The requested bytes that are still kept. The last character is never cut in two, unless the stream itself ends
    /// within a character.
    pub bytes: Vec<u8>,
    /// The position after `bytes`, from which the next snapshot continues.
    pub next_cursor: u64,
    /// The dropped bytes between the requested position and `bytes`.
    pub lost_bytes: u64,
}

/// Reads at most `max` bytes from position `cursor`. The stream is the first piece, a gap of `left_out` bytes, and the
/// other two pieces.
pub(super) fn snapshot(
    pieces: [&[u8]; 3],
    left_out: u64,
    cursor: u64,
    max: usize,
    ended: bool,
) -> OutputSnapshot {
    let [head, middle, end] = pieces;
    let head_end = head.len() as u64;
    let tail_start = head_end + left_out;
    let total = tail_start + (middle.len() + end.len()) as u64;
    let cursor = cursor.min(total);
    // From the end of the head on the tail is next: an empty read there would make a reader ask again for ever.
    let in_head = cursor < head_end;
    let mut start = if in_head || left_out == 0 { cursor } else { cursor.max(tail_start) };
    // Room for one character, or a reader with a smaller `max` would never get past it.
    let max = max.max(4);
    let mut bytes = Vec::new();
    let mut position = start;
    let mut read = |piece: &[u8], piece_start: u64| {
        // Pieces are contiguous but for the gap, and `position` never reaches across that.
        if position < piece_start || position > piece_start + piece.len() as u64 {
            return;
        }
        let offset = usize::try_from(position - piece_start).unwrap_or(piece.len());
        let length = (piece.len() - offset).min(max - bytes.len());
        bytes.extend_from_slice(&piece[offset..offset + length]);
        position += length as u64;
    };
    read(head, 0);
    read(middle, tail_start);
    read(end, tail_start + middle.len() as u64);
    if start > cursor {
        // The rest of a character that began in the gap is lost too.
        let orphans = lossy_text::orphaned_prefix(&bytes);
        bytes.drain(..orphans);
        start += orphans as u64;
    }
    // A character that goes on after this part is left for the next one, unless nothing can follow here.
    let at_edge = left_out > 0 && position == head_end || ended && position == total;
    if !at_edge {
        let cut = lossy_text::unfinished_suffix(&bytes);
        bytes.truncate(bytes.len() - cut);
        position -= cut as u64;
    }
    OutputSnapshot { bytes, next_cursor: position, lost_bytes: start - cursor }
}
