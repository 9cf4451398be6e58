//! Puts together an entry of a container, where lines of the other stream stand between its own.

use super::container;
use super::forward::{ForwardReader, LogEntrySpan, LogReadLimits};
use super::read_at::{RangeReader, ReadAt};
use std::io;

/// The number of bytes behind an entry in which the stream of the line there is looked for.
const NEXT_LINE_BYTES: usize = 4 << 10;

/// Returns the lines of the entry with `span` if `bytes`, which stand there, may not be exactly these: lines of the other
/// stream stand between them or behind.
///
/// # Errors
/// The source cannot be read.
pub(super) fn entry_bytes<S: ReadAt + ?Sized>(
    source: &S,
    span: &LogEntrySpan,
    bytes: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let Some(first) = lines.next().and_then(container::open) else { return Ok(None) };
    let is_other =
        |line: &[u8]| container::open(line).is_none_or(|line| line.piece.stderr != first.piece.stderr);
    if !lines.filter(|line| !line.is_empty()).any(is_other) {
        let mut next = vec![0; NEXT_LINE_BYTES];
        let read = source.read_at(&mut next, span.end)?;
        let next = next.get(..read).unwrap_or_default();
        let line = next.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.is_empty() || !is_other(line) {
            return Ok(None);
        }
    }
    let limits = LogReadLimits { chunk_bytes: 64 << 10, ..LogReadLimits::DEFAULT };
    let input = RangeReader { source, offset: span.start, end: u64::MAX };
    Ok(ForwardReader::new(input, span.start, 0, limits).next()?.map(|entry| entry.bytes))
}
