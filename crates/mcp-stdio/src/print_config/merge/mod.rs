//! Merges the entry of a server into a client's file. Everything else in the file stays as it is, byte for byte, comments
//! included.

mod entry_value;
mod error;
pub(crate) mod json;
mod json_text;
mod toml_text;

use entry_value::entry_value;
pub(crate) use error::MergeError;
use serde_json::Value;
pub(super) use toml_text::own_values;

/// An entry, and where in a file it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    /// The key of the servers.
    pub(super) key: &'a str,
    /// The name of the server.
    pub(super) name: &'a str,
    /// The entry itself.
    pub(super) value: &'a Value,
    /// An element of a list that the entry needs, with the key of the list.
    pub(super) element: Option<(&'a str, &'a Value)>,
}

impl NewEntry<'_> {
    /// Returns `text`, the content of a JSON file, with the entry in it.
    pub(super) fn into_json(self, text: &str) -> Result<String, MergeError> {
        let mut merged = json::with_member(text, &[self.key], self.name, |old| entry_value(old, self.value))?;
        if let Some((list, element)) = self.element {
            merged = json::with_element(&merged, list, element)?;
        }
        Ok(merged)
    }

    /// Returns `text`, the content of a TOML file, with the entry in it.
    pub(super) fn into_toml(self, text: &str) -> Result<String, MergeError> {
        toml_text::with_table(text, self.key, self.name, self.value)
    }
}
