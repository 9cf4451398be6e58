//! Names and texts as git prints them.

use crate::workspace::printable;
use std::ffi::OsStr;
use std::fmt::Write as _;

/// Returns `path`, which is relative to the top folder, relative to the folder `prefix` instead. Bytes that are no
/// UTF-8 are shown as `\xff`.
pub(super) fn relative_to(prefix: &[u8], path: &[u8]) -> String {
    if prefix.is_empty() {
        return escape_non_utf8(path);
    }
    let folder: Vec<_> = prefix.split(|byte| *byte == b'/').collect();
    let parts: Vec<_> = path.split(|byte| *byte == b'/').collect();
    // The last part is the name of the path itself, even if a folder on the way has the same.
    let parents = parts.iter().take(parts.len().saturating_sub(1));
    let common = folder.iter().zip(parents).take_while(|(a, b)| a == b).count();
    let mut relative = "../".repeat(folder.len() - common);
    for (index, part) in parts.iter().skip(common).enumerate() {
        if index > 0 {
            relative.push('/');
        }
        relative.push_str(&escape_non_utf8(part));
    }
    // Empty for the folder itself, which git lists where it is untracked as a whole.
    if relative.is_empty() { "./".to_owned() } else { relative }
}

fn escape_non_utf8(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Returns a name for use in a line of text. Control characters, which could forge lines, are escaped.
pub(super) fn printable_line(name: &str) -> String {
    printable(OsStr::new(name))
}

/// Iterates over the fields of output in which each one ends with NUL (`-z`).
pub(super) fn nul_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    // Splitting nothing gives one empty field.
    let is_empty = bytes.is_empty();
    bytes.split(|byte| *byte == 0).filter(move |_| !is_empty)
}

/// Returns bytes as text, with U+FFFD for those that are no UTF-8.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the start of `text`, at most `max_bytes`: whole lines, or the part of the first that fits.
pub(super) fn truncate_to_lines(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let kept = text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default();
    kept.rfind('\n').and_then(|newline| kept.get(..=newline)).unwrap_or(kept)
}

/// Returns `count` and the noun that goes with it.
pub(super) fn count_of(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// The most paths that a message names.
const MAX_NAMED: usize = 10;

/// Returns the first of `paths`, which are relative to the top folder, relative to `prefix`; and `...` if there are more.
pub(super) fn first_names<'a>(prefix: &[u8], mut paths: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut named: Vec<_> = paths.by_ref().take(MAX_NAMED).map(|path| relative_to(prefix, path)).collect();
    if paths.next().is_some() {
        named.push("...".to_owned());
    }
    named
}

/// Returns names for use in a line of text.
pub(super) fn printable_list(names: &[String]) -> String {
    names.iter().map(|name| printable_line(name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_folder_that_was_named() {
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
            assert_eq!(relative_to(prefix.as_bytes(), path.as_bytes()), seen);
        }
    }

    #[test]
    fn names_of_other_bytes_can_be_told_apart() {
        assert_eq!(relative_to(b"", b"\xff\xc3\xa4\xc3"), "\\xff\u{e4}\\xc3");
        assert_eq!(relative_to(b"a", b"a/\xfe"), "\\xfe");
    }

    #[test]
    fn fields_are_what_nul_ends() {
        assert_eq!(nul_fields(b"").count(), 0);
        assert_eq!(nul_fields(b"a\0\0b\0").collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
        assert_eq!(nul_fields(b"a\0b").collect::<Vec<_>>(), [&b"a"[..], b"b"]);
    }

    #[test]
    fn a_beginning_ends_with_a_line_and_never_within_a_character() {
        assert_eq!(truncate_to_lines("one\ntwo\n", 8), "one\ntwo\n");
        assert_eq!(truncate_to_lines("one\ntwo\n", 6), "one\n");
        assert_eq!(truncate_to_lines("ää", 3), "ä");
    }
}
