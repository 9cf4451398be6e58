//! `declare`, `typeset`, `local`, `export`, `readonly` and `unset`, whose words are names with values.

use super::arithmetic::{is_name, is_number};
use super::visitor::{AssignedValue, LineVisitor};
use super::word::ShellWord;

/// Reads the words of a declaration.
pub(super) fn read_words(visitor: &mut impl LineVisitor, words: &[ShellWord]) {
    for word in words {
        read_word(visitor, word);
    }
}

/// Reads one word of a declaration: an option, a name, or a name with its value.
pub(super) fn read_word(visitor: &mut impl LineVisitor, word: &ShellWord) {
    let Some(text) = word.value() else {
        // The name is known if the word begins with it.
        let name = word.text.trim_start_matches('"').split_once('=').map(|(name, _)| name);
        return match name.filter(|name| is_name(name) && word.text.starts_with('"')) {
            Some(name) => visitor.assign_for_programs(name.to_owned(), AssignedValue::DeclaredText),
            None => visitor.evaluates_text(),
        };
    };
    if text.starts_with(['-', '+']) {
        return read_option(visitor, text);
    }
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let name = name.strip_suffix('+').unwrap_or(name);
    // The index in a name is expanded, and so are the elements of a list.
    if !is_name(name) || value.is_some_and(|value| value.starts_with('(')) {
        return visitor.evaluates_text();
    }
    let is_text = value.is_some_and(|value| !is_number(value));
    let value = if is_text { AssignedValue::Text } else { AssignedValue::Number };
    visitor.assign_for_programs(name.to_owned(), value);
}

/// Reads an option: `-i` has later values computed, and `-n` makes a name stand for another, which may have an index.
pub(super) fn read_option(visitor: &mut impl LineVisitor, option: &str) {
    if option.contains(['i', 'n']) {
        visitor.evaluates_text();
    }
}
