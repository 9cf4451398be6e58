//! Finds many literal values in a text at once.

/// The fewest bytes of a value that is hidden. Shorter values occur by chance, and hiding them would garble the output.
pub(super) const MIN_SECRET_BYTES: usize = 6;

/// A search for every encoding of every secret.
///
/// It is the algorithm of Wu and Manber ("A fast algorithm for multi-pattern searching", 1994): the last three bytes of
/// a window say how far the window can be shifted without missing an occurrence.
// Secrets are long, so the shifts are too, and many secrets cost little more than one. An automaton would look at every
// byte of the text.
//
// The crate `redaction` has a search of its own (`literals.rs`): for whole texts, in which its few fixed literals mark where
// to look for the shape of a secret. This one is for streams without end in pieces of any size, so it also has to say where
// at the end of a piece a value may begin that goes on in the next, which no search of `aho-corasick` does.
pub(super) struct SecretMatcher {
    /// Sorted, so that forms with the same beginning are neighbours.
    sorted: Vec<SecretForm>,
    /// The length of the longest form.
    longest: usize,
    /// The length of the window. No form is shorter.
    window: usize,
    /// The shift for the block at the end of the window, by [`block_index`].
    shifts: Vec<u8>,
    /// True for each byte with which a form begins.
    first_bytes: [bool; 256],
}

/// One encoding of one secret.
struct SecretForm {
    bytes: Vec<u8>,
    /// The index of the longest other form that this one begins with.
    prefix: Option<usize>,
}

/// The number of bytes by which a shift is looked up.
const BLOCK_BYTES: usize = 3;

/// Returns the index of a block's shift in a table of `size`, which is a power of two.
// Knuth's multiplicative hashing: the multiplier is 2^32 divided by the golden ratio.
fn block_index(bytes: &[u8], size: usize) -> usize {
    let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    (number.wrapping_mul(0x9E37_79B1) >> 8) as usize & (size - 1)
}

impl SecretMatcher {
    /// Returns a matcher of `forms`, which must not be empty. Each must have at least [`MIN_SECRET_BYTES`] bytes.
    pub(super) fn new(mut forms: Vec<Vec<u8>>) -> Self {
        forms.sort();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        let window = forms.iter().map(Vec::len).min().unwrap_or(MIN_SECRET_BYTES).min(32);
        // Sparse, so that most blocks of a text without secrets have the longest shift.
        let size = (forms.len() * window * 8).next_power_of_two().clamp(1 << 12, 1 << 18);
        let longest_shift = window - BLOCK_BYTES + 1;
        let mut shifts = vec![u8::try_from(longest_shift).unwrap_or(u8::MAX); size];
        let mut first_bytes = [false; 256];
        let mut sorted: Vec<SecretForm> = Vec::with_capacity(forms.len());
        for bytes in forms {
            first_bytes[usize::from(bytes[0])] = true;
            for (start, part) in bytes[..window].windows(BLOCK_BYTES).enumerate() {
                let shift = &mut shifts[block_index(part, size)];
                *shift = (*shift).min(u8::try_from(window - BLOCK_BYTES - start).unwrap_or(u8::MAX));
            }
            // In sorted order it is the form before, or one that the form before begins with.
            let mut prefix = sorted.len().checked_sub(1);
            while let Some(at) = prefix
                && !bytes.starts_with(&sorted[at].bytes)
            {
                prefix = sorted[at].prefix;
            }
            sorted.push(SecretForm { bytes, prefix });
        }
        Self { sorted, longest, window, shifts, first_bytes }
    }

    /// Returns the start of the first form at or after `from`, and the end of the longest form with that start.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut end = from + self.window;
        while end <= text.len() {
            let shift =
                usize::from(self.shifts[block_index(&text[end - BLOCK_BYTES..end], self.shifts.len())]);
            if shift == 0
                && let Some(length) = self.longest_at(&text[end - self.window..])
            {
                let start = end - self.window;
                return Some((start, start + length));
            }
            end += shift.max(1);
        }
        None
    }

    /// Returns the length of the longest form that `text` begins with.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        if !self.first_bytes[usize::from(*text.first()?)] {
            return None;
        }
        // In sorted order it is the last form that is not after `text`, or one that this form begins with.
        let mut candidate = self.sorted.partition_point(|form| form.bytes.as_slice() <= text).checked_sub(1);
        while let Some(at) = candidate {
            let form = &self.sorted[at];
            if text.starts_with(&form.bytes) {
                return Some(form.bytes.len());
            }
            candidate = form.prefix;
        }
        None
    }

    /// Returns where a form may begin that goes on after the end of `text`, or the length of `text` if none does.
    pub(super) fn find_unfinished(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(self.longest - 1);
        let begins = |at: &usize| self.first_bytes[usize::from(text[*at])] && self.is_beginning(&text[*at..]);
        (from..text.len()).find(begins).unwrap_or(text.len())
    }

    /// Returns true if a form begins with `bytes` and is longer.
    fn is_beginning(&self, bytes: &[u8]) -> bool {
        let at = self.sorted.partition_point(|form| form.bytes.as_slice() <= bytes);
        // In sorted order the forms that begin with `bytes` and are longer follow it at once.
        self.sorted.get(at).is_some_and(|form| form.bytes.starts_with(bytes))
    }
}
