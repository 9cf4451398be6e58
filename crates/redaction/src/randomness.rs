//! The judgement whether a value was made by chance, as keys are, or written by a person.

use crate::token_runs::{HEX, is};

/// The number of bytes of a value that are judged. More would only make long values slow.
pub(crate) const MAX_JUDGED_BYTES: usize = 256;

/// Returns true if `value` has the look of chance: many changes between lower case, upper case and digits (words,
/// camelCase and paths have few), and a high entropy (repetition has none).
pub(crate) fn is_random(value: &[u8], min_change_rate: f64) -> bool {
    let value = &value[..value.len().min(MAX_JUDGED_BYTES)];
    let mut counts = [0u32; 256];
    let (mut changes, mut capitals, mut digits, mut letters, mut signs, mut hex) =
        (0u32, 0u32, 0u32, 0u32, 0u32, true);
    let mut last = 0;
    for &byte in value {
        counts[byte as usize] += 1;
        hex &= is(byte.to_ascii_lowercase(), HEX);
        let class = match byte {
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            b'0'..=b'9' => 3,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'&' | b'~' | b'?' => 4,
            _ => 0,
        };
        match class {
            1 | 2 => letters += 1,
            3 => digits += 1,
            4 => signs += 1,
            _ => continue,
        }
        if last == 2 && class == 1 {
            capitals += 1; // `Ab` is how a word begins.
        } else if class != last && last != 0 {
            changes += 1;
        }
        last = class;
    }
    let length = f64::from(digits + letters + signs);
    if letters == 0 || f64::from(changes) < length * min_change_rate {
        return false;
    }
    // Names of types and constants change as well, but they are made of words, and words have vowels: chance
    // makes a fifth of letters vowels, English two fifths.
    let few_changes = f64::from(changes) < length * 0.3;
    let (letters, vowels) = words(value, 4);
    if few_changes && letters > length * 0.6 && vowels > letters * 0.28 {
        return false;
    }
    if digits == 0 && (f64::from(changes + capitals) < length * 0.42 || words(value, 3).0 > length * 0.7) {
        return false;
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|&count| {
            let share = f64::from(count) / total;
            -share * share.log2()
        })
        .sum();
    // 16 characters cannot have more than 4 bits each, and chance gives them about 3.7.
    entropy >= if hex || value.len() < 20 { 3.0 } else { 3.5 }
}

/// Returns how many letters of `value` are in words of at least `min_letters` letters (lower case, or with a capital
/// first), and how many of those are vowels.
fn words(value: &[u8], min_letters: usize) -> (f64, f64) {
    let (mut letters, mut vowels) = (0u32, 0u32);
    let (mut start, mut vowels_here) = (0, 0);
    for (at, &byte) in value.iter().chain(b" ").enumerate() {
        if !byte.is_ascii_lowercase() {
            if at - start >= min_letters {
                letters += u32::try_from(at - start).unwrap_or(u32::MAX);
                vowels += vowels_here;
            }
            // A capital begins a word; anything else stands before one.
            start = if byte.is_ascii_uppercase() { at } else { at + 1 };
            vowels_here = 0;
        }
        vowels_here += u32::from(matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u'));
    }
    (f64::from(letters), f64::from(vowels))
}
