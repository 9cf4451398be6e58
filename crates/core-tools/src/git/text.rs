//! Names and texts as git gives them.

use crate::workspace::printable;
use std::ffi::OsStr;
use std::fmt::Write as _;

/// A path beneath the top folder, as seen from the folder `prefix` beneath it. Bytes that are no UTF-8 are told
/// as `\xff`.
pub(super) fn seen_from(prefix: &[u8], path: &[u8]) -> String {
    if prefix.is_empty() {
        return escaped(path);
    }
    let own: Vec<_> = prefix.split(|byte| *byte == b'/').collect();
    let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
    // The last part is the name itself, be it that of a folder on the way.
    let common =
        own.iter().zip(parts.iter().take(parts.len().saturating_sub(1))).take_while(|(a, b)| a == b).count();
    let mut seen = "../".repeat(own.len() - common);
    for (index, part) in parts.iter().skip(common).enumerate() {
        if index > 0 {
            seen.push('/');
        }
        seen.push_str(&escaped(part));
    }
    // The folder itself, where it is one path in whole.
    if seen.is_empty() { "./".to_owned() } else { seen }
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A name in a line of text: control characters, which could forge lines, are escaped.
pub(super) fn line(name: &str) -> String {
    printable(OsStr::new(name))
}

/// The fields of a stream in which each one is ended by NUL.
pub(super) fn fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let none = bytes.is_empty();
    bytes.split(|byte| *byte == 0).filter(move |_| !none)
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning of `text`, at most `most` bytes and whole lines where there is one, and whether that is all.
pub(super) fn beginning(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, true);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    (kept.rfind('\n').and_then(|line| kept.get(..=line)).unwrap_or(kept), false)
}

pub(super) fn plural(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_the_folder_that_was_named() {
        for (prefix, path, seen) in [
            ("", "a/b", "a/b"),
            ("a", "a/b", "b"),
            ("a/b", "a/c", "../c"),
            ("a/b", "c", "../../c"),
            ("ab", "a/c", "../a/c"),
            ("a/b", "a/b/c/d", "c/d"),
            ("a/b", "a", "../../a"),
            ("a", "a/", "./"),
            ("a/b", "a/", "../"),
        ] {
            assert_eq!(seen_from(prefix.as_bytes(), path.as_bytes()), seen);
        }
    }

    #[test]
    fn names_of_other_bytes_can_be_told_apart() {
        assert_eq!(seen_from(b"", b"\xff\xc3\xa4\xc3"), "\\xff\u{e4}\\xc3");
        assert_eq!(seen_from(b"a", b"a/\xfe"), "\\xfe");
    }

    #[test]
    fn fields_are_what_nul_ends() {
        assert_eq!(fields(b"").count(), 0);
        assert_eq!(fields(b"a\0\0b\0").collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
        assert_eq!(fields(b"a\0b").collect::<Vec<_>>(), [&b"a"[..], b"b"]);
    }

    #[test]
    fn a_beginning_ends_with_a_line_and_never_within_a_character() {
        assert_eq!(beginning("one\ntwo\n", 8), ("one\ntwo\n", true));
        assert_eq!(beginning("one\ntwo\n", 6), ("one\n", false));
        assert_eq!(beginning("ää", 3), ("ä", false));
    }
}
