//! The texts of `${…}`, of lists and of conditions, as far as bash evaluates something in them.

use super::arithmetic::{self, is_name, split_name};
use super::conditions;
use super::visitor::LineVisitor;

/// Reads `((…))`, `[[ … ]]` or `[ … ]`. A block in braces has nothing of its own.
pub(super) fn read_condition(text: &str, visitor: &mut impl LineVisitor) {
    if let Some(inner) = text.strip_prefix("((") {
        match inner.strip_suffix("))") {
            Some(inner) => arithmetic::read(inner, visitor),
            None => visitor.evaluates_text(),
        }
    } else if text.starts_with("[[") {
        conditions::read_double_bracket(text, visitor);
    } else if text.starts_with('[') {
        conditions::read_bracket(text, visitor);
    }
}

/// Reads the indices of `([index]=value …)`.
pub(super) fn read_array(text: &str, visitor: &mut impl LineVisitor) {
    for (at, _) in text.match_indices('[') {
        let begins_word = text[..at].ends_with(|before: char| before == '(' || before.is_whitespace());
        if !begins_word {
            continue;
        }
        match text[at + 1..].split_once(']') {
            Some((index, behind)) if behind.starts_with('=') || behind.starts_with("+=") => {
                arithmetic::read(index, visitor);
            }
            _ if text[at..].contains("]=") || text[at..].contains("]+=") => visitor.evaluates_text(),
            _ => {}
        }
    }
}

/// Reads `${…}`: its name and its operator. `None` if it has a form that is not known here.
pub(super) fn read_parameter(text: &str, visitor: &mut impl LineVisitor) -> Option<()> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    // `${!x}` follows a name that may have an index; `${!x[@]}` and `${!x*}` are lists of names.
    if let Some(name) = inner.strip_prefix('!') {
        let is_list = ["[@]", "[*]", "@", "*"].iter().any(|end| name.strip_suffix(end).is_some_and(is_name));
        if !is_list && !name.is_empty() {
            visitor.evaluates_text();
        }
        return Some(());
    }
    let inner = inner.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inner);
    let name_length = match split_name(inner) {
        Some((name, _)) => name.len(),
        None if inner.starts_with(|first: char| first.is_ascii_digit()) => {
            inner.len() - inner.trim_start_matches(|digit: char| digit.is_ascii_digit()).len()
        }
        None if inner.starts_with(['@', '*', '#', '?', '-', '$', '!']) => 1,
        None => return None,
    };
    let mut behind = &inner[name_length..];
    if behind.starts_with('[') {
        behind = &behind[bracketed(behind)?..];
    }
    match behind.split_at_checked(1) {
        // `${x@P}` runs the commands in the value.
        Some(("@", operator)) if !["Q", "E", "U", "u", "L", "A", "a", "K", "k"].contains(&operator) => {
            visitor.evaluates_text();
        }
        // `${x:from:length}`
        Some((":", range)) if !range.starts_with(['-', '=', '?', '+']) => arithmetic::read(range, visitor),
        _ => {}
    }
    Some(())
}

/// Returns the length of the text in square brackets at the start of `text`, with the brackets.
fn bracketed(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}
