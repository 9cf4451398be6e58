//! Finding the long runs of token characters that a text has, without looking at most of its bytes.
//!
//! Every key and token has a stretch of at least [`MIN_RUN`] letters, digits and `_ - + /`; ordinary
//! text has few. So the search starts at the value and not at the name beside it: `token` and `key`
//! are everywhere in source code, sixteen such characters in a row are not.

/// The shortest run worth a look. The shortest of the known shapes is 20 characters.
pub(super) const MIN_RUN: usize = 16;

/// Sets of characters, as bits of [`CLASS`].
pub(super) type Set = u8;
/// `0-9 a-f`
pub(super) const HEX: Set = 1;
/// `0-9 A-Z a-z`
pub(super) const ALNUM: Set = 1 << 1;
/// [`ALNUM`] and `_`
pub(super) const WORD: Set = 1 << 2;
/// [`WORD`] and `-`: the alphabet of base64url (RFC 4648, section 5)
pub(super) const URL: Set = 1 << 3;
/// [`ALNUM`], `+` and `/`: the alphabet of base64 (RFC 4648, section 4)
pub(super) const BASE64: Set = 1 << 4;
/// `0-9 A-Z`
pub(super) const UPPER: Set = 1 << 5;
/// What a run is made of: [`URL`] and [`BASE64`] together.
pub(super) const RUN: Set = 1 << 6;
/// What may stand in a value that no quote ends: [`RUN`] and the signs that passwords have.
pub(super) const VALUE: Set = 1 << 7;

static CLASS: [Set; 256] = classes();

const fn classes() -> [Set; 256] {
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

/// Whether `byte` is in `set`.
#[inline]
pub(super) fn is(byte: u8, set: Set) -> bool {
    CLASS[byte as usize] & set != 0
}

/// Whether the byte at `at` exists and is in `set`.
#[inline]
pub(super) fn is_at(bytes: &[u8], at: usize, set: Set) -> bool {
    bytes.get(at).is_some_and(|&byte| is(byte, set))
}

/// The end of the characters of `set` that begin at `start`, at most `most` of them.
pub(super) fn end_of(bytes: &[u8], start: usize, set: Set, most: usize) -> usize {
    let limit = start.saturating_add(most).min(bytes.len());
    let mut end = start;
    while end < limit && is(bytes[end], set) {
        end += 1;
    }
    end
}

/// The start of the characters of `set` that end at `end`, at most `most` of them.
pub(super) fn start_of(bytes: &[u8], end: usize, set: Set, most: usize) -> usize {
    let limit = end.saturating_sub(most);
    let mut start = end;
    while start > limit && is(bytes[start - 1], set) {
        start -= 1;
    }
    start
}

/// The runs of `text`, each as its start and end.
pub(super) fn runs(bytes: &[u8]) -> Runs<'_> {
    Runs { bytes, start: 0 }
}

/// The iterator that [`runs`] returns.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    /// No run begins before this.
    start: usize,
}

impl Iterator for Runs<'_> {
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
