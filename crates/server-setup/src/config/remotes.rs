//! The tables `[remotes.NAME]`.

use super::error::Error;
use super::file::{FileText, normalize};
use super::setting_value::describe;
use super::tables::Config;
use remotes::RemoteSettings;
use toml::Spanned;
use toml::de::DeValue;

impl FileText<'_> {
    /// Reads the remotes of a file.
    pub(super) fn apply_remotes(
        &self,
        config: &mut Config,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), Error> {
        let not_a_table = |key: String, value: &Spanned<DeValue<'_>>| Error::Value {
            location: self.location(&value.span()),
            key,
            expected: "a table".to_owned(),
            found: describe(value.get_ref()),
        };
        let tables = value.get_ref().as_table().ok_or_else(|| not_a_table("remotes".to_owned(), value))?;
        let mut tables: Vec<_> = tables.iter().collect();
        tables.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in tables {
            let name = name.get_ref().to_string();
            let Some(table) = value.get_ref().as_table() else {
                return Err(not_a_table(format!("remotes.{name}"), value));
            };
            let mut remote = RemoteSettings::parse(&name, table, &value.span()).map_err(|source| {
                Error::Remote { location: self.location(&source.span), name: name.clone(), source }
            })?;
            if let Some(folder) = &mut remote.binaries {
                *folder = normalize(&self.path.parent().unwrap_or(self.path).join(&*folder));
            }
            config.remotes.push(remote);
        }
        Ok(())
    }
}
