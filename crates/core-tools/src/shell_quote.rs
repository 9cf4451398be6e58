//! Command lines as a person would type them.

use std::borrow::Cow;

/// Quotes a word so that a POSIX shell takes it literally; a plain word stays as it is.
pub(crate) fn shell_quote(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''")).into()
}

/// Joins words to a line that a POSIX shell splits into the same words.
#[cfg(feature = "ci")]
pub(crate) fn shell_join<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    words.into_iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" ")
}
