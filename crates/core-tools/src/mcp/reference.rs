//! The tools as a page of Markdown, written from the schemas that calls are checked by.

use super::answer::AnswerFormat;
use super::schema::JsonSchemaObject;
use super::tool::Tool;
use serde_json::Value;
use std::fmt::Write as _;

/// Writes a section for each toolset, and in it one for each tool: its purpose, what it changes, and all its
/// parameters, also those that a client's list leaves out.
pub(crate) fn markdown<'a>(tools: impl Iterator<Item = (&'static str, &'a Tool)>) -> String {
    let mut page = String::new();
    let mut last_toolset = "";
    for (toolset, tool) in tools {
        if toolset != last_toolset {
            let _ = writeln!(page, "## {toolset}\n");
            last_toolset = toolset;
        }
        write_tool(&mut page, tool);
    }
    page
}

fn write_tool(page: &mut String, tool: &Tool) {
    let listed = tool.listed(AnswerFormat::TextOnly);
    let title = listed.title.unwrap_or_default();
    let _ = writeln!(page, "### {}\n\n{title}: {}. {}", tool.name(), change(tool), tool.description());
    if !tool.alias_names().is_empty() {
        let names: Vec<_> = tool.alias_names().iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "\nAlso called {}.", names.join(", "));
    }
    let mut rows = String::new();
    write_properties(&mut rows, tool.input(), tool.input(), "");
    if rows.is_empty() {
        page.push_str("\nIt takes no parameters.\n");
    } else {
        let _ = write!(page, "\n| parameter | takes | |\n|---|---|---|\n{rows}");
    }
    page.push('\n');
}

fn change(tool: &Tool) -> &'static str {
    let hints = tool.listed(AnswerFormat::TextOnly).annotations.unwrap_or_default();
    match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => "reads",
        (_, Some(false)) => "adds, and changes nothing that is there",
        _ => "changes what is there",
    }
}

/// Writes a row for each property, and for each property of its objects.
fn write_properties(rows: &mut String, root: &JsonSchemaObject, object: &JsonSchemaObject, prefix: &str) {
    let required = object.get("required").and_then(Value::as_array);
    let Some(Value::Object(members)) = object.get("properties") else { return };
    for (name, schema) in members {
        let Some(schema) = resolved(root, schema) else { continue };
        let is_required =
            required.is_some_and(|required| required.iter().any(|other| other == name.as_str()));
        let mut takes = kind(root, schema);
        if is_required {
            takes.push_str(", required");
        } else if let Some(default) = schema.get("default").filter(|value| !value.is_null()) {
            let _ = write!(takes, ", default `{default}`");
        }
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        // A bar or a line break would end the cell of the table.
        let description = description.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(rows, "| `{prefix}{name}` | {takes} | {description} |");
        let item = schema.get("items").and_then(|items| resolved(root, items));
        for (inner, mark) in [(Some(schema), "."), (item, "[].")] {
            if let Some(inner) = inner {
                write_properties(rows, root, inner, &format!("{prefix}{name}{mark}"));
            }
        }
    }
}

/// Returns the definition that a reference names, or the schema itself.
fn resolved<'a>(root: &'a JsonSchemaObject, schema: &'a Value) -> Option<&'a JsonSchemaObject> {
    let schema = schema.as_object()?;
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/")) {
        Some(name) => root.get("$defs")?.get(name)?.as_object(),
        None => Some(schema),
    }
}

/// Describes the values that a schema takes.
fn kind(root: &JsonSchemaObject, schema: &JsonSchemaObject) -> String {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get(key) {
            let kinds: Vec<_> = choices
                .iter()
                .filter_map(|choice| resolved(root, choice))
                // Null means that the parameter may be left out, which its row shows already.
                .filter(|choice| choice.get("type").and_then(Value::as_str) != Some("null"))
                .map(|choice| kind(root, choice))
                .collect();
            return kinds.join(" or ");
        }
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let words: Vec<_> =
            words.iter().filter(|word| !word.is_null()).map(|word| format!("`{word}`")).collect();
        return words.join(", ").replace('"', "");
    }
    if let Some(word) = schema.get("const") {
        return format!("`{word}`").replace('"', "");
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ => "",
    };
    match kind {
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" | "number" => range(schema),
        "array" => {
            let item = schema.get("items").and_then(|items| resolved(root, items));
            format!("list of {}", item.map_or_else(|| "anything".to_owned(), |item| self::kind(root, item)))
        }
        "object" => "object".to_owned(),
        _ => "anything".to_owned(),
    }
}

fn range(schema: &JsonSchemaObject) -> String {
    // A bound that is only that of the type `u32` tells a reader nothing.
    let bound =
        |key: &str| schema.get(key).and_then(Value::as_u64).filter(|bound| *bound != u64::from(u32::MAX));
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("number from {low}"),
        (None, Some(high)) => format!("number up to {high}"),
        (None, None) => "number".to_owned(),
    }
}
