//! The expressions that bash computes: the variables that they read, and what in them could be more than numbers.
//!
//! Bash takes the value of a variable in an expression for another expression, and expands the index of an array in it:
//! `x='a[$(rm f)]'; echo $((x))` runs `rm`. An expression is judged by its text, so that nothing depends on how the grammar
//! reads the operators.

use super::visitor::LineVisitor;

/// The operators of expressions, the blanks between them, and the signs between several.
const OPERATORS: &str = "+-*/%<>=!&|^~?:,;() \t\n";

/// The parameters of the shell that are numbers always.
const NUMBERS: [char; 4] = ['#', '?', '$', '!'];

/// Reads an expression into `visitor`: the variables in it, or that it evaluates what only the run knows.
pub(super) fn read(text: &str, visitor: &mut impl LineVisitor) {
    match names(text) {
        Some(names) => names.into_iter().for_each(|name| visitor.computes_with(name)),
        None => visitor.evaluates_text(),
    }
}

/// Returns the variables of an expression that has nothing but numbers, variables and operators.
fn names(text: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = text;
    // Two operands without an operator between them are one name or one number.
    let mut after_operand = false;
    while let Some(first) = rest.chars().next() {
        if OPERATORS.contains(first) {
            after_operand = false;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        // A computation within a computation has a number for its value.
        if let Some(inner) = rest.strip_prefix("$((").filter(|_| !after_operand) {
            rest = inner;
            continue;
        }
        if after_operand {
            return None;
        }
        after_operand = true;
        let (operand, behind) = match rest.strip_prefix('$') {
            Some(parameter) => parameter_of(parameter)?,
            None if first.is_ascii_digit() => {
                let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '@' | '_');
                (None, rest.trim_start_matches(is_digit))
            }
            None => {
                let (name, behind) = split_name(rest)?;
                (Some(name), behind)
            }
        };
        names.extend(operand);
        rest = behind;
    }
    Some(names)
}

/// Splits a parameter behind `$`: its name, unless it is a number always, and what is behind it.
fn parameter_of(text: &str) -> Option<(Option<&str>, &str)> {
    if let Some(special) = text.chars().next().filter(|first| NUMBERS.contains(first)) {
        return Some((None, &text[special.len_utf8()..]));
    }
    let Some(inner) = text.strip_prefix('{') else {
        return split_name(text).map(|(name, behind)| (Some(name), behind));
    };
    let (inner, behind) = inner.split_once('}')?;
    match inner.strip_prefix('#') {
        // The length of a value, or the number of elements.
        Some(name) => {
            let name = name.strip_suffix("[@]").or_else(|| name.strip_suffix("[*]")).unwrap_or(name);
            (name.is_empty() || is_name(name)).then_some((None, behind))
        }
        None => is_name(inner).then_some((Some(inner), behind)),
    }
}

/// Splits `text` behind the name of a variable at its start.
pub(super) fn split_name(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, behind) = text.split_at(end);
    is_name(name).then_some((name, behind))
}

/// Returns true if `text` is the name of a variable, without an index.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Returns true if the value that is written as `text` is a number whenever the line runs.
pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_parameter = text.strip_prefix('$').and_then(parameter_of) == Some((None, ""));
    digits.bytes().all(|byte| byte.is_ascii_digit()) || is_parameter
}

#[cfg(test)]
mod tests {
    use super::{is_number, names};

    #[test]
    fn an_expression_of_numbers_and_names_is_read_and_any_other_is_not() {
        for (text, expected) in [
            ("1 + 0x1f * 16#ff", vec![]),
            ("x + $y - ${z}", vec!["x", "y", "z"]),
            ("${#x} + $# + $? + ${#v[@]}", vec![]),
            ("i=0;i<n;i++", vec!["i", "i", "n", "i"]),
            ("1 + $((x + 1))", vec!["x"]),
            ("a ? b : c", vec!["a", "b", "c"]),
        ] {
            assert_eq!(names(text), Some(expected), "{text}");
        }
        for text in ["a[0]", "'x'", "\"$x\"", "$(x)", "`x`", "a$x", "$x$y", "16#$x", "${x:-1}", "$1", "\\x"] {
            assert_eq!(names(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_is_one_whatever_the_line_does() {
        for text in ["", "0", "-12", "$#", "$?", "${#x}", "${#x[@]}"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["x", "1x", "$x", "--1", "$(x)", "${x}"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
