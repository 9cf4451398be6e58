//! Reads the output pipes and passes each byte to the capture, the events and the line callback.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::pipe::PIPE_CHUNK;
use super::run_state::RunState;
use crate::command::LineCallback;
use crate::events::{EventGranularity, EventQueue, RunEvent};
use crate::limits::{Limits, OutputLimitAction};
use crate::line_splitter::{LineSplitter, OutputLine};
use crate::outcome::Stream;
use crate::secrets::StreamRedactor;
use crate::tree::OutputPipe;

/// The most reads of one stream before the other has its turn.
const MAX_READS_PER_POLL: usize = 8;

/// The events of one poll that the driver must act on.
#[derive(Debug, Default)]
pub(super) struct OutputProgress {
    pub(super) over_limit: Option<Stream>,
    pub(super) failed: Option<io::Error>,
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

/// A wait until the spill file has caught up.
type SpillDrained = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One output stream and our end of its pipe.
pub(super) struct OutputStream {
    stream: Stream,
    /// `None` once its end was read, or it was closed.
    pub(super) pipe: Option<OutputPipe>,
    /// True if the stream ended by itself.
    pub(super) complete: bool,
    /// True once its time is up. The holder is being killed, so an end that is read now is our doing.
    pub(super) cut_short: bool,
    /// The bytes read so far, for `max_output`.
    bytes_read: u64,
    redactor: StreamRedactor,
    lines: Option<LineSplitter>,
    /// Set while the spill file is behind. Nothing is read until it is ready.
    spill_drained: Option<SpillDrained>,
}

impl OutputStream {
    /// Returns a stream, without a pipe if both streams share one. With `max_line` it is split into lines of at most
    /// that many bytes.
    pub(super) fn new(
        stream: Stream,
        pipe: Option<OutputPipe>,
        redactor: StreamRedactor,
        max_line: Option<usize>,
    ) -> Self {
        Self {
            stream,
            complete: pipe.is_none(),
            pipe,
            cut_short: false,
            bytes_read: 0,
            redactor,
            lines: max_line.map(LineSplitter::new),
            spill_drained: None,
        }
    }

    /// Stops splitting lines, after a callback has panicked in the middle of one.
    pub(super) fn stop_lines(&mut self) {
        self.lines = None;
    }
}

/// The destinations of output. It reads a stream and passes its bytes to them.
pub(super) struct OutputPump<'a> {
    pub(super) shared: &'a RunState,
    pub(super) limits: &'a Limits,
    pub(super) events: Option<&'a EventQueue>,
    pub(super) on_line: &'a Option<LineCallback>,
    pub(super) exited: bool,
}

thread_local! {
    // One buffer for each thread and not for each run, since nothing stays in it between two polls. Hundreds of runs
    // would need 64 KiB each.
    static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl OutputPump<'_> {
    /// Reads what there is, up to a limit. Returns true if it read anything, or the end.
    pub(super) fn poll(
        &mut self,
        stream: &mut OutputStream,
        context: &mut Context<'_>,
        progress: &mut OutputProgress,
    ) -> bool {
        // Taken out while it is in use: a line callback could poll another run on this thread.
        let mut buffer = BUFFER.with(std::cell::RefCell::take);
        buffer.resize(PIPE_CHUNK, 0);
        let mut moved = false;
        for _ in 0..MAX_READS_PER_POLL {
            match self.poll_read(stream, context, &mut buffer, progress) {
                Poll::Ready(true) => moved = true,
                Poll::Ready(false) => {
                    moved = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        BUFFER.with(|cell| cell.replace(buffer));
        moved
    }

    /// Reads once. Returns true if there may be more.
    fn poll_read(
        &mut self,
        stream: &mut OutputStream,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        progress: &mut OutputProgress,
    ) -> Poll<bool> {
        // After the exit everything in the pipe is read, whether or not there is room for events: the drain clocks run.
        if let Some(events) = self.events.filter(|_| !self.exited) {
            ready!(events.poll_room(stream.stream, context));
        }
        if let Some(drained) = &mut stream.spill_drained {
            ready!(drained.as_mut().poll(context));
            stream.spill_drained = None;
        }
        let Some(pipe) = &mut stream.pipe else { return Poll::Pending };
        let mut read = ReadBuf::new(buffer);
        let bytes = match ready!(Pin::new(pipe).poll_read(context, &mut read)) {
            Ok(()) => read.filled(),
            Err(error) => {
                stream.pipe = None;
                progress.failed = Some(error);
                return Poll::Ready(false);
            }
        };
        if bytes.is_empty() {
            stream.pipe = None;
            stream.complete = !stream.cut_short;
            return Poll::Ready(false);
        }
        let bytes = match self.limits.max_output {
            Some(limit) if stream.bytes_read + bytes.len() as u64 > limit.bytes => {
                // What still fits is kept, so that the capture is exact to the byte.
                let room = usize::try_from(limit.bytes - stream.bytes_read).unwrap_or(usize::MAX);
                match limit.on_exceeded {
                    OutputLimitAction::Kill => progress.over_limit = Some(stream.stream),
                    OutputLimitAction::Close => stream.pipe = None,
                    OutputLimitAction::Discard => {}
                }
                &bytes[..room.min(bytes.len())]
            }
            _ => bytes,
        };
        stream.bytes_read += bytes.len() as u64;
        self.redact_and_deliver(stream, bytes, progress);
        Poll::Ready(progress.over_limit.is_none() && stream.pipe.is_some())
    }

    fn redact_and_deliver(&self, stream: &mut OutputStream, bytes: &[u8], progress: &mut OutputProgress) {
        let OutputStream { stream: name, redactor, lines, spill_drained, .. } = stream;
        redactor.push(bytes, |bytes| self.deliver(*name, lines, spill_drained, bytes, progress));
    }

    /// Ends a stream, and delivers what was held back as the possible beginning of a secret or a line.
    pub(super) fn flush(&mut self, stream: &mut OutputStream, progress: &mut OutputProgress) {
        let OutputStream { stream: name, redactor, lines, spill_drained, .. } = stream;
        redactor.finish(|bytes| self.deliver(*name, lines, spill_drained, bytes, progress));
        if let Some(lines) = lines {
            self.catch_panic(progress, || lines.finish(|line| self.deliver_line(*name, line)));
        }
    }

    fn deliver(
        &self,
        stream: Stream,
        lines: &mut Option<LineSplitter>,
        spill_drained: &mut Option<SpillDrained>,
        bytes: &[u8],
        progress: &mut OutputProgress,
    ) {
        if bytes.is_empty() {
            return;
        }
        if let Some(capture) = &mut self.shared.lock().captures[stream.index()] {
            capture.push(bytes);
            if capture.is_backlogged() {
                *spill_drained = Some(Box::pin(capture.drained()));
            }
        }
        if let Some(events) =
            self.events.filter(|events| events.options().granularity == EventGranularity::Chunk)
        {
            let at = self.shared.started.elapsed();
            events.send_output(stream, bytes.len(), self.exited, || RunEvent::Chunk {
                stream,
                bytes: bytes.to_vec(),
                at,
            });
        }
        if let Some(lines) = lines {
            self.catch_panic(progress, || lines.push(bytes, |line| self.deliver_line(stream, line)));
        }
    }

    /// Calls code that may call the line callback, and catches its panic.
    // A callback that has panicked is not called again, so that nothing sees its broken state. Events by line stop with
    // it: the run is over.
    fn catch_panic(&self, progress: &mut OutputProgress, call: impl FnOnce()) {
        if progress.panic.is_none() {
            progress.panic = catch_unwind(AssertUnwindSafe(call)).err();
        }
    }

    /// Passes one line to the callback and to the events.
    fn deliver_line(&self, stream: Stream, line: OutputLine<'_>) {
        if let Some(on_line) = self.on_line {
            on_line(stream, line);
        }
        if let Some(events) =
            self.events.filter(|events| events.options().granularity == EventGranularity::Line)
        {
            let at = self.shared.started.elapsed();
            events.send_output(stream, line.bytes.len(), self.exited, || RunEvent::Line {
                stream,
                text: line.text().into_owned(),
                truncated: line.truncated(),
                at,
            });
        }
    }
}
