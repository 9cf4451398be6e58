//! The schemas of the library's own types, as a test has written them into `schemas.tsv`: generating them took a third of a
//! server's start.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::OnceLock;

/// One schema on each line: its use, the Rust type and the JSON, with a tab between.
pub(super) const STORED: &str = include_str!("schemas.tsv");

/// The use of a schema. A type may have one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaUse {
    /// The check of arguments.
    Input,
    /// The list of tools, for arguments.
    Listed,
    /// The list of tools, for answers.
    Output,
}

impl SchemaUse {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Listed => "listed",
            Self::Output => "output",
        }
    }
}

/// Returns the stored schema of a type, by its [name](std::any::type_name). Compilers need not agree on names: a type that is
/// not found has its schema generated.
pub(super) fn stored(schema_use: SchemaUse, type_name: &str) -> Option<Map<String, Value>> {
    static LINES: OnceLock<HashMap<(&str, &str), &str>> = OnceLock::new();
    let lines = LINES.get_or_init(|| STORED.lines().filter_map(fields).collect());
    let text = lines.get(&(schema_use.name(), type_name))?;
    serde_json::from_str(text).ok()
}

fn fields(line: &'static str) -> Option<((&'static str, &'static str), &'static str)> {
    let (schema_use, rest) = line.split_once('\t')?;
    let (type_name, schema) = rest.split_once('\t')?;
    Some(((schema_use, type_name), schema))
}
