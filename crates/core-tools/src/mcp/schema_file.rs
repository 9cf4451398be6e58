//! The text of `schemas.tsv`, for the test that keeps it equal to the types.

use super::stored_schemas::{STORED, SchemaUse};
use super::tool::Tool;
use super::toolset::Toolset;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns the text that `schemas.tsv` must have for these tools.
#[doc(hidden)]
pub fn schemas_of(toolsets: &[Toolset]) -> String {
    let tools = toolsets.iter().flat_map(|toolset| &toolset.tools);
    // Sorted, and each once: several tools may answer with one type.
    let lines: BTreeSet<String> = tools.flat_map(Tool::generated_schemas).map(line).collect();
    lines.into_iter().collect()
}

/// Returns the text that `schemas.tsv` has.
#[doc(hidden)]
pub fn stored_schemas() -> &'static str {
    STORED
}

fn line((schema_use, type_name, schema): (SchemaUse, &str, Map<String, Value>)) -> String {
    format!("{}\t{type_name}\t{}\n", schema_use.name(), Value::Object(schema))
}
