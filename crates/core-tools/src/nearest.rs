//! The nearest of several names, for "did you mean …?".

/// A longer name, in bytes, is nobody's slip of the pen; to compare it would take its time.
const MAX_NAME: usize = 256;

/// The candidate that `name` was probably meant to be, or none that is near enough.
///
/// Case, `_`, `-` and `.` do not count: `maxResults` is `max_results`. Past that, a third of the letters may
/// be wrong, left out, doubled or swapped; or one name may be a whole word of the other (`timeout` for
/// `call_timeout_ms`), or its start (`old_str` for `old_string`). The first of equally near candidates wins. A name of
/// more than 256 bytes is near to none.
///
/// ```
/// use core_tools::nearest::nearest;
///
/// assert_eq!(nearest("max_result", ["path", "max_results"]), Some("max_results"));
/// assert_eq!(nearest("colour", ["path", "max_results"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let wanted = letters(name);
    let allowed = (wanted.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters = letters(candidate);
            if letters == wanted {
                return Some((0, candidate));
            }
            let distance = strsim::damerau_levenshtein(&wanted, &letters);
            // Of two letters, one wrong is another name.
            if distance <= allowed && wanted.chars().count() > 2 {
                return Some((distance, candidate));
            }
            let start = wanted.len() >= 4 && letters.starts_with(&wanted);
            (start || is_word(name, candidate) || is_word(candidate, name)).then_some((usize::MAX, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Whether `word` is one of the words of `name`. Short ones say too little.
fn is_word(word: &str, name: &str) -> bool {
    word.len() >= 4 && name.split(['_', '-', '.', ' ']).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::nearest;

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
}
