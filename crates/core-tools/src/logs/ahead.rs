//! A file that is read backward, the next chunk on a thread of its own while the last one is looked at.

use super::forward::Bounds;
use super::source::ReadAt;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Files below this are read before a thread has started.
const WORTH_A_THREAD: u64 = 4 << 20;
const CHUNK: usize = Bounds::DEFAULT.chunk;

/// A file, and the chunk that is being read.
pub(super) struct Ahead<'a> {
    file: &'a File,
    thread: RefCell<Option<Thread>>,
}

struct Thread {
    /// Where to read a chunk from, and what into.
    ask: SyncSender<(u64, Vec<u8>)>,
    given: Receiver<(Vec<u8>, io::Result<()>)>,
    /// Where the chunk begins that was asked for and not yet taken.
    asked: Option<u64>,
}

impl Ahead<'_> {
    /// Does `work` with `file`, which is read from `end` back.
    pub(super) fn reading<T>(file: &File, end: u64, work: impl FnOnce(&Ahead<'_>) -> T) -> T {
        if end < WORTH_A_THREAD {
            return work(&Ahead { file, thread: RefCell::default() });
        }
        std::thread::scope(|scope| {
            let (ask, asked) = sync_channel::<(u64, Vec<u8>)>(1);
            let (give, given) = sync_channel(1);
            let read = move || {
                for (offset, mut buffer) in asked {
                    let done = file.fill(&mut buffer, offset, CHUNK);
                    if give.send((buffer, done)).is_err() {
                        break;
                    }
                }
            };
            let started = std::thread::Builder::new().name("logs".to_owned()).spawn_scoped(scope, read);
            // Without one it is only slower.
            let thread = started.is_ok().then_some(Thread { ask, given, asked: None });
            work(&Ahead { file, thread: RefCell::new(thread) })
        })
    }
}

impl ReadAt for Ahead<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn fill(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> io::Result<()> {
        let mut thread = self.thread.borrow_mut();
        let Some(thread) = thread.as_mut() else { return self.file.fill(buffer, offset, length) };
        let was_asked = thread.asked.take();
        let mut chunk = Vec::new();
        let mut done = None;
        if was_asked.is_some()
            && let Ok((bytes, read)) = thread.given.recv()
        {
            chunk = bytes;
            if was_asked == Some(offset) && length == CHUNK {
                std::mem::swap(buffer, &mut chunk);
                done = Some(read);
            }
        }
        done.unwrap_or_else(|| self.file.fill(buffer, offset, length))?;
        if let Some(below) = offset.checked_sub(CHUNK as u64)
            && thread.ask.send((below, chunk)).is_ok()
        {
            thread.asked = Some(below);
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
        let row = (0..end / CHUNK as u64).rev().map(|chunk| (chunk * CHUNK as u64, CHUNK));
        let others = [(0, 10), (CHUNK as u64, CHUNK), (0, CHUNK), (77, 3 * CHUNK), (end - 5, 5), (0, CHUNK)];
        Ahead::reading(&file, end, |ahead| {
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
        Ahead::reading(&file, 12 << 20, |ahead| {
            let mut buffer = Vec::new();
            ahead.fill(&mut buffer, 10 << 20, CHUNK).unwrap();
            file.set_len(1 << 20).unwrap();
            // One chunk was read before, perhaps.
            let results =
                [8 << 20, (8 << 20) - CHUNK as u64].map(|offset| ahead.fill(&mut buffer, offset, CHUNK));
            assert!(results[1].is_err());
        });
    }
}
