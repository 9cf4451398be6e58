//! Takes a stream in, chunk by chunk.

use super::captured::CapturedStream;
use super::head_tail::HeadTailBuffer;
use super::snapshot::OutputSnapshot;
use crate::lossy_text;
use crate::secrets::{SecretValues, StreamRedactor};
use crate::spill::{SpillOptions, SpillWriter};

/// The limits of an [`OutputCapture`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureLimits {
    /// The most bytes of a stream kept in memory: a quarter from its start and the rest from its end. 256 KiB by
    /// default. Memory is allocated as output comes.
    pub max_bytes: usize,
    /// The file for a stream that is longer. None by default.
    pub spill: Option<SpillOptions>,
}

impl Default for CaptureLimits {
    fn default() -> Self {
        Self { max_bytes: 256 * 1024, spill: None }
    }
}

impl CaptureLimits {
    /// Returns limits of at most this many bytes in memory and no file.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, spill: None }
    }

    /// Sets [`CaptureLimits::spill`]: a longer stream is written to a file from its first byte.
    #[must_use]
    pub fn spill(mut self, spill: SpillOptions) -> Self {
        self.spill = Some(spill);
        self
    }
}

/// A capture of one stream within a fixed memory.
///
/// Positions ("cursors") count the bytes of the stream from 0, after secrets were hidden.
#[derive(Debug)]
pub struct OutputCapture {
    redactor: StreamRedactor,
    recorder: CaptureRecorder,
}

/// The part of an [`OutputCapture`] behind the redactor.
// It is a type of its own because the redactor is borrowed while it gives bytes to it.
#[derive(Debug)]
struct CaptureRecorder {
    buffer: HeadTailBuffer,
    newlines: u64,
    ends_in_newline: bool,
    spill: SpillState,
}

/// The state of the spill file.
#[derive(Debug)]
enum SpillState {
    Disabled,
    /// The stream still fits into memory.
    Pending(SpillOptions),
    Writing(SpillWriter),
    Failed(String),
}

impl OutputCapture {
    /// Returns an empty capture. `secrets` are hidden before anything is kept or spilled.
    pub fn new(limits: &CaptureLimits, secrets: &SecretValues) -> Self {
        Self {
            redactor: secrets.redactor(),
            recorder: CaptureRecorder {
                buffer: HeadTailBuffer::new(limits.max_bytes),
                newlines: 0,
                // An empty stream has no line that would miss its end.
                ends_in_newline: true,
                spill: limits.spill.clone().map_or(SpillState::Disabled, SpillState::Pending),
            },
        }
    }

    /// Takes the next chunk of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        self.redactor.push(chunk, |bytes| self.recorder.record(bytes));
    }

    /// Returns the bytes taken so far, kept or not.
    pub fn total_bytes(&self) -> u64 {
        self.recorder.buffer.total
    }

    /// Returns true if the spill file is behind. The caller should push no more until [`OutputCapture::drained`]
    /// resolves: meanwhile the program waits at its full pipe, as if the program wrote to the disk itself.
    pub fn is_backlogged(&self) -> bool {
        matches!(&self.recorder.spill, SpillState::Writing(writer) if writer.is_backlogged())
    }

    /// Waits until the spill file has caught up or cannot be written any more. Without a file it returns at once.
    pub fn drained(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let drained = match &self.recorder.spill {
            SpillState::Writing(writer) => Some(writer.drained()),
            _ => None,
        };
        async move {
            if let Some(drained) = drained {
                drained.await;
            }
        }
    }

    /// Returns at most `max` bytes (at least 4, the room for one character) from position `cursor` on.
    ///
    /// With a cursor past the end, the snapshot is empty. A cursor that points to dropped bytes is moved to the first
    /// kept byte, and `lost_bytes` counts the dropped bytes in between.
    pub fn snapshot(&self, cursor: u64, max: usize) -> OutputSnapshot {
        self.recorder.buffer.snapshot(cursor, max, false)
    }

    /// Ends the capture. `complete` says that the end of the stream was seen. The method waits for the spill file, but
    /// only for a short time.
    pub fn finish(mut self, complete: bool) -> CapturedStream {
        // The redactor has held back what could have been the beginning of a secret.
        self.redactor.finish(|bytes| self.recorder.record(bytes));
        let CaptureRecorder { buffer, newlines, ends_in_newline, spill } = self.recorder;
        let (spill, spill_error) = match spill {
            SpillState::Disabled | SpillState::Pending(_) => (None, None),
            SpillState::Writing(writer) => {
                let (path, error) = writer.finish();
                (Some(path), error)
            }
            SpillState::Failed(error) => (None, Some(error)),
        };
        let total_bytes = buffer.total;
        let total_lines = newlines + u64::from(!ends_in_newline);
        let (bytes, head_length) = buffer.into_linear();
        let omitted_bytes = total_bytes - bytes.len() as u64;
        let omitted_lines = match omitted_bytes {
            0 => 0,
            _ => newlines - memchr::memchr_iter(b'\n', &bytes).count() as u64,
        };
        let mut captured = CapturedStream {
            binary: memchr::memchr(0, &bytes).is_some(),
            bytes,
            head_length,
            total_bytes,
            total_lines,
            omitted_bytes,
            omitted_lines,
            complete,
            invalid_sequences: 0,
            spill,
            spill_error,
        };
        let (head, tail) = captured.whole_characters();
        captured.invalid_sequences = lossy_text::lossy(head).1 + lossy_text::lossy(tail).1;
        captured
    }
}

impl CaptureRecorder {
    /// Counts, keeps and spills bytes that hold no secret.
    fn record(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.ends_in_newline = *last == b'\n';
        self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        if let SpillState::Pending(settings) = &self.spill
            && self.buffer.total + bytes.len() as u64 > self.buffer.capacity as u64
        {
            self.spill = match SpillWriter::create(settings) {
                // Nothing has been left out yet, so the buffer holds the stream from its first byte.
                Ok(mut writer) => {
                    writer.write(&self.buffer.buffer);
                    SpillState::Writing(writer)
                }
                Err(error) => SpillState::Failed(format!("no file in {}: {error}", settings.dir.display())),
            };
        }
        if let SpillState::Writing(writer) = &mut self.spill {
            writer.write(bytes);
        }
        self.buffer.push(bytes);
    }
}

#[cfg(test)]
impl OutputCapture {
    /// Returns the memory that is allocated for the stream.
    pub(super) fn buffer_capacity(&self) -> usize {
        self.recorder.buffer.buffer.capacity()
    }
}
