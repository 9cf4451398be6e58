//! Places in a log that outlive its rotation.
//!
//! A place is an offset in the content of a file. The file is known by its inode and, because a file may be
//! copied, truncated or packed, by a hash of its beginning and one of the bytes before the place.

use super::files::{FileId, LogFile};
use super::source::ReadAt;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::io::{self, Read};

/// Where a cursor leads from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Older,
    Newer,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) id: FileId,
    pub(super) offset: u64,
    head: u64,
    tail: u64,
}

/// What a caller is given to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) direction: Direction,
    /// A hash of the source's name.
    pub(super) source: u64,
    pub(super) mark: Mark,
    /// When it was given, in milliseconds since 1970.
    pub(super) given: u64,
}

/// Bytes that are hashed at either end.
const HASHED: u64 = 256;
const VERSION: u8 = 1;

impl Mark {
    /// The place `offset` in `file`. None where the file has become shorter.
    pub(super) fn new(file: &LogFile, offset: u64) -> io::Result<Option<Self>> {
        let hashes = if file.compressed { packed_hashes(file, offset)? } else { hashes(file, offset)? };
        Ok(hashes.map(|(head, tail)| Self { id: file.id, offset, head, tail }))
    }

    /// The same place in a copy.
    pub(super) fn moved_to(self, copy: &LogFile) -> Self {
        Self { id: copy.id, ..self }
    }

    /// Whether the content of `file` up to this place is what it was.
    pub(super) fn holds(&self, file: &LogFile) -> bool {
        matches!(Self::new(file, self.offset), Ok(Some(found)) if (found.head, found.tail) == (self.head, self.tail))
    }

    /// The one of `files` that this is a place in.
    pub(super) fn find(&self, files: &[LogFile]) -> Option<usize> {
        let same = |file: &LogFile| file.id == self.id && self.id != FileId::default();
        if let Some(index) = files.iter().position(|file| same(file) && self.holds(file)) {
            return Some(index);
        }
        // Nothing was read of it, so any file would do.
        if self.offset == 0 {
            return None;
        }
        files.iter().rposition(|file| !same(file) && self.holds(file))
    }
}

fn hashes(file: &LogFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
    let length = usize::try_from(offset.min(HASHED)).unwrap_or_default();
    let (mut head, mut tail) = (vec![0; length], vec![0; length]);
    let whole = file.file.read_at(&mut head, 0)? == length
        && file.file.read_at(&mut tail, offset - length as u64)? == length;
    Ok(whole.then(|| (hash(&head), hash(&tail))))
}

fn packed_hashes(file: &LogFile, offset: u64) -> io::Result<Option<(u64, u64)>> {
    let length = offset.min(HASHED);
    let mut content = file.unpacked();
    let mut head = Vec::new();
    if content.by_ref().take(length).read_to_end(&mut head)? as u64 != length {
        return Ok(None);
    }
    // The last bytes, of which the first may be among those read.
    let passed = (offset - length).saturating_sub(length);
    if io::copy(&mut content.by_ref().take(passed), &mut io::sink())? != passed {
        return Ok(None);
    }
    let mut tail = head.clone();
    let rest = offset - length - passed;
    if content.by_ref().take(rest).read_to_end(&mut tail)? as u64 != rest {
        return Ok(None);
    }
    let start = if passed > 0 { head.len() } else { tail.len() - head.len() };
    Ok(Some((hash(&head), hash(tail.get(start..).unwrap_or_default()))))
}

/// FNV-1a: not secret, and the same in every build.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = vec![VERSION, u8::from(self.direction == Direction::Newer)];
        let mark = &self.mark;
        for mut number in [
            self.source,
            mark.id.device,
            mark.id.inode,
            mark.id.born,
            mark.offset,
            mark.head,
            mark.tail,
            self.given,
        ] {
            // Seven bits a byte (LEB128): most are small.
            while number > 0x7f {
                bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
                number >>= 7;
            }
            bytes.push(u8::try_from(number).unwrap_or_default());
        }
        let check = hash(&bytes).to_le_bytes();
        bytes.extend_from_slice(check.get(..4).unwrap_or_default());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| ())?;
        let (bytes, check) = bytes.split_at_checked(bytes.len().saturating_sub(4)).ok_or(())?;
        let [VERSION, direction @ 0..=1, rest @ ..] = bytes else { return Err(()) };
        if hash(bytes).to_le_bytes().get(..4) != Some(check) {
            return Err(());
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
        let mut next = || number().ok_or(());
        let source = next()?;
        let id = FileId { device: next()?, inode: next()?, born: next()? };
        let mark = Mark { id, offset: next()?, head: next()?, tail: next()? };
        let direction = if *direction == 1 { Direction::Newer } else { Direction::Older };
        Ok(Self { direction, source, mark, given: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back_and_one_that_was_changed_does_not(
            newer: bool, numbers: [u64; 8], at in 0_usize..70, other in "[a-zA-Z0-9_-]"
        ) {
            let [source, device, inode, born, offset, head, tail, given] = numbers;
            let mark = Mark { id: FileId { device, inode, born }, offset, head, tail };
            let direction = if newer { Direction::Newer } else { Direction::Older };
            let cursor = Cursor { direction, source, mark, given };
            let text = cursor.to_string();
            prop_assert_eq!(text.parse(), Ok(cursor));
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
