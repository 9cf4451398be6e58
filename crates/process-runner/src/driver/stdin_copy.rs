//! Copies a program's input into its standard input.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pipe::PIPE_CHUNK;
use super::run_state::RunState;
use crate::outcome::StdinReport;
use crate::stdin::Stdin;
use crate::tree::StdinPipe;

/// A copy of bytes or of a reader into the program's standard input.
pub(super) struct StdinCopy {
    pipe: Option<StdinPipe>,
    source: StdinSource,
    written: u64,
    /// True if the program closed its end before everything was written.
    broken: bool,
    reader_failed: bool,
}

/// The bytes to copy.
enum StdinSource {
    /// The driver writes nothing: the program reads a file, or the handle writes.
    None,
    Bytes {
        bytes: Arc<Vec<u8>>,
        at: usize,
    },
    Reader {
        reader: Box<dyn AsyncRead + Send + Unpin>,
        buffer: Vec<u8>,
        at: usize,
        ended: bool,
    },
}

impl StdinCopy {
    /// Returns the copy, and the pipe if the handle is to write.
    pub(super) fn new(pipe: Option<StdinPipe>, stdin: &Stdin) -> (Self, Option<StdinPipe>) {
        let (source, pipe, piped) = match stdin {
            Stdin::Null | Stdin::File(_) => (StdinSource::None, None, None),
            #[cfg(unix)]
            Stdin::Terminal(_) => (StdinSource::None, None, None),
            Stdin::Piped => (StdinSource::None, None, pipe),
            Stdin::Bytes(bytes) => (StdinSource::Bytes { bytes: Arc::clone(bytes), at: 0 }, pipe, None),
            Stdin::Reader(shared) => match shared.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(reader) => {
                    (StdinSource::Reader { reader, buffer: Vec::new(), at: 0, ended: false }, pipe, None)
                }
                // Another run of a clone of the command was first.
                None => (StdinSource::None, None, None),
            },
        };
        (Self { pipe, source, written: 0, broken: false, reader_failed: false }, piped)
    }

    /// Writes as much as the pipe takes. Returns an error of the system; a pipe that the program closed is none.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        while let Some(pipe) = &mut self.pipe {
            let chunk = match &mut self.source {
                StdinSource::None => &[],
                StdinSource::Bytes { bytes, at } => &bytes[*at..],
                StdinSource::Reader { reader, buffer, at, ended } => {
                    if *at == buffer.len() && !*ended {
                        buffer.resize(PIPE_CHUNK, 0);
                        let mut read = ReadBuf::new(buffer);
                        match Pin::new(reader).poll_read(context, &mut read) {
                            // The buffer is empty again: `at == buffer.len()` means that a read is due.
                            Poll::Pending => {
                                buffer.clear();
                                *at = 0;
                                return None;
                            }
                            Poll::Ready(result) => {
                                let length = read.filled().len();
                                // A reader that fails ends the input, and the program decides what that means.
                                self.reader_failed |= result.is_err();
                                *ended = length == 0;
                                buffer.truncate(length);
                                *at = 0;
                            }
                        }
                    }
                    &buffer[*at..]
                }
            };
            if chunk.is_empty() {
                self.close(false);
                return None;
            }
            match Pin::new(pipe).poll_write(context, chunk) {
                Poll::Pending => return None,
                Poll::Ready(Ok(length)) => {
                    self.written += length as u64;
                    match &mut self.source {
                        StdinSource::Bytes { at, .. } | StdinSource::Reader { at, .. } => *at += length,
                        StdinSource::None => {}
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.close(true);
                    // A program may stop reading whenever it likes, as `head` does.
                    return (error.kind() != io::ErrorKind::BrokenPipe).then_some(error);
                }
            }
        }
        None
    }

    /// Closes our end. `early` says that the program gets no more although there may be more.
    pub(super) fn close(&mut self, early: bool) {
        if self.pipe.take().is_some() && early {
            self.broken = match &self.source {
                StdinSource::Bytes { bytes, at } => *at < bytes.len(),
                StdinSource::Reader { buffer, at, .. } => *at < buffer.len(),
                StdinSource::None => false,
            };
        }
    }

    pub(super) fn report(&self, shared: &RunState) -> StdinReport {
        StdinReport {
            written: self.written + shared.stdin_written.load(Ordering::Relaxed),
            total: match &self.source {
                StdinSource::Bytes { bytes, .. } => Some(bytes.len() as u64),
                _ => None,
            },
            broken_pipe: self.broken,
            reader_failed: self.reader_failed,
        }
    }
}
