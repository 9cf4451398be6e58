//! Tests of what is masked and what is not. The secrets are made here from parts, none is real, and no scanner of
//! repositories should find one in these files.

mod logs;
mod options;
mod private_keys;
mod properties;
mod samples;
mod secrets;

use crate::{RedactionOptions, Redactor};

const LOWER_HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns `length` characters of `alphabet`, always the same ones for the same `seed`.
fn random(seed: u64, alphabet: &str, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(alphabet.as_bytes()[usize::try_from(state >> 33).unwrap() % alphabet.len()])
        })
        .collect()
}

fn redactor() -> Redactor {
    Redactor::new(RedactionOptions::default()).unwrap()
}
