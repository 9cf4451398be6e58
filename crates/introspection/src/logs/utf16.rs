//! [`Utf16Reader`]: reads a log in UTF-16, as PowerShell and Windows services write it, as UTF-8.

use std::io::{self, Read};

/// The order of the two bytes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf16Order {
    /// The lower byte comes first.
    Little,
    /// The higher byte comes first.
    Big,
}

impl Utf16Order {
    /// Returns the order of a file that begins with `start`: by its byte order mark, or because every other byte is
    /// zero and the rest is printable ASCII.
    pub(super) fn detect(start: &[u8]) -> Option<Self> {
        if start.starts_with(&[0xff, 0xfe]) {
            return Some(Self::Little);
        }
        if start.starts_with(&[0xfe, 0xff]) {
            return Some(Self::Big);
        }
        let (units, _) = start.as_chunks::<2>();
        let is_text = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match units.len() {
            4.. if units.iter().all(|[low, high]| is_text(*low) && *high == 0) => Some(Self::Little),
            4.. if units.iter().all(|[high, low]| is_text(*low) && *high == 0) => Some(Self::Big),
            _ => None,
        }
    }
}

/// A reader of UTF-16 that yields UTF-8. What is no UTF-16 becomes U+FFFD.
pub(super) struct Utf16Reader<R> {
    input: R,
    order: Utf16Order,
    raw: Vec<u8>,
    /// The bytes at the beginning of `raw` that are left from the last read: half a unit or half a pair.
    kept: usize,
    text: Vec<u8>,
    /// The bytes of `text` that were yielded.
    used: usize,
    first: bool,
}

impl<R: Read> Utf16Reader<R> {
    pub(super) fn new(input: R, order: Utf16Order) -> Self {
        Self { input, order, raw: vec![0; 32 << 10], kept: 0, text: Vec::new(), used: 0, first: true }
    }

    /// Decodes the next bytes of the input. Returns false at its end.
    fn refill(&mut self) -> io::Result<bool> {
        let read = self.input.read(self.raw.get_mut(self.kept..).unwrap_or_default())?;
        let filled = self.kept + read;
        let (units, rest) = self.raw.get(..filled).unwrap_or_default().as_chunks::<2>();
        let mut units: Vec<u16> = units
            .iter()
            .map(|unit| match self.order {
                Utf16Order::Little => u16::from_le_bytes(*unit),
                Utf16Order::Big => u16::from_be_bytes(*unit),
            })
            .collect();
        let mut kept = rest.len();
        // The second half of a pair may come with the next read.
        if read > 0 && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
            kept += 2;
        }
        if self.first && !units.is_empty() {
            self.first = false;
            if units.first() == Some(&0xfeff) {
                units.remove(0);
            }
        }
        self.text.clear();
        self.used = 0;
        for character in char::decode_utf16(units) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.raw.copy_within(filled - kept..filled, 0);
        self.kept = kept;
        Ok(read > 0)
    }
}

impl<R: Read> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.text.len() {
            if !self.refill()? && self.text.is_empty() {
                return Ok(0);
            }
        }
        let rest = self.text.get(self.used..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        if let (Some(buffer), Some(rest)) = (buffer.get_mut(..length), rest.get(..length)) {
            buffer.copy_from_slice(rest);
        }
        self.used += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Yields a few bytes at a time.
    struct SlowReader<'a>(&'a [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    #[test]
    fn the_order_is_told_by_the_mark_or_by_zeros() {
        assert_eq!(Utf16Order::detect(b"\xff\xfeI\0"), Some(Utf16Order::Little));
        assert_eq!(Utf16Order::detect(b"\xfe\xff\0I"), Some(Utf16Order::Big));
        assert_eq!(Utf16Order::detect(b"I\0N\0F\0O\0"), Some(Utf16Order::Little));
        for other in [&b"INFO up and running"[..], b"\0\0\0\0\0\0\0\0", b"I\0", b""] {
            assert_eq!(Utf16Order::detect(other), None);
        }
    }

    proptest! {
        #[test]
        fn text_reads_back_however_it_arrives(text in "\\PC{0,60}", step in 1_usize..7, big: bool, marked: bool) {
            let order = if big { Utf16Order::Big } else { Utf16Order::Little };
            let units = marked.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            let bytes: Vec<u8> = units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect();
            let mut read = String::new();
            Utf16Reader::new(SlowReader(&bytes, step), order).read_to_string(&mut read).unwrap();
            let expected = text.strip_prefix('\u{feff}').filter(|_| !marked).unwrap_or(&text);
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), step in 1_usize..7) {
            let mut read = Vec::new();
            Utf16Reader::new(SlowReader(&bytes, step), Utf16Order::Little).read_to_end(&mut read).unwrap();
            prop_assert!(String::from_utf8(read).is_ok());
            Utf16Order::detect(&bytes);
        }
    }
}
