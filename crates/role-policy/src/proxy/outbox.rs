//! Lines on their way out, in bounded memory. Putting one never waits and makes no system call.
//!
//! Whoever has put a line calls [`Outbox::drain`] once it holds no lock, and where the other side reads, that
//! writes it: handing it to another thread would cost two turns of the scheduler. What the pipe has no room
//! for is left to a thread of its own.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where lines are put. A clone puts them to the same place.
#[derive(Clone, Debug)]
pub(super) struct Outbox(Arc<Inner>);

/// Why a line was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// So much waits already: the other side does not read.
    Full,
    /// The other side is gone.
    Closed,
}

#[derive(Debug)]
struct Inner {
    descriptor: OwnedFd,
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Vec<u8>>,
    /// In the queue, and in the hands of who writes.
    bytes: usize,
    /// Somebody writes the line before the first one.
    is_writing: bool,
    /// There was no room: the thread has the queue until it is empty.
    is_stuck: bool,
    closed: bool,
    /// Who wants to know of a change beside the thread.
    waiting: usize,
}

/// What a pipe takes at once if it is writable at all: `PIPE_BUF` of Linux (pipe(7)).
const PIECE: usize = 4096;

impl Outbox {
    /// Writes to `descriptor`; keeps at most `limit` bytes, and one line more.
    pub(super) fn new(descriptor: OwnedFd, limit: usize, name: &str) -> std::io::Result<Self> {
        let inner = Inner { descriptor, limit, state: Mutex::default(), changed: Condvar::new() };
        let outbox = Self(Arc::new(inner));
        let thread = outbox.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || thread.0.write_queue())?;
        Ok(outbox)
    }

    /// Takes one line, with its end, for the next [`drain`](Self::drain).
    pub(super) fn put(&self, line: Vec<u8>) -> Result<(), NotTaken> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(NotTaken::Closed);
        }
        if state.bytes > self.0.limit {
            return Err(NotTaken::Full);
        }
        state.bytes += line.len();
        state.queue.push_back(line);
        Ok(())
    }

    /// Writes what waits, as far as there is room; the thread gets the rest.
    pub(super) fn drain(&self) {
        let mut state = self.0.lock();
        while !state.is_writing && !state.is_stuck && !state.closed {
            let Some(mut line) = state.queue.pop_front() else { return };
            state.is_writing = true;
            drop(state);
            let written = self.0.write_now(&line);
            state = self.0.lock();
            state.is_writing = false;
            match written {
                Ok(written) => {
                    state.bytes -= written;
                    if written < line.len() {
                        line.drain(..written);
                        state.queue.push_front(line);
                        state.is_stuck = true;
                        self.0.changed.notify_all();
                    } else if state.waiting > 0 {
                        self.0.changed.notify_all();
                    }
                }
                Err(_) => self.0.close(&mut state),
            }
        }
    }

    /// Whether less than half of the limit waits, or nobody reads any more.
    pub(super) fn has_room(&self) -> bool {
        let state = self.0.lock();
        state.closed || state.bytes <= self.0.limit / 2
    }

    /// Waits until there [is room](Self::has_room). Whether that is so.
    #[cfg(any(feature = "url", test))]
    pub(super) fn wait_for_room(&self, limit: Duration) -> bool {
        let limit_bytes = self.0.limit / 2;
        self.wait_while(limit, |state| !state.closed && state.bytes > limit_bytes)
    }

    /// Waits until all is written, or cannot be.
    pub(super) fn flush(&self, limit: Duration) {
        self.drain();
        self.wait_while(limit, |state| !state.closed && state.bytes > 0);
    }

    /// Whether it ended before the time.
    fn wait_while(&self, limit: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let mut state = self.0.lock();
        if !condition(&state) {
            return true;
        }
        state.waiting += 1;
        let waited = self.0.changed.wait_timeout_while(state, limit, |state| condition(state));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        !condition(&state)
    }

    /// Takes nothing more, and forgets what waits.
    pub(super) fn close(&self) {
        self.0.close(&mut self.0.lock());
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, state: &mut State) {
        state.closed = true;
        state.queue.clear();
        self.changed.notify_all();
    }

    /// Writes what there is room for. How much that was.
    #[cfg(target_os = "linux")]
    fn write_now(&self, line: &[u8]) -> Result<usize, Errno> {
        use rustix::io::{ReadWriteFlags, pwritev2};
        /// What stands for "no offset" (pwritev2(2)).
        const NO_OFFSET: u64 = u64::MAX;
        let mut written = 0;
        while written < line.len() {
            let piece = [std::io::IoSlice::new(&line[written..])];
            match pwritev2(&self.descriptor, &piece, NO_OFFSET, ReadWriteFlags::NOWAIT) {
                Ok(length) => written += length,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // An old kernel, or something that is neither a pipe nor a socket.
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::SPIPE) => {
                    return Ok(written + self.write_pieces(&line[written..])?);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    #[cfg(not(target_os = "linux"))]
    fn write_now(&self, line: &[u8]) -> Result<usize, Errno> {
        self.write_pieces(line)
    }

    /// The same where a write cannot be told not to wait: a writable pipe takes [`PIECE`] bytes.
    fn write_pieces(&self, line: &[u8]) -> Result<usize, Errno> {
        let mut written = 0;
        while written < line.len() && self.is_writable(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
            let piece = &line[written..line.len().min(written + PIECE)];
            match rustix::io::write(&self.descriptor, piece) {
                Ok(length) => written += length,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    fn is_writable(&self, timeout: Option<&Timespec>) -> Result<bool, Errno> {
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::OUT)];
        match poll(&mut polled, timeout) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The thread: writes what could not be written at once.
    fn write_queue(&self) {
        let mut state = self.lock();
        loop {
            state = self
                .changed
                .wait_while(state, |state| !state.is_stuck && !state.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            let Some(line) = state.queue.pop_front() else {
                state.is_stuck = false;
                continue;
            };
            drop(state);
            let written = self.write_all(&line);
            state = self.lock();
            state.bytes -= line.len();
            if written.is_err() {
                self.close(&mut state);
            }
            self.changed.notify_all();
        }
    }

    fn write_all(&self, mut line: &[u8]) -> Result<(), Errno> {
        while !line.is_empty() {
            match rustix::io::write(&self.descriptor, line) {
                Ok(length) => line = &line[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => drop(self.is_writable(None)?),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn lines_keep_their_order_whether_or_not_there_is_room() {
        let (reader, writer) = std::io::pipe().unwrap();
        let outbox = Outbox::new(writer.into(), 64 << 20, "test").unwrap();
        let lines: Vec<String> = (0..200).map(|n| format!("{n} {}\n", "x".repeat(n * 37))).collect();
        for line in &lines {
            outbox.put(line.clone().into_bytes()).unwrap();
            outbox.drain();
        }
        let mut read = BufReader::new(reader).lines();
        for line in &lines {
            assert_eq!(read.next().unwrap().unwrap(), line.trim_end_matches('\n'));
        }
        outbox.flush(Duration::from_secs(10));
        assert!(outbox.wait_for_room(Duration::ZERO));
        outbox.close();
    }

    #[test]
    fn a_file_takes_lines_too() {
        let file = tempfile::tempfile().unwrap();
        let outbox = Outbox::new(file.try_clone().unwrap().into(), 1 << 20, "test").unwrap();
        for _ in 0..3 {
            outbox.put(vec![b'x'; 10_000]).unwrap();
            outbox.drain();
        }
        outbox.flush(Duration::from_secs(10));
        assert_eq!(file.metadata().unwrap().len(), 30_000);
    }

    #[test]
    fn who_does_not_read_fills_the_box_and_no_more() {
        let (reader, writer) = std::io::pipe().unwrap();
        let outbox = Outbox::new(writer.into(), 1 << 20, "test").unwrap();
        let line = vec![b'x'; 100_000];
        let put = || {
            outbox.drain();
            outbox.put(line.clone())
        };
        let taken = (0..100).take_while(|_| put().is_ok()).count();
        assert!((10..=13).contains(&taken), "{taken}");
        assert_eq!(outbox.put(line.clone()), Err(NotTaken::Full));
        assert!(!outbox.wait_for_room(Duration::from_millis(10)));
        drop(reader);
        assert!(outbox.wait_for_room(Duration::from_secs(20)));
        assert_eq!(outbox.put(line), Err(NotTaken::Closed));
    }
}
