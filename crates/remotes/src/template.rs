//! Argument vectors with placeholders, and their expansion.
//!
//! ```text
//! connect = ["ssh", ["-p", "{option.port}"], "{target}", "{sh:binary}", "remote-server"]
//! ```
//!
//! Each text is one argument, whatever its values hold. An array in the array is left out if a placeholder in it has no
//! value.

use std::collections::BTreeMap;
use std::fmt;

/// An argument vector with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Argument(ArgumentTemplate),
    /// Arguments that are left out together if a value is missing.
    Optional(Vec<ArgumentTemplate>),
}

/// One argument: texts and placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArgumentTemplate(Vec<ArgumentPiece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ArgumentPiece {
    Text(String),
    Value { placeholder: Placeholder, quoting: Quoting },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    None,
    /// As one word for a POSIX shell.
    Shell,
}

/// A value that an argument can have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Placeholder {
    Target,
    Root,
    Binary,
    Lease,
    Caller,
    Cache,
    LifeSeconds,
    Sha256,
    Option(String),
}

/// The names of the placeholders, for messages.
const PLACEHOLDERS: &str =
    "{target}, {root}, {binary}, {lease}, {caller}, {cache}, {life_s}, {sha256} and {option.NAME}";

/// The reason why a text is no argument with placeholders.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// There is no such placeholder.
    #[error(
        "`{{{0}}}` is no placeholder; there are {PLACEHOLDERS}, each also as {{sh:NAME}}; `{{{{` is a brace"
    )]
    Unknown(String),
    /// A brace is not closed, or was not opened.
    #[error("`{0}` has a single brace; write `{{{{` or `}}}}` for a brace")]
    Brace(String),
    /// The vector names no program.
    #[error("the first argument must name the program")]
    NoProgram,
}

/// A placeholder has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{{{0}}}` has no value")]
pub struct MissingValue(pub(crate) String);

/// The values of placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct TemplateValues(BTreeMap<Placeholder, String>);

impl TemplateValues {
    /// Sets a value, or removes it.
    pub(crate) fn set(&mut self, placeholder: Placeholder, value: Option<String>) {
        match value {
            Some(value) => drop(self.0.insert(placeholder, value)),
            None => drop(self.0.remove(&placeholder)),
        }
    }

    fn get(&self, placeholder: &Placeholder) -> Result<&str, MissingValue> {
        self.0.get(placeholder).map(String::as_str).ok_or_else(|| MissingValue(placeholder.to_string()))
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.write_str("target"),
            Self::Root => f.write_str("root"),
            Self::Binary => f.write_str("binary"),
            Self::Lease => f.write_str("lease"),
            Self::Caller => f.write_str("caller"),
            Self::Cache => f.write_str("cache"),
            Self::LifeSeconds => f.write_str("life_s"),
            Self::Sha256 => f.write_str("sha256"),
            Self::Option(name) => write!(f, "option.{name}"),
        }
    }
}

impl Placeholder {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "target" => Self::Target,
            "root" => Self::Root,
            "binary" => Self::Binary,
            "lease" => Self::Lease,
            "caller" => Self::Caller,
            "cache" => Self::Cache,
            "life_s" => Self::LifeSeconds,
            "sha256" => Self::Sha256,
            _ => Self::Option(name.strip_prefix("option.").filter(|name| !name.is_empty())?.to_owned()),
        })
    }
}

impl ArgumentTemplate {
    /// Reads an argument.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let brace = || TemplateError::Brace(text.to_owned());
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (found, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(found) {
                plain.push_str(found);
                rest = after;
                continue;
            }
            if found == "}" {
                return Err(brace());
            }
            let (name, after) = after.split_once('}').ok_or_else(brace)?;
            let (quoting, placeholder) = match name.strip_prefix("sh:") {
                Some(name) => (Quoting::Shell, name),
                None => (Quoting::None, name),
            };
            let placeholder =
                Placeholder::parse(placeholder).ok_or_else(|| TemplateError::Unknown(name.to_owned()))?;
            if !plain.is_empty() {
                pieces.push(ArgumentPiece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(ArgumentPiece::Value { placeholder, quoting });
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(ArgumentPiece::Text(plain));
        }
        Ok(Self(pieces))
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|piece| match piece {
            ArgumentPiece::Text(_) => None,
            ArgumentPiece::Value { placeholder, .. } => Some(placeholder),
        })
    }

    /// Puts the values in.
    pub(crate) fn expand(&self, values: &TemplateValues) -> Result<String, MissingValue> {
        let mut argument = String::new();
        for piece in &self.0 {
            match piece {
                ArgumentPiece::Text(text) => argument.push_str(text),
                ArgumentPiece::Value { placeholder, quoting: Quoting::None } => {
                    argument.push_str(values.get(placeholder)?);
                }
                ArgumentPiece::Value { placeholder, quoting: Quoting::Shell } => {
                    argument.push_str(&shell_word(values.get(placeholder)?));
                }
            }
        }
        Ok(argument)
    }
}

impl CommandTemplate {
    pub(crate) fn new(parts: Vec<TemplatePart>) -> Result<Self, TemplateError> {
        match parts.first() {
            Some(TemplatePart::Argument(program)) if !program.0.is_empty() => Ok(Self(parts)),
            _ => Err(TemplateError::NoProgram),
        }
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().flat_map(|part| {
            let arguments = match part {
                TemplatePart::Argument(argument) => std::slice::from_ref(argument),
                TemplatePart::Optional(arguments) => arguments,
            };
            arguments.iter().flat_map(ArgumentTemplate::placeholders)
        })
    }

    /// Returns the arguments with their values.
    pub(crate) fn expand(&self, values: &TemplateValues) -> Result<Vec<String>, MissingValue> {
        let mut arguments = Vec::new();
        for part in &self.0 {
            match part {
                TemplatePart::Argument(argument) => arguments.push(argument.expand(values)?),
                TemplatePart::Optional(group) => {
                    let expanded: Result<Vec<String>, MissingValue> =
                        group.iter().map(|argument| argument.expand(values)).collect();
                    // A missing value is what makes the group optional.
                    arguments.extend(expanded.into_iter().flatten());
                }
            }
        }
        Ok(arguments)
    }
}

/// Returns `text` as one word for a POSIX shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':' | '@' | '=' | ',')
    };
    // A leading `~/` is left to the shell there: only it knows the home folder.
    let (home, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None if text == "~" => return text.to_owned(),
        None => ("", text),
    };
    match !text.is_empty() && rest.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("{home}'{}'", rest.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(parts: &[&[&str]]) -> Result<CommandTemplate, TemplateError> {
        let parts = parts.iter().map(|part| match part {
            [one] => ArgumentTemplate::parse(one).map(TemplatePart::Argument),
            group => group
                .iter()
                .map(|text| ArgumentTemplate::parse(text))
                .collect::<Result<_, _>>()
                .map(TemplatePart::Optional),
        });
        CommandTemplate::new(parts.collect::<Result<_, _>>()?)
    }

    fn values(pairs: &[(&str, &str)]) -> TemplateValues {
        let mut values = TemplateValues::default();
        for (name, value) in pairs {
            values.set(Placeholder::parse(name).unwrap(), Some((*value).to_owned()));
        }
        values
    }

    #[test]
    fn a_value_is_one_argument_whatever_it_holds_and_a_group_without_its_value_is_left_out() {
        let ssh = command(&[
            &["ssh"],
            &["-p", "{option.port}"],
            &["{target}"],
            &["{sh:binary}"],
            &["x{{y}}={root}"],
        ])
        .unwrap();
        let given = values(&[("target", "a b;c"), ("binary", "/opt/it's/mcp"), ("root", "/src")]);
        assert_eq!(ssh.expand(&given).unwrap(), ["ssh", "a b;c", r"'/opt/it'\''s/mcp'", "x{y}=/src"]);
        let with_port = values(&[("target", "h"), ("binary", "~/b c"), ("root", "/"), ("option.port", "22")]);
        assert_eq!(ssh.expand(&with_port).unwrap(), ["ssh", "-p", "22", "h", "~/'b c'", "x{y}=/"]);
        let missing = ssh.expand(&values(&[("target", "h"), ("binary", "b")])).unwrap_err();
        assert_eq!(missing.to_string(), "`{root}` has no value");
    }

    #[test]
    fn what_is_no_placeholder_is_an_error() {
        for text in ["{", "}", "a{target", "a}b", "{Target}", "{}", "{option.}", "{sh:}", "{sh:sh:root}"] {
            assert!(ArgumentTemplate::parse(text).is_err(), "{text}");
        }
        assert_eq!(command(&[]).unwrap_err(), TemplateError::NoProgram);
        assert_eq!(command(&[&["-p", "{root}"]]).unwrap_err(), TemplateError::NoProgram);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a shell reads the words back")]
    fn a_word_for_a_shell_comes_back_as_it_was() {
        for text in ["plain", "", "a b", "it's", "$HOME", "`x`", "a\nb", "*", "\\", "~x"] {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", shell_word(text))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
