//! The values of a policy file by their types: texts, lists, tables, numbers.

use super::draft::LocatedText;
use super::{DraftReader, TomlField};
use crate::rule::ToolSelector;
use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The most bytes of a tool's name. A longer one is a mistake.
const MAX_NAME: usize = 128;

impl DraftReader<'_> {
    /// Returns the members of a table in the order of the file. An unknown key is reported and left out.
    // It is an error and not ignored: a misspelt `deny` would leave everything open.
    pub(super) fn members<'t, 'i>(
        &mut self,
        table: &'t DeTable<'i>,
        known: &[&'static str],
    ) -> Vec<(&'static str, usize, TomlField<'t, 'i>)> {
        let mut members: Vec<_> = table.iter().collect();
        // `DeTable` need not keep the order of the file, in which rules are asked and problems are listed.
        members.sort_by_key(|(name, _)| name.span().start);
        let mut found = Vec::with_capacity(members.len());
        for (name, value) in members {
            let line = self.line(name.span().start);
            match known.iter().find(|key| **key == name.get_ref().as_ref()) {
                Some(key) => found.push((*key, line, value)),
                None => {
                    let hint = match did_you_mean::nearest(name.get_ref(), known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the keys here are {}", known.join(", ")),
                    };
                    self.error(line, format!("unknown key `{}`; {hint}", name.get_ref()));
                }
            }
        }
        found
    }

    pub(super) fn text(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<LocatedText> {
        let line = self.line_of(value);
        match value.get_ref() {
            DeValue::String(text) => Some(LocatedText { text: text.to_string(), line }),
            _ => {
                self.expected(value, key, "a text");
                None
            }
        }
    }

    /// Reads a list of texts, or one text alone.
    pub(super) fn texts(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<LocatedText> {
        match value.get_ref() {
            DeValue::Array(values) => values.iter().filter_map(|value| self.text(value, key)).collect(),
            DeValue::String(_) => self.text(value, key).into_iter().collect(),
            _ => {
                self.expected(value, key, "a list of texts");
                Vec::new()
            }
        }
    }

    pub(super) fn strings(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<String> {
        self.texts(value, key).into_iter().map(|text| text.text).collect()
    }

    pub(super) fn selectors(
        &mut self,
        value: TomlField<'_, '_>,
        key: &str,
    ) -> Vec<(LocatedText, ToolSelector)> {
        let mut selectors = Vec::new();
        for text in self.texts(value, key) {
            if text.text.len() > MAX_NAME {
                self.error(text.line, format!("a name in `{key}` is longer than {MAX_NAME} bytes"));
                continue;
            }
            match ToolSelector::parse(&text.text) {
                Ok(selector) => selectors.push((text, selector)),
                Err(wrong) => self.error(text.line, format!("`{}` in `{key}`: {wrong}", text.text)),
            }
        }
        selectors
    }

    /// Reads folders into the form in which resolved paths are compared with them.
    pub(super) fn folders(&mut self, value: TomlField<'_, '_>, key: &str) -> Vec<String> {
        let mut folders = Vec::new();
        for LocatedText { text, line } in self.texts(value, key) {
            let (root, path) = match text.split_once(':') {
                Some((root, path)) => (Some(root), path),
                None => (None, text.as_str()),
            };
            let path = path.strip_suffix('/').unwrap_or(path).replace("/./", "/");
            let path = path.strip_prefix("./").unwrap_or(&path);
            let path = if path.is_empty() { "." } else { path };
            // Folders are compared literally. Who writes `src/*` expects a pattern, and would get a rule that
            // matches nothing.
            if path.starts_with('/')
                || path.contains(['*', '\\', '\0'])
                || path.split('/').any(|part| matches!(part, "" | ".."))
            {
                self.error(
                    line,
                    format!(
                        "`{text}` in `{key}` is no folder or file beneath a root: expected a path such as `src`, `.` for \
                         all of the first root, or `name:path` in another, without `..` and `*`"
                    ),
                );
                continue;
            }
            folders.push(match root {
                Some(root) => format!("{root}:{path}"),
                None => path.to_owned(),
            });
        }
        folders
    }

    pub(super) fn tables<'t, 'i>(
        &mut self,
        value: &'t Spanned<DeValue<'i>>,
        key: &str,
    ) -> Vec<(usize, &'t DeTable<'i>)> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.expected(value, key, "a list of tables");
            return Vec::new();
        };
        let mut tables = Vec::new();
        for entry in entries.iter() {
            match entry.get_ref() {
                DeValue::Table(table) => tables.push((self.line_of(entry), table)),
                _ => self.expected(entry, key, "a table"),
            }
        }
        tables
    }

    pub(super) fn number(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<u64> {
        let number = value.get_ref().as_integer();
        // TOML allows `1_000`, and `from_str_radix` does not.
        let number = number
            .and_then(|number| u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok());
        if number.is_none() {
            self.expected(value, key, "a whole number, 0 or more");
        }
        number
    }

    pub(super) fn float(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        // A comparison with NaN is never true, which would be a limit that nobody meant.
        let number = number.filter(|number: &f64| number.is_finite());
        if number.is_none() {
            self.expected(value, key, "a number");
        }
        number
    }

    /// Converts a TOML value to the JSON that a call would have.
    pub(super) fn json(&mut self, value: TomlField<'_, '_>) -> Option<Value> {
        let converted = match value.get_ref() {
            DeValue::String(text) => Some(Value::String(text.to_string())),
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Integer(number) => {
                i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok().map(Value::from)
            }
            DeValue::Float(number) => {
                number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64).map(Value::Number)
            }
            DeValue::Array(values) => {
                values.iter().map(|value| self.json(value)).collect::<Option<_>>().map(Value::Array)
            }
            DeValue::Table(table) => table
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), self.json(value)?)))
                .collect::<Option<_>>()
                .map(Value::Object),
            DeValue::Datetime(_) => None,
        };
        if converted.is_none() {
            let line = self.line_of(value);
            self.error(line, "this value has no counterpart in JSON".to_owned());
        }
        converted
    }
}
