//! The head and the tail of a stream, within a fixed memory, and what is known about the rest.

mod captured;
mod kept;
#[cfg(test)]
mod tests;

use crate::secrets::{Redactor, Secrets};
use crate::spill::{Spill, SpillWriter};
use crate::text;

pub use captured::Captured;
use kept::Kept;
pub use kept::Snapshot;

/// How much of a stream is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureLimits {
    /// The most bytes of a stream kept in memory: a quarter from its start and the rest from its end,
    /// where a failing program says why. 256 KiB by default. Memory is taken as output comes.
    pub max_bytes: usize,
    /// Where a longer stream is written in full. Nowhere by default.
    pub spill: Option<Spill>,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self { max_bytes: 256 * 1024, spill: None }
    }
}

impl CaptureLimits {
    /// Keeps at most this many bytes of a stream, and spills nothing.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, spill: None }
    }

    /// Writes a stream that is longer than that to a file, from its first byte.
    #[must_use]
    pub fn spill(mut self, spill: Spill) -> Self {
        self.spill = Some(spill);
        self
    }
}

/// Takes one stream in, as it comes, within a fixed memory.
///
/// Positions ("cursors") count the bytes of the stream from 0, after secrets were hidden.
#[derive(Debug)]
pub struct Capture {
    redactor: Redactor,
    kept: Kept,
    newlines: u64,
    ends_in_newline: bool,
    spill: Spilling,
}

#[derive(Debug)]
enum Spilling {
    Never,
    Later(Spill),
    Now(SpillWriter),
    Failed(String),
}

impl Capture {
    /// An empty capture. `secrets` are hidden before anything is kept, spilled or observed.
    pub fn new(limits: &CaptureLimits, secrets: &Secrets) -> Self {
        Self {
            redactor: secrets.redactor(),
            kept: Kept::new(limits.max_bytes),
            newlines: 0,
            ends_in_newline: true,
            spill: limits.spill.clone().map_or(Spilling::Never, Spilling::Later),
        }
    }

    /// Takes the next chunk of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        self.push_and(chunk, |_| {});
    }

    /// Takes the next chunk and shows `observe` what of the stream is now known to hold no secret: the
    /// same bytes, in the same order, as are kept. Feed a [`LineSplitter`](crate::LineSplitter) from it.
    pub fn push_and(&mut self, chunk: &[u8], mut observe: impl FnMut(&[u8])) {
        let Self { redactor, kept, newlines, ends_in_newline, spill } = self;
        redactor.push(chunk, |bytes| {
            take(kept, newlines, ends_in_newline, spill, bytes);
            observe(bytes);
        });
    }

    /// Ends the stream: shows `observe` what was held back because it could have been the start of a
    /// secret. [`Capture::finish`] does it too, without an observer.
    pub fn flush(&mut self, mut observe: impl FnMut(&[u8])) {
        let Self { redactor, kept, newlines, ends_in_newline, spill } = self;
        redactor.finish(|bytes| {
            take(kept, newlines, ends_in_newline, spill, bytes);
            observe(bytes);
        });
    }

    /// Bytes taken so far, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.kept.total
    }

    /// The spill file is behind: push no more until [`Capture::drained`] resolves. The program is then
    /// held back by its full pipe, as if its output went to that disk directly.
    pub fn backlogged(&self) -> bool {
        matches!(&self.spill, Spilling::Now(writer) if writer.backlogged())
    }

    /// Resolves when the spill file has caught up, or cannot be written any more. At once without one.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let drained = match &self.spill {
            Spilling::Now(writer) => Some(writer.drained()),
            _ => None,
        };
        async move {
            if let Some(drained) = drained {
                drained.await;
            }
        }
    }

    /// At most `max` bytes (but room for one character) from position `cursor` on.
    ///
    /// A cursor past the end gives nothing. One that points to bytes that are not kept any more is moved
    /// to the first that are, and `lost_bytes` counts the ones between.
    pub fn snapshot(&self, cursor: u64, max: usize) -> Snapshot {
        self.kept.snapshot(cursor, max, false)
    }

    /// Ends the capture. `complete` says that the end of the stream was seen.
    pub fn finish(mut self, complete: bool) -> Captured {
        self.flush(|_| {});
        let (spill, spill_error) = match self.spill {
            Spilling::Never | Spilling::Later(_) => (None, None),
            Spilling::Now(writer) => {
                let (path, error) = writer.finish();
                (Some(path), error)
            }
            Spilling::Failed(error) => (None, Some(error)),
        };
        let total_bytes = self.kept.total;
        let total_lines = self.newlines + u64::from(!self.ends_in_newline);
        let (bytes, head_length) = self.kept.into_linear();
        let omitted_bytes = total_bytes - bytes.len() as u64;
        let omitted_lines = match omitted_bytes {
            0 => 0,
            _ => self.newlines - memchr::memchr_iter(b'\n', &bytes).count() as u64,
        };
        let mut captured = Captured {
            binary: memchr::memchr(0, &bytes).is_some(),
            bytes,
            head_length,
            total_bytes,
            total_lines,
            omitted_bytes,
            omitted_lines,
            complete,
            lossy: 0,
            spill,
            spill_error,
        };
        let (head, tail) = captured.whole_characters();
        captured.lossy = text::lossy(head).1 + text::lossy(tail).1;
        captured
    }
}

/// A closure cannot borrow the redactor and the rest of the capture at once; a function of the parts can.
fn take(kept: &mut Kept, newlines: &mut u64, ends_in_newline: &mut bool, spill: &mut Spilling, bytes: &[u8]) {
    let Some(last) = bytes.last() else { return };
    *ends_in_newline = *last == b'\n';
    *newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
    if let Spilling::Later(settings) = spill
        && kept.total + bytes.len() as u64 > kept.cap as u64
    {
        *spill = match SpillWriter::create(settings) {
            // Nothing has been left out yet, so what is kept is the stream from its first byte.
            Ok(mut writer) => {
                writer.write(&kept.buffer);
                Spilling::Now(writer)
            }
            Err(error) => Spilling::Failed(format!("no file in {}: {error}", settings.dir.display())),
        };
    }
    if let Spilling::Now(writer) = spill {
        writer.write(bytes);
    }
    kept.push(bytes);
}
