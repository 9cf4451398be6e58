//! [`PrefetchedFile`]: a file that is read backward, with a thread that reads the next chunk while the last one is
//! searched.

use super::forward::LogReadLimits;
use super::read_at::ReadAt;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

// A smaller file is read before a thread has started.
/// The file size from which on a thread reads ahead, in bytes.
const MIN_PREFETCH_BYTES: u64 = 4 << 20;
/// The size of the chunks read ahead. Reads of another size go to the file directly.
const CHUNK_BYTES: usize = LogReadLimits::DEFAULT.chunk_bytes;

/// A file, and the thread that reads its next chunk.
pub(super) struct PrefetchedFile<'a> {
    file: &'a File,
    thread: RefCell<Option<PrefetchThread>>,
}

/// The thread that reads chunks on request.
struct PrefetchThread {
    /// The requests: the offset of a chunk, and the buffer to read it into.
    requests: SyncSender<(u64, Vec<u8>)>,
    /// The chunks that were read.
    chunks: Receiver<(Vec<u8>, io::Result<()>)>,
    /// The offset of the chunk that was requested and not yet received.
    requested: Option<u64>,
}

impl PrefetchedFile<'_> {
    /// Calls `work` with `file`, which `work` reads backward from `end`.
    pub(super) fn with<T>(file: &File, end: u64, work: impl FnOnce(&PrefetchedFile<'_>) -> T) -> T {
        if end < MIN_PREFETCH_BYTES {
            return work(&PrefetchedFile { file, thread: RefCell::default() });
        }
        std::thread::scope(|scope| {
            let (requests, incoming) = sync_channel::<(u64, Vec<u8>)>(1);
            let (chunk_sender, chunks) = sync_channel(1);
            let read = move || {
                for (offset, mut buffer) in incoming {
                    let done = file.fill(&mut buffer, offset, CHUNK_BYTES);
                    if chunk_sender.send((buffer, done)).is_err() {
                        break;
                    }
                }
            };
            let started = std::thread::Builder::new().name("logs".to_owned()).spawn_scoped(scope, read);
            // Without the thread, reading is only slower.
            let thread = started.is_ok().then_some(PrefetchThread { requests, chunks, requested: None });
            work(&PrefetchedFile { file, thread: RefCell::new(thread) })
        })
    }
}

impl ReadAt for PrefetchedFile<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn fill(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> io::Result<()> {
        let mut thread = self.thread.borrow_mut();
        let Some(thread) = thread.as_mut() else { return self.file.fill(buffer, offset, length) };
        let requested = thread.requested.take();
        // The chunk on its way is received even if another one is needed now: the channels hold one each.
        let mut chunk = Vec::new();
        let mut done = None;
        if requested.is_some()
            && let Ok((bytes, read)) = thread.chunks.recv()
        {
            chunk = bytes;
            if requested == Some(offset) && length == CHUNK_BYTES {
                std::mem::swap(buffer, &mut chunk);
                done = Some(read);
            }
        }
        done.unwrap_or_else(|| self.file.fill(buffer, offset, length))?;
        if let Some(previous) = offset.checked_sub(CHUNK_BYTES as u64)
            && thread.requests.send((previous, chunk)).is_ok()
        {
            thread.requested = Some(previous);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn chunks_in_a_row_and_any_others_are_what_the_file_has() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> =
            (0..12 << 20).map(|at: u32| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        file.write_all(&bytes).unwrap();
        let end = bytes.len() as u64;
        let row = (0..end / CHUNK_BYTES as u64).rev().map(|chunk| (chunk * CHUNK_BYTES as u64, CHUNK_BYTES));
        let others = [
            (0, 10),
            (CHUNK_BYTES as u64, CHUNK_BYTES),
            (0, CHUNK_BYTES),
            (77, 3 * CHUNK_BYTES),
            (end - 5, 5),
            (0, CHUNK_BYTES),
        ];
        PrefetchedFile::with(&file, end, |ahead| {
            assert!(ahead.thread.borrow().is_some());
            let mut buffer = Vec::new();
            for (offset, length) in row.chain(others) {
                ahead.fill(&mut buffer, offset, length).unwrap();
                let start = usize::try_from(offset).unwrap();
                assert!(buffer == bytes[start..start + length], "{length} bytes at {offset}");
            }
            assert!(ahead.fill(&mut buffer, end - 5, 6).is_err());
        });
    }

    #[test]
    fn a_file_that_gets_shorter_meanwhile_is_an_error_and_no_zeros() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 12 << 20]).unwrap();
        PrefetchedFile::with(&file, 12 << 20, |ahead| {
            let mut buffer = Vec::new();
            ahead.fill(&mut buffer, 10 << 20, CHUNK_BYTES).unwrap();
            file.set_len(1 << 20).unwrap();
            // One chunk was read before, perhaps.
            let results = [8 << 20, (8 << 20) - CHUNK_BYTES as u64]
                .map(|offset| ahead.fill(&mut buffer, offset, CHUNK_BYTES));
            assert!(results[1].is_err());
        });
    }
}
