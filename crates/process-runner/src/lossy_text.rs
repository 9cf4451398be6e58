//! Converts bytes to text: UTF-8 boundaries, lossy conversion with a count, sizes for people.

use std::borrow::Cow;

/// Returns how many bytes at the end of `bytes`, 0 to 3, are the start of a UTF-8 character that is not finished there.
///
/// Bytes that can never become a character are not counted: they are an error of the text and not of the cut.
pub(crate) fn unfinished_suffix(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    for start in (from..bytes.len()).rev() {
        let byte = bytes[start];
        if byte & 0xC0 == 0x80 {
            continue; // a continuation byte: its first byte is further left
        }
        return match std::str::from_utf8(&bytes[start..]) {
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => bytes.len() - start,
            _ => 0,
        };
    }
    0
}

/// Returns how many bytes at the start of `bytes`, 0 to 3, are the rest of a UTF-8 character that began before them.
pub(crate) fn orphaned_prefix(bytes: &[u8]) -> usize {
    // A character has at most 3 continuation bytes, so 4 of them are no rest of one.
    let orphans = bytes.iter().take(4).take_while(|byte| **byte & 0xC0 == 0x80).count();
    if orphans > 3 { 0 } else { orphans }
}

/// Returns the text of `bytes`, with each sequence that is not UTF-8 replaced by U+FFFD, and the number of those.
pub(crate) fn lossy(bytes: &[u8]) -> (Cow<'_, str>, u64) {
    let text = String::from_utf8_lossy(bytes);
    let replaced = match &text {
        Cow::Borrowed(_) => 0,
        Cow::Owned(_) => bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count() as u64,
    };
    (text, replaced)
}

/// Returns a size for people, in decimal units: `999 B`, `1.2 kB`, `3.4 MB`, `5.6 GB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    for (size, name) in UNITS {
        if bytes >= size {
            let tenths = bytes / (size / 10);
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_unfinished_character_is_counted_and_an_impossible_one_is_not() {
        for (bytes, unfinished) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("é".as_bytes(), 0),
            (&"é".as_bytes()[..1], 1),
            (&"a€".as_bytes()[..3], 2),
            (&"a😀".as_bytes()[..4], 3),
            (&"a😀".as_bytes()[..2], 1),
            (b"\xFF", 0),
            (b"\xC0", 0),
            (b"\xED\xA0", 0), // a surrogate
            (b"\x80\x80", 0),
        ] {
            assert_eq!(unfinished_suffix(bytes), unfinished, "{bytes:?}");
        }
    }

    #[test]
    fn sizes_are_written_with_one_decimal() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (1_199, "1.1 kB"),
            (1_250_000, "1.2 MB"),
            (999_999_999, "999.9 MB"),
            (u64::MAX, "18446744073.7 GB"),
        ] {
            assert_eq!(human_bytes(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn a_cut_anywhere_leaves_whole_characters_on_both_sides(text in "[aé€😀]{0,12}", at in 0..48_usize) {
            let bytes = text.as_bytes();
            let (left, right) = bytes.split_at(at.min(bytes.len()));
            let left = &left[..left.len() - unfinished_suffix(left)];
            let right = &right[orphaned_prefix(right)..];
            prop_assert!(text.starts_with(std::str::from_utf8(left).expect("whole")));
            prop_assert!(text.ends_with(std::str::from_utf8(right).expect("whole")));
            prop_assert!(bytes.len() - left.len() - right.len() <= 4);
        }
    }
}
