//! The options before the words of a command, as `getopt(3)` reads them.

use super::error::ShellError;
use super::word::ShellWord;

/// The options that a program has before the command that it starts.
pub(super) struct OptionSyntax {
    /// The letters of options with a value.
    pub(super) with_value: &'static str,
    /// The letters of options without.
    pub(super) plain: &'static str,
    /// The long options with a value.
    pub(super) long_with_value: &'static [&'static str],
    /// The long options without.
    pub(super) long_plain: &'static [&'static str],
}

/// Options with their values, and the words behind them.
pub(super) struct SplitOptions {
    pub(super) options: Vec<(String, Option<ShellWord>)>,
    pub(super) rest: Vec<ShellWord>,
}

/// Splits `arguments` at the first word that is no option.
///
/// # Errors
/// An option that `syntax` does not name, or one that only the run knows.
pub(super) fn split(
    program: &str,
    arguments: &[ShellWord],
    syntax: &OptionSyntax,
) -> Result<SplitOptions, ShellError> {
    let mut options = Vec::new();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        // A word that only the run knows ends the options: a program in its place is refused later.
        let Some(text) = word.value().filter(|text| text.starts_with('-') && *text != "-") else { break };
        at += 1;
        if text == "--" {
            break;
        }
        let unknown = || ShellError::Option { program: program.to_owned(), option: text.to_owned() };
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(ShellWord::literal(value))),
                None => (long, None),
            };
            if syntax.long_plain.contains(&name) {
                options.push((name.to_owned(), value));
            } else if syntax.long_with_value.contains(&name) {
                let value = match value {
                    Some(value) => value,
                    None => {
                        at += 1;
                        arguments.get(at - 1).cloned().ok_or_else(unknown)?
                    }
                };
                options.push((name.to_owned(), Some(value)));
            } else {
                return Err(unknown());
            }
            continue;
        }
        let letters = &text[1..];
        for (index, letter) in letters.char_indices() {
            let after = &letters[index + letter.len_utf8()..];
            if syntax.with_value.contains(letter) {
                let value = if after.is_empty() {
                    at += 1;
                    arguments.get(at - 1).cloned().ok_or_else(unknown)?
                } else {
                    ShellWord::literal(after)
                };
                options.push((letter.to_string(), Some(value)));
                break;
            }
            if !syntax.plain.contains(letter) {
                return Err(unknown());
            }
            options.push((letter.to_string(), None));
        }
    }
    // A value that only the run knows could be several words, one of them the program.
    if options
        .iter()
        .any(|(_, value): &(String, Option<ShellWord>)| value.as_ref().is_some_and(|value| !value.is_literal))
    {
        return Err(ShellError::DynamicScript { program: program.to_owned() });
    }
    Ok(SplitOptions { options, rest: arguments.get(at..).unwrap_or_default().to_vec() })
}
