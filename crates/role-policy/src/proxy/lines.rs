//! Lines off a descriptor, in bounded memory, with blocking reads: a thread that sleeps in the system wakes in
//! a third of the time that an asynchronous one takes.

use super::outline::{Outline, Scanner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One step of reading.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A whole line, without its end.
    Whole(&'a [u8]),
    /// A line longer than the limit, which is gone.
    TooLong(Outline),
    /// The stream has ended. A last line without an end has been given out before.
    End,
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines {
    descriptor: OwnedFd,
    limit: usize,
    buffer: Vec<u8>,
    /// Where the next line begins in `buffer`.
    start: usize,
    /// Up to here there is no line end after `start`.
    searched: usize,
    /// Bytes of `buffer` that were read.
    filled: usize,
    skipping: Option<Scanner>,
    ended: bool,
}

/// A [`Line`], by its place in the buffer.
enum Found {
    Whole(Range<usize>),
    TooLong(Outline),
    End,
}

/// A full pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

impl Lines {
    /// Reads `descriptor`, keeping at most `limit` bytes of a line.
    pub(super) fn new(descriptor: OwnedFd, limit: usize) -> Self {
        Self {
            descriptor,
            limit,
            buffer: vec![0; READ_BYTES],
            start: 0,
            searched: 0,
            filled: 0,
            skipping: None,
            ended: false,
        }
    }

    /// The next line; waits for it.
    #[cfg(any(feature = "url", test))]
    pub(super) fn next(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(found) = self.find() {
                return Ok(self.show(found));
            }
            self.fill()?;
        }
    }

    /// The next line of what was read already.
    pub(super) fn take(&mut self) -> Option<Line<'_>> {
        let found = self.find()?;
        Some(self.show(found))
    }

    /// Reads once; waits where there is nothing to read.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.make_room();
        let read = self.read()?;
        self.filled += read;
        self.ended = read == 0;
        Ok(())
    }

    fn find(&mut self) -> Option<Found> {
        let end = memchr(&self.buffer[self.searched..self.filled]).map(|at| self.searched + at);
        let (from, to) = (self.start, end.unwrap_or(self.filled));
        if end.is_some() || self.ended && to > from {
            self.start = (to + 1).min(self.filled);
            self.searched = self.start;
            if let Some(mut scanner) = self.skipping.take() {
                scanner.push(&self.buffer[from..to]);
                return Some(Found::TooLong(scanner.finish()));
            }
            if to - from > self.limit {
                return Some(Found::TooLong(super::outline::outline(&self.buffer[from..to])));
            }
            return Some(Found::Whole(from..to));
        }
        self.searched = self.filled;
        if !self.ended {
            return None;
        }
        Some(match self.skipping.take() {
            Some(scanner) => Found::TooLong(scanner.finish()),
            None => Found::End,
        })
    }

    fn show(&self, found: Found) -> Line<'_> {
        match found {
            Found::Whole(place) => Line::Whole(&self.buffer[place]),
            Found::TooLong(outline) => Line::TooLong(outline),
            Found::End => Line::End,
        }
    }

    /// Whether nobody writes any more; what was written before may still be there.
    pub(super) fn hung_up(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        poll(&mut polled, Some(&now)).is_ok_and(|_| polled[0].revents().intersects(gone))
    }

    /// Room for one read, without keeping more than the limit.
    fn make_room(&mut self) {
        if self.skipping.is_some() || self.filled - self.start > self.limit {
            let scanner = self.skipping.get_or_insert_default();
            scanner.push(&self.buffer[self.start..self.filled]);
            self.start = self.filled;
        }
        if self.start == self.filled {
            (self.start, self.filled) = (0, 0);
            // One long line must not hold its memory for ever.
            self.buffer.truncate(READ_BYTES);
            self.buffer.shrink_to(READ_BYTES);
        } else if self.filled == self.buffer.len() {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            if self.filled > self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        self.searched = self.filled;
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.descriptor, &mut self.buffer[self.filled..]) {
                Ok(read) => return Ok(read),
                Err(Errno::INTR) => {}
                // Somebody who shares the descriptor has made it so.
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

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(text: &[u8], limit: usize) -> Vec<String> {
        let (reader, mut writer) = io::pipe().unwrap();
        let text = text.to_vec();
        let writing = std::thread::spawn(move || {
            for piece in text.chunks(1000) {
                writer.write_all(piece).unwrap();
            }
        });
        let mut lines = Lines::new(reader.into(), limit);
        let mut found = Vec::new();
        loop {
            match lines.next().unwrap() {
                Line::Whole(line) => found.push(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong(outline) => found.push(format!("too long: {:?}", outline.id)),
                Line::End => break,
            }
        }
        writing.join().unwrap();
        found
    }

    #[test]
    fn lines_come_whole_and_the_last_needs_no_end() {
        assert_eq!(lines(b"a\n\nbc\nd", 10), ["a", "", "bc", "d"]);
        let long = "x".repeat(300_000);
        assert_eq!(lines(format!("{long}\nb\n{long}\n").as_bytes(), 300_000), [&long, "b", &long]);
    }

    #[test]
    fn a_line_past_the_limit_is_gone_but_for_its_id_and_the_next_is_whole() {
        for length in [1_001, 70_000, 300_000] {
            let long = format!("{{\"result\":\"{}\",\"id\":7}}", "y".repeat(length));
            assert_eq!(
                lines(format!("a\n{long}\nnext\n").as_bytes(), 1000),
                ["a", "too long: Some(Number(\"7\"))", "next"],
                "{length}"
            );
        }
    }
}
