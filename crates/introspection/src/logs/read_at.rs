//! [`ReadAt`]: reading bytes at an offset.

use std::fs::File;
use std::io;

/// A source of bytes that is read at an offset. Reading moves no cursor, so several readers can share one handle.
pub(super) trait ReadAt {
    /// Fills `buffer` with the bytes from `offset` on and returns how many there were; fewer than its length only
    /// at the end of the source.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Replaces the content of `buffer` with the `length` bytes from `offset` on.
    ///
    /// # Errors
    /// The source ends before (`UnexpectedEof`), or cannot be read.
    fn fill(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> io::Result<()> {
        buffer.resize(length, 0);
        if self.read_at(buffer, offset)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        // One call may return fewer bytes than the file has: at most 2 GiB, and fewer on network file systems.
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            #[cfg(unix)]
            let read = std::os::unix::fs::FileExt::read_at(self, rest, offset + filled as u64);
            // This moves the handle's own cursor, which nothing here uses.
            #[cfg(windows)]
            let read = std::os::windows::fs::FileExt::seek_read(self, rest, offset + filled as u64);
            match read {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        if let (Some(buffer), Some(rest)) = (buffer.get_mut(..length), rest.get(..length)) {
            buffer.copy_from_slice(rest);
        }
        Ok(length)
    }
}

/// A reader of the bytes of `source` from `offset` up to `end`, in order.
pub(super) struct RangeReader<'a, S: ?Sized> {
    pub(super) source: &'a S,
    pub(super) offset: u64,
    pub(super) end: u64,
}

impl<S: ReadAt + ?Sized> io::Read for RangeReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let length = buffer.len().min(remaining);
        let read = self.source.read_at(buffer.get_mut(..length).unwrap_or_default(), self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
