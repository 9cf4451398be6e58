//! From whatever a program is to read into its standard input.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::READ;
use super::shared::Shared;
use crate::command::Stdin;
use crate::outcome::StdinReport;
use crate::tree::StdinPipe;

/// Copies what the program is to read into its standard input.
pub(super) struct StdinCopy {
    pipe: Option<StdinPipe>,
    source: StdinSource,
    written: u64,
    broken: bool,
    reader_failed: bool,
}

enum StdinSource {
    Nothing,
    /// The handle writes.
    Piped,
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
    /// The copy, and the pipe if the handle is to write.
    pub(super) fn new(pipe: Option<StdinPipe>, stdin: &Stdin) -> (Self, Option<StdinPipe>) {
        let (source, pipe, piped) = match stdin {
            Stdin::Null | Stdin::File(_) => (StdinSource::Nothing, None, None),
            #[cfg(unix)]
            Stdin::Terminal(_) => (StdinSource::Nothing, None, None),
            Stdin::Piped => (StdinSource::Piped, None, pipe),
            Stdin::Bytes(bytes) => (StdinSource::Bytes { bytes: Arc::clone(bytes), at: 0 }, pipe, None),
            Stdin::Reader(shared) => match shared.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(reader) => {
                    (StdinSource::Reader { reader, buffer: Vec::new(), at: 0, ended: false }, pipe, None)
                }
                None => (StdinSource::Nothing, None, None),
            },
        };
        (Self { pipe, source, written: 0, broken: false, reader_failed: false }, piped)
    }

    /// Writes what there is room for. An error is one of ours, and not the program's closed end.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Option<io::Error> {
        while let Some(pipe) = &mut self.pipe {
            let chunk = match &mut self.source {
                StdinSource::Nothing | StdinSource::Piped => &[],
                StdinSource::Bytes { bytes, at } => &bytes[*at..],
                StdinSource::Reader { reader, buffer, at, ended } => {
                    if *at == buffer.len() && !*ended {
                        buffer.resize(READ, 0);
                        let mut read = ReadBuf::new(buffer);
                        match Pin::new(reader).poll_read(context, &mut read) {
                            Poll::Pending => {
                                buffer.clear();
                                *at = 0;
                                return None;
                            }
                            Poll::Ready(result) => {
                                let length = read.filled().len();
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
                        StdinSource::Nothing | StdinSource::Piped => {}
                    }
                }
                Poll::Ready(Err(error)) => {
                    self.close(true);
                    return (error.kind() != io::ErrorKind::BrokenPipe).then_some(error);
                }
            }
        }
        None
    }

    /// Closes our end. `early`: the program is to get no more, whatever there is.
    pub(super) fn close(&mut self, early: bool) {
        if self.pipe.take().is_some() && early {
            self.broken = match &self.source {
                StdinSource::Bytes { bytes, at } => *at < bytes.len(),
                StdinSource::Reader { buffer, at, .. } => *at < buffer.len(),
                StdinSource::Nothing | StdinSource::Piped => false,
            };
        }
    }

    pub(super) fn report(&self, shared: &Shared) -> StdinReport {
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
