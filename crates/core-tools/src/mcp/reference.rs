//! The tools as a page for people, from what the host itself checks calls by.

use super::schema::Schema;
use super::tool::Tool;
use serde_json::Value;
use std::fmt::Write as _;

/// A section for each toolset, and in it one for each tool: what it is for, whether it changes anything, and all its
/// parameters, also those that a client's list leaves out.
pub(crate) fn markdown<'a>(tools: impl Iterator<Item = (&'static str, &'a Tool)>) -> String {
    let mut page = String::new();
    let mut last = "";
    for (toolset, tool) in tools {
        if toolset != last {
            let _ = writeln!(page, "## {toolset}\n");
            last = toolset;
        }
        one(&mut page, tool);
    }
    page
}

fn one(page: &mut String, tool: &Tool) {
    let listed = tool.listed(false);
    let title = listed.title.unwrap_or_default();
    let _ = writeln!(page, "### {}\n\n{title}: {}. {}", tool.name(), change(tool), tool.description());
    if !tool.alias_names().is_empty() {
        let names: Vec<_> = tool.alias_names().iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "\nAlso called {}.", names.join(", "));
    }
    let mut rows = String::new();
    properties(&mut rows, tool.input(), tool.input(), "");
    if rows.is_empty() {
        page.push_str("\nIt takes no parameters.\n");
    } else {
        let _ = write!(page, "\n| parameter | takes | |\n|---|---|---|\n{rows}");
    }
    page.push('\n');
}

fn change(tool: &Tool) -> &'static str {
    let hints = tool.listed(false).annotations.unwrap_or_default();
    match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => "reads",
        (_, Some(false)) => "adds, and changes nothing that is there",
        _ => "changes what is there",
    }
}

/// A row for each property, and for each of what it is made of.
fn properties(rows: &mut String, whole: &Schema, object: &Schema, prefix: &str) {
    let required = object.get("required").and_then(Value::as_array);
    let Some(Value::Object(members)) = object.get("properties") else { return };
    for (name, schema) in members {
        let Some(schema) = resolved(whole, schema) else { continue };
        let needed = required.is_some_and(|required| required.iter().any(|other| other == name.as_str()));
        let mut takes = kind(whole, schema);
        if needed {
            takes.push_str(", required");
        } else if let Some(default) = schema.get("default").filter(|value| !value.is_null()) {
            let _ = write!(takes, ", default `{default}`");
        }
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = description.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(rows, "| `{prefix}{name}` | {takes} | {description} |");
        let item = schema.get("items").and_then(|items| resolved(whole, items));
        for (inner, mark) in [(Some(schema), "."), (item, "[].")] {
            if let Some(inner) = inner {
                properties(rows, whole, inner, &format!("{prefix}{name}{mark}"));
            }
        }
    }
}

/// What a reference stands for.
fn resolved<'a>(whole: &'a Schema, schema: &'a Value) -> Option<&'a Schema> {
    let schema = schema.as_object()?;
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/")) {
        Some(name) => whole.get("$defs")?.get(name)?.as_object(),
        None => Some(schema),
    }
}

/// What a value may be, in words.
fn kind(whole: &Schema, schema: &Schema) -> String {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get(key) {
            let kinds: Vec<_> = choices
                .iter()
                .filter_map(|choice| resolved(whole, choice))
                .filter(|choice| choice.get("type").and_then(Value::as_str) != Some("null"))
                .map(|choice| kind(whole, choice))
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
            let item = schema.get("items").and_then(|items| resolved(whole, items));
            format!("list of {}", item.map_or_else(|| "anything".to_owned(), |item| self::kind(whole, item)))
        }
        "object" => "object".to_owned(),
        _ => "anything".to_owned(),
    }
}

fn range(schema: &Schema) -> String {
    let bound =
        |key: &str| schema.get(key).and_then(Value::as_u64).filter(|bound| *bound != u64::from(u32::MAX));
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("number from {low}"),
        (None, Some(high)) => format!("number up to {high}"),
        (None, None) => "number".to_owned(),
    }
}
