//! The credentials of a role, as a policy file writes them.

use super::{DraftReader, TomlField};
use egress_proxy::{CredentialHeader, CredentialRule, SecretSource};
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// The forms of `secret`.
const SECRET_FORMS: &str = "{ variable = \"GIT_TOKEN\" } or { file = \"/home/me/.secrets/git-token\" }";

impl DraftReader<'_> {
    /// Reads `[[roles.NAME.credentials]]`, each with its line.
    pub(super) fn credentials(&mut self, value: TomlField<'_, '_>) -> Vec<(usize, CredentialRule)> {
        let tables = self.tables(value, "credentials");
        tables.into_iter().filter_map(|(line, table)| Some((line, self.credential(line, table)?))).collect()
    }

    fn credential(&mut self, line: usize, table: &DeTable<'_>) -> Option<CredentialRule> {
        const KEYS: [&str; 6] = ["host", "header", "value", "basic_user", "secret", "ca_file"];
        let (mut host, mut name, mut form, mut user) = (None, None, None, None);
        let (mut secret, mut ca_file) = (None, None);
        for (key, _, value) in self.members(table, &KEYS) {
            match key {
                "host" => host = self.text(value, key),
                "header" => name = self.text(value, key),
                "value" => form = self.text(value, key),
                "basic_user" => user = self.text(value, key),
                "secret" => secret = Some(self.secret_source(value)?),
                _ => ca_file = Some(self.absolute_path(value, key)?),
            }
        }
        let (Some(host), Some(secret)) = (host, secret) else {
            self.error(line, format!("a credential needs `host` and `secret`, which is {SECRET_FORMS}"));
            return None;
        };
        let name = name.as_ref().map(|name| name.text.as_str());
        let header = match (&form, &user) {
            (Some(_), Some(_)) => {
                let message = "a credential has `value` or `basic_user`, and not both".to_owned();
                self.error(line, message);
                return None;
            }
            (form, None) => CredentialHeader::new(name, form.as_ref().map(|form| form.text.as_str())),
            (None, Some(user)) => CredentialHeader::basic(name, &user.text),
        };
        match header.and_then(|header| CredentialRule::new(&host.text, header, secret)) {
            Ok(rule) => Some(match ca_file {
                Some(file) => rule.ca_file(file),
                None => rule,
            }),
            Err(error) => {
                self.error(host.line, error.to_string());
                None
            }
        }
    }

    fn secret_source(&mut self, value: TomlField<'_, '_>) -> Option<SecretSource> {
        let DeValue::Table(table) = value.get_ref() else {
            self.expected(value, "secret", SECRET_FORMS);
            return None;
        };
        let mut sources = Vec::new();
        for (key, line, value) in self.members(table, &["variable", "file"]) {
            match key {
                "variable" => {
                    let name = self.text(value, key)?.text;
                    if name.is_empty() || name.contains(['=', '\0']) {
                        self.error(line, format!("`{name}` is no name of a variable"));
                        return None;
                    }
                    sources.push(SecretSource::Variable(name));
                }
                _ => sources.push(SecretSource::File(self.absolute_path(value, key)?)),
            }
        }
        match (sources.pop(), sources.is_empty()) {
            (Some(source), true) => Some(source),
            _ => {
                let line = self.line_of(value);
                self.error(line, format!("`secret` has one source: {SECRET_FORMS}"));
                None
            }
        }
    }

    fn absolute_path(&mut self, value: TomlField<'_, '_>, key: &str) -> Option<PathBuf> {
        let text = self.text(value, key)?;
        let path = PathBuf::from(&text.text);
        if !path.is_absolute() {
            self.error(text.line, format!("`{key}` is `{}`, which is no absolute path", text.text));
            return None;
        }
        Some(path)
    }
}
