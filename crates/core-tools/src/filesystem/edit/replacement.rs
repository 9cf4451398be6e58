//! The text in the place of a match, with groups of the match in it.

use std::borrow::Cow;

use regex::bytes::Regex;

/// A replacement names a group that the pattern does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownGroup(pub(super) String);

/// Returns `text` in the form of the library: `\\1`, as other programs write a group, is `${1}` there.
///
/// # Errors
/// A group that `regex` does not have: the library would write nothing in its place.
pub(super) fn replacement(regex: &Regex, text: &str) -> Result<String, UnknownGroup> {
    let text = with_dollars(text);
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let name = match rest.strip_prefix('{') {
            Some(braced) => braced.split_once('}').map(|(name, _)| name),
            None => {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                rest.get(..end.unwrap_or(rest.len())).filter(|name| !name.is_empty())
            }
        };
        if let Some(name) = name.filter(|name| !has_group(regex, name)) {
            return Err(UnknownGroup(name.to_owned()));
        }
    }
    Ok(text.into_owned())
}

fn has_group(regex: &Regex, name: &str) -> bool {
    match name.parse::<usize>() {
        Ok(index) => index < regex.captures_len(),
        Err(_) => regex.capture_names().flatten().any(|own| own == name),
    }
}

/// Replaces `\\1` by `${1}`.
fn with_dollars(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match characters.peek().filter(|_| character == '\\') {
            Some(digit @ '1'..='9') => {
                written.push_str(&format!("${{{digit}}}"));
                characters.next();
            }
            _ => written.push(character),
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_is_not_there_is_refused_and_both_ways_to_write_one_are_known() {
        let regex = Regex::new(r"(?<name>a)(b)").unwrap();
        for (text, expected) in [
            ("$1x", Err("1x")),
            ("${1}x", Ok("${1}x")),
            ("\\2\\1", Ok("${2}${1}")),
            ("$name $$5 $", Ok("$name $$5 $")),
            ("$3", Err("3")),
            ("${other}", Err("other")),
            ("\\n", Ok("\\n")),
            ("a{$0}", Ok("a{$0}")),
        ] {
            let expected = expected.map(str::to_owned).map_err(|name| UnknownGroup(name.to_owned()));
            assert_eq!(replacement(&regex, text), expected, "{text}");
        }
    }
}
