//! Positions in a log that stay valid when it is rotated, and the cursors that hold them.
//!
//! A position is an offset in the content of a file. The file is recognised by its inode and, because it may be
//! copied, truncated or compressed, by a hash of its first bytes and one of the bytes before the position.

use super::files::{FileId, LogFile};
use super::read_at::ReadAt;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::io::{self, Read};

/// The direction in which a cursor leads on from its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CursorDirection {
    Older,
    Newer,
}

/// A position in the content of a file, which survives renaming, copying and compression of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePosition {
    pub(super) id: FileId,
    pub(super) offset: u64,
    head: u64,
    tail: u64,
    /// The size of the last entry before the position, which is read again where it has got more lines; 0 if it is
    /// complete.
    pub(super) open_entry_bytes: u64,
}

/// The error for a text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of get_logs")]
pub(super) struct InvalidCursor;

/// A position in a source from which a later call reads on. Callers get it as opaque text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) direction: CursorDirection,
    /// The hash of the source's name, which tells a cursor of another source.
    pub(super) source: u64,
    /// A position for each file that is read: one for a file with its rotated predecessors, several for a glob, and
    /// none where there was no file yet.
    pub(super) positions: Vec<FilePosition>,
    /// The time it was issued, in milliseconds since 1970.
    pub(super) issued_ms: u64,
}

// Long enough to hold the time of an entry, which differs from file to file.
/// The number of bytes that are hashed at the beginning of a file and before a position.
const HASHED_BYTES: u64 = 256;
const VERSION: u8 = 3;

impl FilePosition {
    /// Creates the position `offset` in `file`. `None` where the file is shorter than that.
    pub(super) fn new(file: &LogFile, offset: u64) -> io::Result<Option<Self>> {
        let hashes = if file.is_decoded() { compressed_hashes(file, offset)? } else { hashes(file, offset)? };
        Ok(hashes.map(|(head, tail)| Self { id: file.id, offset, head, tail, open_entry_bytes: 0 }))
    }

    /// Returns the same position behind an entry of this size that may still get more lines.
    pub(super) fn after_open_entry(self, bytes: u64) -> Self {
        Self { open_entry_bytes: bytes.min(self.offset), ..self }
    }

    /// Returns the offset from which on is read: the beginning of the entry that may have got more lines.
    pub(super) fn reading_start(&self) -> u64 {
        self.offset.saturating_sub(self.open_entry_bytes)
    }

    /// Returns the same position in a copy of the file.
    pub(super) fn in_copy(self, copy: &LogFile) -> Self {
        Self { id: copy.id, ..self }
    }

    /// Returns whether `file` still has the content that stood before this position.
    pub(super) fn is_in(&self, file: &LogFile) -> bool {
        matches!(Self::new(file, self.offset), Ok(Some(found)) if (found.head, found.tail) == (self.head, self.tail))
    }

    /// Returns the index of the file that this position is in: the same inode first, else a copy.
    pub(super) fn find_in(&self, files: &[LogFile]) -> Option<usize> {
        let same = |file: &LogFile| file.id == self.id && self.id != FileId::default();
        if let Some(index) = files.iter().position(|file| same(file) && self.is_in(file)) {
            return Some(index);
        }
        // At offset 0 there is no content to compare: every file would match.
        if self.offset == 0 {
            return None;
        }
        files.iter().rposition(|file| !same(file) && self.is_in(file))
    }
}

fn hashes(file: &LogFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
    let length = usize::try_from(offset.min(HASHED_BYTES)).unwrap_or_default();
    let (mut head, mut tail) = (vec![0; length], vec![0; length]);
    let whole = file.file.read_at(&mut head, 0)? == length
        && file.file.read_at(&mut tail, offset - length as u64)? == length;
    Ok(whole.then(|| (fnv1a(&head), fnv1a(&tail))))
}

fn compressed_hashes(file: &LogFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
    let length = offset.min(HASHED_BYTES);
    let mut content = file.decoded();
    let mut head = Vec::new();
    if content.by_ref().take(length).read_to_end(&mut head)? as u64 != length {
        return Ok(None);
    }
    // A compressed stream cannot seek: skip to the tail, whose first bytes may be among those already read.
    let skipped = (offset - length).saturating_sub(length);
    if io::copy(&mut content.by_ref().take(skipped), &mut io::sink())? != skipped {
        return Ok(None);
    }
    let mut tail = head.clone();
    let rest = offset - length - skipped;
    if content.by_ref().take(rest).read_to_end(&mut tail)? as u64 != rest {
        return Ok(None);
    }
    let start = if skipped > 0 { head.len() } else { tail.len() - head.len() };
    Ok(Some((fnv1a(&head), fnv1a(tail.get(start..).unwrap_or_default()))))
}

/// Returns the FNV-1a hash of `bytes`: the same in every build, as cursors outlive a server, and not secret.
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = vec![VERSION, u8::from(self.direction == CursorDirection::Newer)];
        let positions = self.positions.iter().flat_map(|position| {
            let FilePosition { id, offset, head, tail, open_entry_bytes } = *position;
            [id.device, id.inode, id.created_ns, offset, head, tail, open_entry_bytes]
        });
        for mut number in [self.source, self.issued_ms].into_iter().chain(positions) {
            // LEB128, seven bits a byte: most of the numbers are small, and callers pay for each character.
            while number > 0x7f {
                bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
                number >>= 7;
            }
            bytes.push(u8::try_from(number).unwrap_or_default());
        }
        let check = fnv1a(&bytes).to_le_bytes();
        bytes.extend_from_slice(check.get(..4).unwrap_or_default());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl std::str::FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| InvalidCursor)?;
        let (bytes, check) = bytes.split_at_checked(bytes.len().saturating_sub(4)).ok_or(InvalidCursor)?;
        let [VERSION, direction @ 0..=1, rest @ ..] = bytes else { return Err(InvalidCursor) };
        if fnv1a(bytes).to_le_bytes().get(..4) != Some(check) {
            return Err(InvalidCursor);
        }
        let mut rest = rest.iter();
        let mut number = || {
            let (mut number, mut shift) = (0_u64, 0);
            loop {
                let byte = *rest.next()?;
                number |= u64::from(byte & 0x7f).checked_shl(shift)?;
                shift += 7;
                if byte < 0x80 {
                    return Some(number);
                }
            }
        };
        let source = number().ok_or(InvalidCursor)?;
        let issued_ms = number().ok_or(InvalidCursor)?;
        let mut positions = Vec::new();
        while let Some(device) = number() {
            let mut next = || number().ok_or(InvalidCursor);
            let id = FileId { device, inode: next()?, created_ns: next()? };
            let (offset, head, tail) = (next()?, next()?, next()?);
            positions.push(FilePosition { id, offset, head, tail, open_entry_bytes: next()? });
        }
        let direction = if *direction == 1 { CursorDirection::Newer } else { CursorDirection::Older };
        Ok(Self { direction, source, positions, issued_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back_and_one_that_was_changed_does_not(
            newer: bool,
            source: u64,
            issued_ms: u64,
            numbers in prop::collection::vec(any::<[u64; 7]>(), 0..4),
            at in 0_usize..70,
            other in "[a-zA-Z0-9_-]",
        ) {
            let position = |[device, inode, created_ns, offset, head, tail, open_entry_bytes]: [u64; 7]| {
                let id = FileId { device, inode, created_ns };
                FilePosition { id, offset, head, tail, open_entry_bytes }
            };
            let direction = if newer { CursorDirection::Newer } else { CursorDirection::Older };
            let positions = numbers.into_iter().map(position).collect();
            let cursor = Cursor { direction, source, positions, issued_ms };
            let text = cursor.to_string();
            prop_assert_eq!(text.parse(), Ok(cursor.clone()));
            let mut changed = text.clone();
            let at = at % text.len();
            changed.replace_range(at..=at, &other);
            prop_assert!(changed == text || changed.parse::<Cursor>() != Ok(cursor));
            prop_assert!(text[..at].parse::<Cursor>().is_err());
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}", packed in "[a-zA-Z0-9_-]{0,120}") {
            let _ = text.parse::<Cursor>();
            let _ = packed.parse::<Cursor>();
        }
    }
}
