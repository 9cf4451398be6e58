//! The buffer for the bytes of a stream that are kept.

use super::snapshot::{OutputSnapshot, snapshot};

/// The first and the last bytes of a stream in one buffer: a head that never changes, then a ring.
#[derive(Debug)]
pub(super) struct HeadTailBuffer {
    pub(super) buffer: Vec<u8>,
    /// The most bytes of the buffer.
    pub(super) capacity: usize,
    /// The most bytes of the head. The ring follows it.
    head_capacity: usize,
    /// The position of the oldest byte in the ring. 0 until the buffer is full.
    oldest: usize,
    /// The bytes of the stream so far, kept or not.
    pub(super) total: u64,
}

impl HeadTailBuffer {
    /// Returns an empty buffer for at most `capacity` bytes: a quarter for the head, where a program says what it is
    /// about to do, and the rest for the tail, where a failing program says why.
    pub(super) fn new(capacity: usize) -> Self {
        Self { buffer: Vec::new(), capacity, head_capacity: capacity / 4, oldest: 0, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (fits, mut rest) = bytes.split_at(bytes.len().min(self.capacity - self.buffer.len()));
        if !fits.is_empty() {
            self.grow_for(fits.len());
            self.buffer.extend_from_slice(fits);
        }
        if rest.is_empty() {
            return;
        }
        // Something did not fit, so the buffer has its full size and the ring behind the head is full.
        let ring = &mut self.buffer[self.head_capacity..];
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

    /// Doubles the buffer when it must grow, but not beyond its capacity.
    // `Vec` itself would double beyond it.
    fn grow_for(&mut self, added_bytes: usize) {
        let needed = self.buffer.len() + added_bytes;
        if needed > self.buffer.capacity() {
            let capacity = needed.max(self.buffer.capacity().saturating_mul(2)).min(self.capacity);
            self.buffer.reserve_exact(capacity - self.buffer.len());
        }
    }

    /// Returns the kept bytes in the order of the stream, and how many of them are the head: all of them if nothing was
    /// left out. It moves them in place.
    pub(super) fn into_linear(mut self) -> (Vec<u8>, usize) {
        if self.total == self.buffer.len() as u64 {
            let length = self.buffer.len();
            return (self.buffer, length);
        }
        self.buffer[self.head_capacity..].rotate_left(self.oldest);
        (self.buffer, self.head_capacity)
    }

    /// Reads at most `max` bytes from position `cursor` on. `ended` says that no more will come.
    pub(super) fn snapshot(&self, cursor: u64, max: usize, ended: bool) -> OutputSnapshot {
        let left_out = self.total - self.buffer.len() as u64;
        let (head, newest, oldest) = if left_out == 0 {
            (&self.buffer[..], &[][..], &[][..])
        } else {
            let (head, ring) = self.buffer.split_at(self.head_capacity);
            let (newest, oldest) = ring.split_at(self.oldest);
            (head, newest, oldest)
        };
        snapshot([head, oldest, newest], left_out, cursor, max, ended)
    }
}
