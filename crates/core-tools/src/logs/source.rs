//! Bytes that can be read at any place.

use std::fs::File;
use std::io;

/// Something with bytes at places. Reading never moves anything, so one handle serves several readers.
pub(super) trait ReadAt {
    /// Fills `buffer` from `offset` on, as far as there is anything. How many bytes it has.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Has `buffer` be the `length` bytes from `offset` on.
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
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            #[cfg(unix)]
            let read = std::os::unix::fs::FileExt::read_at(self, rest, offset + filled as u64);
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

/// Reads `source` from `offset` up to `end`, in order.
pub(super) struct From<'a, S: ?Sized> {
    pub(super) source: &'a S,
    pub(super) offset: u64,
    pub(super) end: u64,
}

impl<S: ReadAt + ?Sized> io::Read for From<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let read = self.source.read_at(buffer.get_mut(..length).unwrap_or_default(), self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
