//! The bytes of a stream that are kept, and reading them by position.

use crate::text;

/// A part of a stream, for a reader that comes back for more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What was asked for, as far as it is still kept. Never ends within a UTF-8 character, unless the
    /// stream itself does.
    pub bytes: Vec<u8>,
    /// The position to ask for next: that of the first byte after `bytes`.
    pub next_cursor: u64,
    /// Bytes between the position asked for and `bytes` that are not kept any more.
    pub lost_bytes: u64,
}

/// The first and the last bytes of a stream in one buffer: `head_cap` bytes that never change, then a ring.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) buffer: Vec<u8>,
    pub(super) cap: usize,
    head_cap: usize,
    /// Where in the ring the oldest byte stands, counted from `head_cap`. 0 until the buffer is full.
    oldest: usize,
    pub(super) total: u64,
}

impl Kept {
    pub(super) fn new(cap: usize) -> Self {
        Self { buffer: Vec::new(), cap, head_cap: cap / 4, oldest: 0, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (fits, mut rest) = bytes.split_at(bytes.len().min(self.cap - self.buffer.len()));
        if !fits.is_empty() {
            self.grow_for(fits.len());
            self.buffer.extend_from_slice(fits);
        }
        if rest.is_empty() {
            return;
        }
        // Something did not fit, so the buffer is at its cap and the ring behind the head is full.
        let ring = &mut self.buffer[self.head_cap..];
        if ring.is_empty() {
            return;
        }
        if rest.len() >= ring.len() {
            rest = &rest[rest.len() - ring.len()..];
            ring.copy_from_slice(rest);
            self.oldest = 0;
            return;
        }
        let (to_end, wrapped) = rest.split_at(rest.len().min(ring.len() - self.oldest));
        ring[self.oldest..self.oldest + to_end.len()].copy_from_slice(to_end);
        ring[..wrapped.len()].copy_from_slice(wrapped);
        self.oldest = (self.oldest + rest.len()) % ring.len();
    }

    /// Doubles the buffer when it must grow, but never past the cap.
    fn grow_for(&mut self, more: usize) {
        let needed = self.buffer.len() + more;
        if needed > self.buffer.capacity() {
            let capacity = needed.max(self.buffer.capacity().saturating_mul(2)).min(self.cap);
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
    }

    /// The kept bytes in the order of the stream, in place, and how many of them are the head. All of them
    /// if nothing was left out.
    pub(super) fn into_linear(mut self) -> (Vec<u8>, usize) {
        if self.total == self.buffer.len() as u64 {
            let length = self.buffer.len();
            return (self.buffer, length);
        }
        self.buffer[self.head_cap..].rotate_left(self.oldest);
        (self.buffer, self.head_cap)
    }

    pub(super) fn snapshot(&self, cursor: u64, max: usize, ended: bool) -> Snapshot {
        let left_out = self.total - self.buffer.len() as u64;
        let (head, newest, oldest) = if left_out == 0 {
            (&self.buffer[..], &[][..], &[][..])
        } else {
            let (head, ring) = self.buffer.split_at(self.head_cap);
            let (newest, oldest) = ring.split_at(self.oldest);
            (head, newest, oldest)
        };
        snapshot([head, oldest, newest], left_out, cursor, max, ended)
    }
}

/// Reads from `head`, then (after `left_out` bytes) from the two following pieces.
pub(super) fn snapshot(pieces: [&[u8]; 3], left_out: u64, cursor: u64, max: usize, ended: bool) -> Snapshot {
    let [head, middle, end] = pieces;
    let head_end = head.len() as u64;
    let tail_start = head_end + left_out;
    let total = tail_start + (middle.len() + end.len()) as u64;
    let cursor = cursor.min(total);
    // An empty read at the edge of the head would never get further: the tail is next.
    let in_head = cursor < head_end;
    let mut start = if in_head || left_out == 0 { cursor } else { cursor.max(tail_start) };
    let max = max.max(4);
    let mut bytes = Vec::new();
    let mut position = start;
    let mut read = |piece: &[u8], piece_start: u64| {
        // Pieces are contiguous, apart from the gap, over which `position` does not reach.
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
        // After a gap the rest of a character that began in it is lost too.
        let orphans = text::orphaned_prefix(&bytes);
        bytes.drain(..orphans);
        start += orphans as u64;
    }
    // A character that goes on after this part is left for the next, unless nothing more can come there.
    let at_edge = left_out > 0 && position == head_end || ended && position == total;
    if !at_edge {
        let cut = text::unfinished_suffix(&bytes);
        bytes.truncate(bytes.len() - cut);
        position -= cut as u64;
    }
    Snapshot { bytes, next_cursor: position, lost_bytes: start - cursor }
}
