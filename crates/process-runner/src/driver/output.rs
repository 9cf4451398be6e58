//! From the output pipes to where each byte belongs.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::READ;
use super::shared::Shared;
use crate::command::LineCallback;
use crate::events::{By, Event, EventQueue};
use crate::limits::{Limits, OverLimit};
use crate::lines::{Line, LineSplitter};
use crate::outcome::Stream;
use crate::secrets::Redactor;
use crate::tree::OutputPipe;

/// Reads of one stream before the other has its turn.
const READS: usize = 8;

/// What came of one turn.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) over_limit: Option<Stream>,
    pub(super) failed: Option<io::Error>,
    pub(super) panic: Option<Box<dyn Any + Send>>,
}

/// Our end of one output stream.
pub(super) struct OutputStream {
    stream: Stream,
    /// Until its end was read, or it was closed.
    pub(super) pipe: Option<OutputPipe>,
    pub(super) complete: bool,
    /// Its time was up while something held it, which was killed: that end is our doing.
    pub(super) cut_short: bool,
    /// Bytes taken, against `max_output`.
    taken: u64,
    redactor: Redactor,
    lines: Option<LineSplitter>,
    /// The spill file is behind.
    disk: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl OutputStream {
    /// Without a pipe if both streams share one. `max_line`: lines are wanted, of at most this length.
    pub(super) fn new(
        stream: Stream,
        pipe: Option<OutputPipe>,
        redactor: Redactor,
        max_line: Option<usize>,
    ) -> Self {
        Self {
            stream,
            complete: pipe.is_none(),
            pipe,
            cut_short: false,
            taken: 0,
            redactor,
            lines: max_line.map(LineSplitter::new),
            disk: None,
        }
    }

    /// Splits no more lines: the one before did not get to its end.
    pub(super) fn stop_lines(&mut self) {
        self.lines = None;
    }
}

/// Takes what a stream has to where it belongs.
pub(super) struct Pump<'a> {
    pub(super) shared: &'a Shared,
    pub(super) limits: &'a Limits,
    pub(super) events: Option<&'a EventQueue>,
    pub(super) on_line: &'a Option<LineCallback>,
    pub(super) exited: bool,
}

thread_local! {
    /// One buffer a thread and not one a run: nothing stays in it between two polls.
    static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl Pump<'_> {
    /// Reads what there is, up to a limit. True if anything was read, or the end.
    pub(super) fn poll(
        &mut self,
        stream: &mut OutputStream,
        context: &mut Context<'_>,
        progress: &mut Progress,
    ) -> bool {
        // Taken out while it is used, should a callback run another pump on this thread.
        let mut buffer = BUFFER.with(std::cell::RefCell::take);
        buffer.resize(READ, 0);
        let mut moved = false;
        for _ in 0..READS {
            match self.poll_read(stream, context, &mut buffer, progress) {
                Poll::Ready(true) => moved = true,
                Poll::Ready(false) => {
                    moved = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        BUFFER.with(|place| place.replace(buffer));
        moved
    }

    /// True if there may be more.
    fn poll_read(
        &mut self,
        stream: &mut OutputStream,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        progress: &mut Progress,
    ) -> Poll<bool> {
        if let Some(events) = self.events.filter(|_| !self.exited) {
            ready!(events.poll_room(stream.stream, context));
        }
        if let Some(disk) = &mut stream.disk {
            ready!(disk.as_mut().poll(context));
            stream.disk = None;
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
            Some(limit) if stream.taken + bytes.len() as u64 > limit.bytes => {
                let room = usize::try_from(limit.bytes - stream.taken).unwrap_or(usize::MAX);
                match limit.then {
                    OverLimit::Kill => progress.over_limit = Some(stream.stream),
                    OverLimit::Close => stream.pipe = None,
                    OverLimit::Discard => {}
                }
                &bytes[..room.min(bytes.len())]
            }
            _ => bytes,
        };
        stream.taken += bytes.len() as u64;
        self.take(stream, bytes, progress);
        Poll::Ready(progress.over_limit.is_none() && stream.pipe.is_some())
    }

    fn take(&self, stream: &mut OutputStream, bytes: &[u8], progress: &mut Progress) {
        let OutputStream { stream: name, redactor, lines, disk, .. } = stream;
        redactor.push(bytes, |bytes| self.deliver(*name, lines, disk, bytes, progress));
    }

    /// Ends a stream: what was held back is let go.
    pub(super) fn flush(&mut self, stream: &mut OutputStream, progress: &mut Progress) {
        let OutputStream { stream: name, redactor, lines, disk, .. } = stream;
        redactor.finish(|bytes| self.deliver(*name, lines, disk, bytes, progress));
        if let Some(lines) = lines {
            self.callback(progress, || lines.finish(|line| self.line(*name, line)));
        }
    }

    fn deliver(
        &self,
        stream: Stream,
        lines: &mut Option<LineSplitter>,
        disk: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        bytes: &[u8],
        progress: &mut Progress,
    ) {
        if bytes.is_empty() {
            return;
        }
        if let Some(capture) = &mut self.shared.lock().captures[stream.index()] {
            capture.push(bytes);
            if capture.backlogged() {
                *disk = Some(Box::pin(capture.drained()));
            }
        }
        if let Some(events) = self.events.filter(|events| events.options().by == By::Chunk) {
            let at = self.shared.started.elapsed();
            events.send_output(stream, bytes.len(), self.exited, || Event::Chunk {
                stream,
                bytes: bytes.to_vec(),
                at,
            });
        }
        if let Some(lines) = lines {
            self.callback(progress, || lines.push(bytes, |line| self.line(stream, line)));
        }
    }

    /// Calls what may call the caller's code. A callback that has panicked is not called again, so nothing
    /// can see its broken state, and what else wants lines gets no more either: the run is over.
    fn callback(&self, progress: &mut Progress, call: impl FnOnce()) {
        if progress.panic.is_none() {
            progress.panic = catch_unwind(AssertUnwindSafe(call)).err();
        }
    }

    fn line(&self, stream: Stream, line: Line<'_>) {
        if let Some(on_line) = self.on_line {
            on_line(stream, line);
        }
        if let Some(events) = self.events.filter(|events| events.options().by == By::Line) {
            let at = self.shared.started.elapsed();
            events.send_output(stream, line.bytes.len(), self.exited, || Event::Line {
                stream,
                text: line.text().into_owned(),
                truncated: line.truncated(),
                at,
            });
        }
    }
}
