//! A queue of lines to write, in bounded memory. Pushing a line never waits and makes no system call.
//!
//! Whoever has pushed a line calls [`OutputQueue::drain`] once it holds no lock. If the other side reads, that call
//! writes the line: handing it to another thread would cost two context switches. What the pipe does not take at once
//! is left to a thread of the queue.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue of lines for one descriptor. A clone is the same queue.
#[derive(Clone, Debug)]
pub(super) struct OutputQueue(Arc<SharedOutputQueue>);

/// The error for a line that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueError {
    /// The queue is full: the other side does not read.
    Full,
    /// The other side is gone.
    Closed,
}

#[derive(Debug)]
struct SharedOutputQueue {
    descriptor: OwnedFd,
    limit: usize,
    state: Mutex<OutputQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutputQueueState {
    queue: VecDeque<Vec<u8>>,
    /// Bytes in the queue and in the line that is being written.
    bytes: usize,
    /// A thread is writing the line that was taken from the front.
    is_writing: bool,
    /// The pipe was full: the queue's thread writes until the queue is empty.
    is_blocked: bool,
    closed: bool,
    /// The number of threads that wait for a change, beside the queue's own.
    waiters: usize,
}

/// The largest number of bytes that may wait for a client or a server that does not read.
pub(super) const MAX_QUEUE_BYTES: usize = 64 << 20;

/// The bytes that a writable pipe takes without blocking: `PIPE_BUF` of Linux (pipe(7)).
const PIPE_BUF: usize = 4096;

impl OutputQueue {
    /// Creates a queue that writes to `descriptor` and holds at most `limit` bytes and one line more.
    pub(super) fn new(descriptor: OwnedFd, limit: usize, name: &str) -> std::io::Result<Self> {
        let inner = SharedOutputQueue { descriptor, limit, state: Mutex::default(), changed: Condvar::new() };
        let queue = Self(Arc::new(inner));
        let thread = queue.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || thread.0.write_queue())?;
        Ok(queue)
    }

    /// Adds one line, with its end, for the next [`drain`](Self::drain).
    pub(super) fn push(&self, line: Vec<u8>) -> Result<(), EnqueueError> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(EnqueueError::Closed);
        }
        // Before the new line is counted, so that an empty queue takes a line of any size.
        if state.bytes > self.0.limit {
            return Err(EnqueueError::Full);
        }
        state.bytes += line.len();
        state.queue.push_back(line);
        Ok(())
    }

    /// Writes what waits, as far as the descriptor takes it at once; the thread writes the rest.
    pub(super) fn drain(&self) {
        let mut state = self.0.lock();
        while !state.is_writing && !state.is_blocked && !state.closed {
            let Some(mut line) = state.queue.pop_front() else { return };
            // One thread writes at a time, and without the lock: others can push lines meanwhile.
            state.is_writing = true;
            drop(state);
            let written = self.0.write_now(&line);
            state = self.0.lock();
            state.is_writing = false;
            match written {
                Ok(written) => {
                    state.bytes -= written;
                    if written < line.len() {
                        // The rest of the line goes first.
                        line.drain(..written);
                        state.queue.push_front(line);
                        state.is_blocked = true;
                        self.0.changed.notify_all();
                    // Only if somebody waits, as a notification may cost a system call.
                    } else if state.waiters > 0 {
                        self.0.changed.notify_all();
                    }
                }
                Err(_) => self.0.close(&mut state),
            }
        }
    }

    /// Returns true if at most half of the limit waits, or nobody reads any more.
    pub(super) fn has_capacity(&self) -> bool {
        let state = self.0.lock();
        state.closed || state.bytes <= self.0.limit / 2
    }

    /// Waits at most `limit` until the queue [has capacity](Self::has_capacity), and returns whether it has.
    #[cfg(any(feature = "url", test))]
    pub(super) fn wait_for_capacity(&self, limit: Duration) -> bool {
        let limit_bytes = self.0.limit / 2;
        self.wait_while(limit, |state| !state.closed && state.bytes > limit_bytes)
    }

    /// Waits at most `limit` until everything is written, or the other side is gone.
    pub(super) fn flush(&self, limit: Duration) {
        self.drain();
        self.wait_while(limit, |state| !state.closed && state.bytes > 0);
    }

    /// Waits at most `limit` while `condition` holds; returns true if it no longer does.
    fn wait_while(&self, limit: Duration, condition: impl Fn(&OutputQueueState) -> bool) -> bool {
        let mut state = self.0.lock();
        if !condition(&state) {
            return true;
        }
        state.waiters += 1;
        let waited = self.0.changed.wait_timeout_while(state, limit, |state| condition(state));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiters -= 1;
        !condition(&state)
    }

    /// Closes the queue and drops what waits.
    pub(super) fn close(&self) {
        self.0.close(&mut self.0.lock());
    }
}

impl SharedOutputQueue {
    fn lock(&self) -> MutexGuard<'_, OutputQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, state: &mut OutputQueueState) {
        state.closed = true;
        state.queue.clear();
        self.changed.notify_all();
    }

    /// Writes what the descriptor takes without blocking, and returns the number of bytes.
    #[cfg(target_os = "linux")]
    fn write_now(&self, line: &[u8]) -> Result<usize, Errno> {
        use rustix::io::{ReadWriteFlags, pwritev2};
        /// The value for "no offset" (pwritev2(2)).
        const NO_OFFSET: u64 = u64::MAX;
        let mut written = 0;
        while written < line.len() {
            let piece = [std::io::IoSlice::new(&line[written..])];
            // `RWF_NOWAIT` and not `O_NONBLOCK`: that one belongs to the open file, which other processes may share,
            // a terminal for example.
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

    /// Writes without blocking where a single write cannot be told so: a writable pipe takes [`PIPE_BUF`] bytes.
    fn write_pieces(&self, line: &[u8]) -> Result<usize, Errno> {
        let mut written = 0;
        while written < line.len() && self.is_writable(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
            let piece = &line[written..line.len().min(written + PIPE_BUF)];
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

    /// Runs the queue's thread, which writes what could not be written at once.
    fn write_queue(&self) {
        let mut state = self.lock();
        loop {
            state = self
                .changed
                .wait_while(state, |state| !state.is_blocked && !state.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return;
            }
            let Some(line) = state.queue.pop_front() else {
                // Only when nothing waits any more: until then `drain` would overtake the lines in the queue.
                state.is_blocked = false;
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
        let queue = OutputQueue::new(writer.into(), 64 << 20, "test").unwrap();
        let lines: Vec<String> = (0..200).map(|n| format!("{n} {}\n", "x".repeat(n * 37))).collect();
        for line in &lines {
            queue.push(line.clone().into_bytes()).unwrap();
            queue.drain();
        }
        let mut read = BufReader::new(reader).lines();
        for line in &lines {
            assert_eq!(read.next().unwrap().unwrap(), line.trim_end_matches('\n'));
        }
        queue.flush(Duration::from_secs(10));
        assert!(queue.wait_for_capacity(Duration::ZERO));
        queue.close();
    }

    #[test]
    fn a_file_takes_lines_too() {
        let file = tempfile::tempfile().unwrap();
        let queue = OutputQueue::new(file.try_clone().unwrap().into(), 1 << 20, "test").unwrap();
        for _ in 0..3 {
            queue.push(vec![b'x'; 10_000]).unwrap();
            queue.drain();
        }
        queue.flush(Duration::from_secs(10));
        assert_eq!(file.metadata().unwrap().len(), 30_000);
    }

    #[test]
    fn who_does_not_read_fills_the_box_and_no_more() {
        let (reader, writer) = std::io::pipe().unwrap();
        let queue = OutputQueue::new(writer.into(), 1 << 20, "test").unwrap();
        let line = vec![b'x'; 100_000];
        let push = || {
            queue.drain();
            queue.push(line.clone())
        };
        let taken = (0..100).take_while(|_| push().is_ok()).count();
        assert!((10..=13).contains(&taken), "{taken}");
        assert_eq!(queue.push(line.clone()), Err(EnqueueError::Full));
        assert!(!queue.wait_for_capacity(Duration::from_millis(10)));
        drop(reader);
        assert!(queue.wait_for_capacity(Duration::from_secs(20)));
        assert_eq!(queue.push(line), Err(EnqueueError::Closed));
    }
}
