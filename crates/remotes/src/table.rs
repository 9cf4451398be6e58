//! Reading the values of a TOML table: of a kind, or of a remote of the configuration.

use crate::template::{ArgumentTemplate, CommandTemplate, TemplateError, TemplatePart};
use did_you_mean::nearest;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The longest time that a key takes, in seconds: 30 days.
const MAX_SECONDS: u64 = 30 * 86_400;

/// The reason why a table describes no kind and no remote, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TableError {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// The message. It names the key and what is allowed.
    pub message: String,
}

impl TableError {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// A value of a table, with the name of its key.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'t, 'a> {
    pub(crate) key: &'t str,
    pub(crate) value: &'t Spanned<DeValue<'a>>,
}

/// Returns the entries of `table` in the order of the text, so that the first mistake in it is the one reported.
///
/// # Errors
/// A key is none of `known`.
pub(crate) fn entries<'t, 'a>(
    table: &'t DeTable<'a>,
    known: &[&str],
) -> Result<Vec<Entry<'t, 'a>>, TableError> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(name, _)| name.span().start);
    members
        .into_iter()
        .map(|(name, value)| {
            let key: &str = name.get_ref();
            if known.contains(&key) {
                return Ok(Entry { key, value });
            }
            let hint = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", known.join(", ")),
            };
            Err(TableError::new(name.span(), format!("there is no key `{key}`; {hint}")))
        })
        .collect()
}

impl<'a> Entry<'_, 'a> {
    fn expected(&self, expected: &str) -> TableError {
        let found = self.value.get_ref().type_str();
        TableError::new(self.value.span(), format!("`{}` must be {expected}, not {found}", self.key))
    }

    /// Returns the error that the value is of the right type and yet not allowed.
    pub(crate) fn refused(&self, reason: &str) -> TableError {
        TableError::new(self.value.span(), format!("`{}`: {reason}", self.key))
    }

    /// Reads a text.
    pub(crate) fn text(&self) -> Result<String, TableError> {
        self.value.get_ref().as_str().map(str::to_owned).ok_or_else(|| self.expected("a string"))
    }

    /// Reads a truth value.
    pub(crate) fn bool(&self) -> Result<bool, TableError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// Reads a time in whole seconds. 0 is no limit.
    pub(crate) fn seconds(&self) -> Result<Option<Duration>, TableError> {
        let expected = || self.expected(&format!("whole seconds from 0 to {MAX_SECONDS}"));
        let integer = self.value.get_ref().as_integer().ok_or_else(expected)?;
        let seconds = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        match seconds.filter(|seconds| *seconds <= MAX_SECONDS).ok_or_else(expected)? {
            0 => Ok(None),
            seconds => Ok(Some(Duration::from_secs(seconds))),
        }
    }

    /// Reads a number from 0 to `max`.
    pub(crate) fn number(&self, max: usize) -> Result<usize, TableError> {
        let expected = || self.expected(&format!("a whole number from 0 to {max}"));
        let integer = self.value.get_ref().as_integer().ok_or_else(expected)?;
        let number = usize::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|number| *number <= max).ok_or_else(expected)
    }

    /// Reads a list of texts.
    pub(crate) fn texts(&self) -> Result<Vec<String>, TableError> {
        let expected = || self.expected("an array of strings");
        let array = self.value.get_ref().as_array().ok_or_else(expected)?;
        array.iter().map(|text| text.get_ref().as_str().map(str::to_owned).ok_or_else(expected)).collect()
    }

    /// Reads a table of texts.
    pub(crate) fn text_table(&self) -> Result<BTreeMap<String, String>, TableError> {
        let expected = || self.expected("a table of strings");
        let table = self.value.get_ref().as_table().ok_or_else(expected)?;
        let pair = |(name, value): (&Spanned<std::borrow::Cow<'a, str>>, &Spanned<DeValue<'a>>)| {
            Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned()))
        };
        table.iter().map(|entry| pair(entry).ok_or_else(expected)).collect()
    }

    /// Reads a table.
    pub(crate) fn table(&self) -> Result<&DeTable<'a>, TableError> {
        self.value.get_ref().as_table().ok_or_else(|| self.expected("a table"))
    }

    /// Reads an argument with placeholders.
    pub(crate) fn argument(&self) -> Result<ArgumentTemplate, TableError> {
        let text = self.text()?;
        ArgumentTemplate::parse(&text).map_err(|error| self.template_error(&error))
    }

    /// Reads an argument vector. An empty one is none.
    pub(crate) fn command(&self) -> Result<Option<CommandTemplate>, TableError> {
        let expected = || self.expected("an array of strings, and of arrays of strings that may be left out");
        let array = self.value.get_ref().as_array().ok_or_else(expected)?;
        let argument =
            |text: &str| ArgumentTemplate::parse(text).map_err(|error| self.template_error(&error));
        let part = |value: &Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::String(text) => Ok(TemplatePart::Argument(argument(text)?)),
            DeValue::Array(group) => {
                let texts = group.iter().map(|text| argument(text.get_ref().as_str().ok_or_else(expected)?));
                Ok(TemplatePart::Optional(texts.collect::<Result<_, _>>()?))
            }
            _ => Err(expected()),
        };
        let parts: Vec<TemplatePart> = array.iter().map(part).collect::<Result<_, _>>()?;
        match parts.is_empty() {
            true => Ok(None),
            false => CommandTemplate::new(parts).map(Some).map_err(|error| self.template_error(&error)),
        }
    }

    fn template_error(&self, error: &TemplateError) -> TableError {
        self.refused(&error.to_string())
    }
}
