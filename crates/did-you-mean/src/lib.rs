//! The nearest of several names, for error messages that say "did you mean …?".
//!
//! ```
//! assert_eq!(did_you_mean::nearest("maxResult", ["path", "max_results"]), Some("max_results"));
//! assert_eq!(did_you_mean::nearest_file_name("Crago.toml", ["Cargo.toml", "src"]), Some("Cargo.toml"));
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The longest name that is compared, in bytes. Nobody mistypes a longer one, and the comparison takes time in the
/// square of the length.
const MAX_NAME_BYTES: usize = 256;

/// Returns the identifier that `name` was probably meant to be, or `None` if no candidate is near enough.
///
/// Case, `_`, `-` and `.` do not count: `maxResults` is `max_results`. Past that, a third of the letters may
/// be wrong, left out, doubled or swapped; or one name may be a whole word of the other (`timeout` for
/// `call_timeout_ms`), or its start (`old_str` for `old_string`). Of equally near
/// candidates the one written most alike wins, then the first. A name of more than 256 bytes is near to none.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let wanted = letters(name);
    let max_distance = (wanted.chars().count() / 3).max(1);
    // Of names that are equally near by their letters, the one with the same case and separators is meant.
    let spelling = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters = letters(candidate);
            if letters == wanted {
                return Some(((0, spelling(candidate)), candidate));
            }
            let distance = strsim::damerau_levenshtein(&wanted, &letters);
            // Of two letters, one wrong is another name.
            if distance <= max_distance && wanted.chars().count() > 2 {
                return Some(((distance, spelling(candidate)), candidate));
            }
            let is_prefix = wanted.len() >= 4 && letters.starts_with(&wanted);
            (is_prefix || is_word(name, candidate) || is_word(candidate, name))
                // A shared word is the weakest hint, so it ranks after every slip.
                .then_some(((usize::MAX, 0), candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the file or program name that `name` was probably meant to be, or `None` if no candidate is near enough.
///
/// Unlike in identifiers, every character counts except for its case, since a folder holds many names that share
/// words. One slip is allowed in a name of up to five characters, two up to eight, three in longer ones. The
/// alphabetically first of equally near candidates wins, so that the order of a folder's entries does not matter.
pub fn nearest_file_name<C: AsRef<str> + Ord>(
    name: &str,
    candidates: impl IntoIterator<Item = C>,
) -> Option<C> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let wanted = name.to_lowercase();
    let max_distance = (wanted.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| {
            (strsim::damerau_levenshtein(&wanted, &candidate.as_ref().to_lowercase()), candidate)
        })
        .filter(|(distance, _)| *distance <= max_distance)
        .min()
        .map(|(_, candidate)| candidate)
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Returns true if `word` is one of the words of `name`. A word of less than four letters says too little.
fn is_word(word: &str, name: &str) -> bool {
    word.len() >= 4 && name.split(['_', '-', '.', ' ']).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_file_name};

    const NAMES: [&str; 6] =
        ["path", "max_results", "include_ignored", "call_timeout_ms", "max_timeout_ms", "old_string"];

    #[test]
    fn a_near_name_is_found() {
        for (given, meant) in [
            ("pat", "path"),
            ("paht", "path"),
            ("Path", "path"),
            ("maxResults", "max_results"),
            ("max-results", "max_results"),
            ("max_result", "max_results"),
            ("includeIgnore", "include_ignored"),
            ("oldString", "old_string"),
            ("old_str", "old_string"),
            ("timeout", "call_timeout_ms"),
            ("max_timeout", "max_timeout_ms"),
        ] {
            assert_eq!(nearest(given, NAMES), Some(meant), "{given}");
        }
    }

    #[test]
    fn a_far_name_is_not_guessed() {
        for given in ["", "x", "ms", "colour", "directory", "encoding", "a_very_long_name_of_nothing"] {
            assert_eq!(nearest(given, NAMES), None, "{given}");
        }
        assert_eq!(nearest("path", []), None);
        assert_eq!(nearest(&"x".repeat(257), ["x".repeat(257).as_str()]), None);
    }

    #[test]
    fn an_equal_name_in_another_spelling_beats_a_near_one() {
        assert_eq!(nearest("oldString", ["old_strings", "old_string"]), Some("old_string"));
    }

    #[test]
    fn a_file_name_may_have_a_slip_for_every_three_characters() {
        let names = ["Cargo.toml", "README.md", "a", "src"];
        assert_eq!(nearest_file_name("crago.toml", names), Some("Cargo.toml"));
        assert_eq!(nearest_file_name("readme.txt", names), Some("README.md"));
        assert_eq!(nearest_file_name("scr", names), Some("src"));
        assert_eq!(nearest_file_name("toml", names), None);
        assert_eq!(nearest_file_name(&"x".repeat(300), ["x".repeat(300)]), None);
    }
}
