//! Lines off a descriptor, in bounded memory, with blocking reads: a thread that sleeps in the system wakes in
//! a third of the time that an asynchronous one takes.

pub(super) use json_rpc::line_buffer::Line;
use json_rpc::line_buffer::LineBuffer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A reader of lines with a limit on their length.
#[derive(Debug)]
pub(super) struct BoundedLineReader {
    descriptor: OwnedFd,
    lines: LineBuffer,
}

impl BoundedLineReader {
    /// Reads `descriptor`, keeping at most `limit` bytes of a line.
    pub(super) fn new(descriptor: OwnedFd, limit: usize) -> Self {
        Self { descriptor, lines: LineBuffer::new(limit) }
    }

    /// Waits for the next line and returns it.
    #[cfg(any(feature = "url", test))]
    pub(super) fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.lines.find() {
                return Ok(self.lines.line(found));
            }
            self.fill()?;
        }
    }

    /// Returns the next line of what was read already.
    pub(super) fn take(&mut self) -> Option<Line<'_>> {
        self.lines.take()
    }

    /// Reads once; waits where there is nothing to read.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let read = self.read()?;
        self.lines.advance(read);
        Ok(())
    }

    /// Returns true if nobody writes any more; lines that were written before may still be there.
    pub(super) fn is_hung_up(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        poll(&mut polled, Some(&now)).is_ok_and(|_| polled[0].revents().intersects(gone))
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.descriptor, self.lines.space()) {
                Ok(read) => return Ok(read),
                Err(Errno::INTR) => {}
                // Another process that shares the descriptor has made it non-blocking.
                Err(Errno::AGAIN) => {
                    let _ = poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], None);
                }
                // The other end of a socket or terminal is gone.
                Err(Errno::CONNRESET | Errno::IO) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for BoundedLineReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_are_waited_for_and_a_long_one_is_gone_but_for_its_id() {
        let (reader, mut writer) = io::pipe().unwrap();
        let text = format!("a\n{{\"result\":\"{}\",\"id\":7}}\nlast", "y".repeat(300_000));
        let writing = std::thread::spawn(move || {
            for piece in text.as_bytes().chunks(1000) {
                writer.write_all(piece).unwrap();
            }
        });
        let mut lines = BoundedLineReader::new(reader.into(), 1000);
        let mut found = Vec::new();
        loop {
            match lines.next().unwrap() {
                Line::Whole(line) => found.push(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong { outline, .. } => found.push(format!("too long: {:?}", outline.id)),
                Line::End => break,
            }
        }
        writing.join().unwrap();
        assert_eq!(found, ["a", "too long: Some(Number(\"7\"))", "last"]);
    }
}
