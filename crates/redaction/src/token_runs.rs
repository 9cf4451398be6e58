//! Finding the long runs of token characters that a text has, without looking at most of its bytes.
//!
//! Every key and token has a stretch of at least [`MIN_RUN`] letters, digits and `_ - + /`; ordinary
//! text has few. So the search starts at the value and not at the name beside it: `token` and `key`
//! are everywhere in source code, sixteen such characters in a row are not.

/// The shortest run worth a look. The shortest of the known shapes is 20 characters.
pub(crate) const MIN_RUN: usize = 16;

/// Sets of characters, as bits of [`CLASS`].
pub(crate) type CharacterSet = u8;
/// `0-9 a-f`
pub(crate) const HEX: CharacterSet = 1;
/// `0-9 A-Z a-z`
pub(crate) const ALNUM: CharacterSet = 1 << 1;
/// [`ALNUM`] and `_`
pub(crate) const WORD: CharacterSet = 1 << 2;
/// [`WORD`] and `-`: the alphabet of base64url (RFC 4648, section 5)
pub(crate) const URL: CharacterSet = 1 << 3;
/// [`ALNUM`], `+` and `/`: the alphabet of base64 (RFC 4648, section 4)
pub(crate) const BASE64: CharacterSet = 1 << 4;
/// `0-9 A-Z`
pub(crate) const UPPER: CharacterSet = 1 << 5;
/// The characters of a run: [`URL`] and [`BASE64`] together.
pub(crate) const RUN: CharacterSet = 1 << 6;
/// The characters of a value that no quote ends: [`RUN`] and the signs that passwords have.
pub(crate) const VALUE: CharacterSet = 1 << 7;

static CLASS: [CharacterSet; 256] = classes();

const fn classes() -> [CharacterSet; 256] {
    let mut table = [0; 256];
    let mut byte = 0usize;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "the loop ends at 256")]
        let b = byte as u8;
        let mut set = 0;
        if b.is_ascii_digit() || (b >= b'a' && b <= b'f') {
            set |= HEX;
        }
        if b.is_ascii_digit() || b.is_ascii_uppercase() {
            set |= UPPER;
        }
        if b.is_ascii_alphanumeric() {
            set |= ALNUM | WORD | URL | BASE64 | RUN | VALUE;
        }
        match b {
            b'_' => set |= WORD | URL | RUN | VALUE,
            b'-' => set |= URL | RUN | VALUE,
            b'+' | b'/' => set |= BASE64 | RUN | VALUE,
            b'.' | b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'~' => set |= VALUE,
            _ => {}
        }
        table[byte] = set;
        byte += 1;
    }
    table
}

/// Returns true if `byte` is in `set`.
#[inline]
pub(crate) fn is(byte: u8, set: CharacterSet) -> bool {
    CLASS[byte as usize] & set != 0
}

/// Returns true if the byte at `at` exists and is in `set`.
#[inline]
pub(crate) fn is_at(bytes: &[u8], at: usize, set: CharacterSet) -> bool {
    bytes.get(at).is_some_and(|&byte| is(byte, set))
}

/// Returns the end of the characters of `set` that begin at `start`, at most `max_length` of them.
pub(crate) fn end_of(bytes: &[u8], start: usize, set: CharacterSet, max_length: usize) -> usize {
    let limit = start.saturating_add(max_length).min(bytes.len());
    let mut end = start;
    while end < limit && is(bytes[end], set) {
        end += 1;
    }
    end
}

/// Returns the start of the characters of `set` that end at `end`, at most `max_length` of them.
pub(crate) fn start_of(bytes: &[u8], end: usize, set: CharacterSet, max_length: usize) -> usize {
    let limit = end.saturating_sub(max_length);
    let mut start = end;
    while start > limit && is(bytes[start - 1], set) {
        start -= 1;
    }
    start
}

/// Returns the runs of `bytes`, each as its start and end.
pub(crate) fn runs(bytes: &[u8]) -> CharacterRuns<'_> {
    CharacterRuns { bytes, start: 0 }
}

/// The iterator that [`runs`] returns.
pub(crate) struct CharacterRuns<'a> {
    bytes: &'a [u8],
    /// No run begins before this.
    start: usize,
}

impl Iterator for CharacterRuns<'_> {
    type Item = (usize, usize);

    /// Looks at the last byte of where the next run would have to lie and then backwards: the first
    /// byte that is not of the set moves the search to behind it, usually after a byte or two.
    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        let bytes = self.bytes;
        let mut start = self.start;
        'place: loop {
            let window = bytes.get(start..start + MIN_RUN)?;
            for at in (0..MIN_RUN).rev() {
                if !is(window[at], RUN) {
                    start += at + 1;
                    continue 'place;
                }
            }
            let end = end_of(bytes, start + MIN_RUN, RUN, usize::MAX);
            self.start = end;
            return Some((start, end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_long_run_is_found_and_nothing_else(text in "[a-c/ .]{0,120}|([a-c]{14,18}[ .]){0,8}") {
            let mut expected = Vec::new();
            let mut start = 0;
            for piece in text.split(|c: char| !is(c as u8, RUN)) {
                if piece.len() >= MIN_RUN {
                    expected.push((start, start + piece.len()));
                }
                start += piece.len() + 1;
            }
            prop_assert_eq!(runs(text.as_bytes()).collect::<Vec<_>>(), expected);
        }
    }
}
