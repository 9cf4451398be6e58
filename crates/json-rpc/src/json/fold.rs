//! The names of members as parsers compare them that do not compare them exactly.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Returns the folded form of `name`. Two names have the same folded form if a parser that ignores the case of letters
/// and the ways in which Unicode writes one letter (NFKC) takes them for one name.
///
/// Go's `encoding/json` folds case, and takes the long s (U+017F) for an s and the Kelvin sign (U+212A) for a k. .NET
/// compares upper-case letters. A parser in C reads a name only up to the first U+0000.
pub fn folded_name(name: &str) -> Cow<'_, str> {
    // The usual name is folded already.
    if name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let name = name.split('\0').next().unwrap_or_default();
    if name.is_ascii() {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    // To lower case at both ends: `ẞ` has an upper case only as `ß`, and a final sigma is one only in lower case.
    let lower = name.nfkc().flat_map(char::to_lowercase);
    Cow::Owned(lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect())
}

/// Returns [`folded_name`] without `-` and `_`, which Go's `encoding/json/v2` and many mappers of names ignore as well.
pub fn loosely_folded_name(name: &str) -> Cow<'_, str> {
    match folded_name(name) {
        folded if folded.contains(['-', '_']) => Cow::Owned(folded.replace(['-', '_'], "")),
        folded => folded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_parser_takes_for_one_fold_to_one() {
        for (one, other) in [
            ("path", "PATH"),
            ("tasks", "taſKs"),
            ("tasks", "TA\u{17f}\u{212a}S"),
            ("straße", "STRASSE"),
            ("stra\u{1e9e}e", "strasse"),
            ("σίσυφος", "ΣΊΣΥΦΟΣ"),
            ("caf\u{e9}", "CAFE\u{301}"),
            ("path", "\u{ff50}ath"),
            ("id", "\u{131}d"),
            ("path", "path\0x"),
            ("\u{3b8}", "\u{3f4}"),
        ] {
            assert_eq!(folded_name(one), folded_name(other), "{one:?} {other:?}");
        }
        for (one, other) in [("path", "paths"), ("file_path", "filepath"), ("http_proxy", "https_proxy")] {
            assert_ne!(folded_name(one), folded_name(other), "{one:?} {other:?}");
        }
        assert_eq!(loosely_folded_name("file_path"), loosely_folded_name("File-PATH"));
        assert_eq!(loosely_folded_name("filePath"), loosely_folded_name("file_path"));
    }
}
