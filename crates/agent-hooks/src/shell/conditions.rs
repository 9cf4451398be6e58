//! The words of `test`, `[` and `[[`, some of which bash computes or takes for names with an index.

use super::arithmetic::{self, is_name, is_number, split_name};
use super::visitor::LineVisitor;
use super::word::ShellWord;

/// The operators of `[[` that compute both of their words.
const COMPARISONS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// The operators that take the name of a variable and expand the index in it.
const OF_NAMES: [&str; 2] = ["-v", "-R"];

/// The words that can follow an operand of `test`. A word that stands before any other may be an operator.
const AFTER_OPERAND: [&str; 19] = [
    "]", ")", "=", "==", "!=", "<", ">", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot",
    "-ef", "(",
];

/// Reads the words of `test` or `[`, which compares numbers without computing them.
pub(super) fn read_test(words: &[ShellWord], visitor: &mut impl LineVisitor) {
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let Some(text) = word.value() else {
            // Several words could be an operator and its name.
            if may_be_several(word) {
                split_variable(word, visitor);
            }
            if next.is_some_and(|next| next.value().is_none_or(|text| !AFTER_OPERAND.contains(&text))) {
                visitor.evaluates_text();
            }
            continue;
        };
        if OF_NAMES.contains(&text)
            && next.is_some_and(|next| next.value().is_none_or(|name| name != "]" && !is_name(name)))
        {
            visitor.evaluates_text();
        }
    }
}

/// Reads the source of `[ … ]`.
pub(super) fn read_bracket(source: &str, visitor: &mut impl LineVisitor) {
    let inner = source.strip_prefix('[').and_then(|rest| rest.trim_end().strip_suffix(']'));
    match inner.and_then(tokens) {
        Some(tokens) => read_test(&tokens.into_iter().map(word).collect::<Vec<_>>(), visitor),
        None => visitor.evaluates_text(),
    }
}

/// Reads the source of `[[ … ]]`.
pub(super) fn read_double_bracket(source: &str, visitor: &mut impl LineVisitor) {
    let inner = source.strip_prefix("[[").and_then(|rest| rest.trim_end().strip_suffix("]]"));
    let Some(tokens) = inner.and_then(tokens) else { return visitor.evaluates_text() };
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        if COMPARISONS.contains(token) {
            let before = at.checked_sub(1).and_then(|at| tokens.get(at)).copied().unwrap_or_default();
            for operand in [before, next] {
                let quoted = operand.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                arithmetic::read(quoted.unwrap_or(operand), visitor);
            }
        } else if OF_NAMES.contains(token) && !is_name(next) {
            visitor.evaluates_text();
        }
    }
}

/// Returns the word that a token is: literal if nothing in it is quoted in part or expanded.
fn word(token: &str) -> ShellWord {
    let quoted = ['\'', '"'].iter().find_map(|quote| token.strip_prefix(*quote)?.strip_suffix(*quote));
    let text = quoted.unwrap_or(token);
    match text.contains(['\'', '"', '\\', '$', '`', '*', '?', '[', '{']) && token != "[" {
        true => ShellWord::dynamic(token),
        false => ShellWord::literal(text),
    }
}

/// Returns true if a word that only the run knows could be more words than one.
pub(super) fn may_be_several(word: &ShellWord) -> bool {
    let inner = word.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    !word.is_literal
        && inner.is_none_or(|inner| inner.contains('"') || inner.contains('@'))
        && !is_number(&word.text)
}

/// Notes the variable whose value could be several words, or that it cannot be named.
pub(super) fn split_variable(word: &ShellWord, visitor: &mut impl LineVisitor) {
    let bare = word
        .text
        .strip_prefix('$')
        .map(|text| text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(text));
    match bare.and_then(split_name) {
        Some((name, "")) => visitor.computes_with(name),
        _ => visitor.evaluates_text(),
    }
}

/// Splits a condition into its words, at blanks and at the operators of `[[`. `None` if a quote or a bracket is not closed.
fn tokens(text: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    let mut start = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let is_group = matches!(character, '(' | ')') && start.is_none() || character == ')';
        let is_operator =
            matches!(character, '&' | '|') && characters.peek().is_some_and(|(_, next)| *next == character);
        if character.is_whitespace() || is_group || is_operator {
            tokens.extend(start.take().map(|start| &text[start..at]));
            if is_operator {
                characters.next();
            }
            continue;
        }
        start.get_or_insert(at);
        match character {
            '\\' => {
                characters.next()?;
            }
            '\'' => {
                characters.by_ref().find(|(_, end)| *end == '\'')?;
            }
            '"' | '`' => closing(&mut characters, character)?,
            '(' => closing(&mut characters, ')')?,
            '{' => closing(&mut characters, '}')?,
            _ => {}
        }
    }
    tokens.extend(start.map(|start| &text[start..]));
    Some(tokens)
}

/// Skips to the end of what `close` closes, with everything nested in it.
fn closing(characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>, close: char) -> Option<()> {
    while let Some((_, character)) = characters.next() {
        match character {
            _ if character == close => return Some(()),
            '\\' => {
                characters.next()?;
            }
            '\'' if close != '"' => {
                characters.by_ref().find(|(_, end)| *end == '\'')?;
            }
            '"' => closing(characters, '"')?,
            '(' if close != '"' => closing(characters, ')')?,
            '$' if characters.peek().is_some_and(|(_, next)| *next == '(') => {
                characters.next();
                closing(characters, ')')?;
            }
            '$' if characters.peek().is_some_and(|(_, next)| *next == '{') => {
                characters.next();
                closing(characters, '}')?;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn a_condition_is_split_at_blanks_and_operators_and_not_in_quotes() {
        for (text, expected) in [
            (" -v\t'a b' ", vec!["-v", "'a b'"]),
            ("(-v x)&&$(a b) -eq 1", vec!["-v", "x", "$(a b)", "-eq", "1"]),
            ("\"$(a \"b c\")\" || ${x:-a b}", vec!["\"$(a \"b c\")\"", "${x:-a b}"]),
            ("x =~ a\\ b", vec!["x", "=~", "a\\ b"]),
        ] {
            assert_eq!(tokens(text), Some(expected), "{text}");
        }
        for text in ["'a", "\"a", "$(a", "\\"] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }
}
