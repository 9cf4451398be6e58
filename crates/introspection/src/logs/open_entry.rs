//! Finds the last entry before a position: its writer may be about to add lines to it, or the rest of its last line.

use super::backward::BackwardReader;
use super::cursor::FilePosition;
use super::files::LogFile;
use super::forward::{ForwardReader, LogReadLimits};
use std::io;

/// The size from which on an entry is no longer read again, in bytes.
pub(super) const MAX_OPEN_ENTRY_BYTES: u64 = 1 << 20;

/// Returns the position at `end` of `file`, from which the last entry before it is read again if it has got more lines.
/// `None` where the file is shorter than that.
///
/// # Errors
/// The file cannot be read.
pub(super) fn position_after(file: &LogFile, end: u64) -> io::Result<Option<FilePosition>> {
    let bytes = match last_entry_bytes(file, end) {
        Ok(bytes) => bytes,
        // It was truncated meanwhile.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
        Err(error) => return Err(error),
    };
    Ok(FilePosition::new(file, end)?.map(|position| position.after_open_entry(bytes)))
}

fn last_entry_bytes(file: &LogFile, end: u64) -> io::Result<u64> {
    let limits = LogReadLimits { chunk_bytes: 64 << 10, ..LogReadLimits::DEFAULT };
    let mut start = None;
    if file.is_decoded() {
        let mut reader = ForwardReader::new(file.decoded(), 0, 0, limits);
        while let Some(entry) = reader.next()?.filter(|entry| entry.span.start < end) {
            start = Some(entry.span.start);
        }
    } else {
        let mut reader = BackwardReader::new(&file.file, end, limits);
        let mut hits = Vec::new();
        while start.is_none() && reader.position() > 0 && end - reader.position() <= MAX_OPEN_ENTRY_BYTES {
            reader.chunk(&mut hits, |_, _| true)?;
            start = hits.last().map(|hit| hit.span.start);
        }
    }
    let bytes = start.map_or(0, |start| end - start);
    Ok(if bytes <= MAX_OPEN_ENTRY_BYTES { bytes } else { 0 })
}
