//! The parameters of a tool as a person reads them: `call TOOL --help`.

use crate::output::name;
use crate::terminal::TerminalColours;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The width to which descriptions are wrapped, and that of the indentation.
const WIDTH: usize = 96;
const INDENT: usize = 6;

/// Returns the purpose, the parameters and an example of `tool`.
pub(super) fn help(tool: &Tool, colours: TerminalColours) -> String {
    let schema = &*tool.input_schema;
    let mut text = String::new();
    let title = tool.title.as_deref().unwrap_or_default();
    let _ = writeln!(text, "{}  {title}\n", colours.bold(&tool.name));
    let _ = writeln!(text, "{}\n", wrapped(tool.description.as_deref().unwrap_or_default(), 0));
    let _ = writeln!(text, "Usage: {} call {} '{}'\n", name(), tool.name, example(schema));
    let mut parameters = String::new();
    write_parameters(&mut parameters, schema, "", colours);
    match parameters.is_empty() {
        true => text.push_str("It takes no parameters."),
        false => {
            let _ = write!(text, "{}\n{}", colours.bold("Parameters:"), parameters.trim_end());
        }
    }
    text
}

/// Writes each parameter with what it takes, and below it what it means; then the members of those that are objects.
fn write_parameters(text: &mut String, object: &Map<String, Value>, prefix: &str, colours: TerminalColours) {
    let Some(Value::Object(members)) = object.get("properties") else { return };
    for (key, schema) in members {
        let Some(schema) = schema.as_object() else { continue };
        let _ = writeln!(
            text,
            "  {}  {}{}",
            colours.green(&format!("{prefix}{key}")),
            kind(schema),
            necessity(object, key, schema)
        );
        if let Some(description) = schema.get("description").and_then(Value::as_str) {
            let _ = writeln!(text, "{}", wrapped(description, INDENT));
        }
        write_parameters(text, schema, &format!("{prefix}{key}."), colours);
        if let Some(items) = item_objects(schema) {
            write_parameters(text, items, &format!("{prefix}{key}[]."), colours);
        }
    }
}

/// Returns the schema of the items of a list, if they are objects.
fn item_objects(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let items = schema.get("items")?.as_object()?;
    if items.contains_key("properties") {
        return Some(items);
    }
    let choices = items.get("anyOf").or_else(|| items.get("oneOf"))?.as_array()?;
    choices.iter().filter_map(Value::as_object).find(|choice| choice.contains_key("properties"))
}

/// Returns whether a parameter is required, or its default.
fn necessity(object: &Map<String, Value>, key: &str, schema: &Map<String, Value>) -> String {
    let required = object.get("required").and_then(Value::as_array);
    if required.is_some_and(|required| required.iter().any(|name| name == key)) {
        return ", required".to_owned();
    }
    match schema.get("default").filter(|value| !value.is_null()) {
        Some(default) => format!(", default {default}"),
        None => String::new(),
    }
}

/// Describes the values that a schema takes.
fn kind(schema: &Map<String, Value>) -> String {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(choices)) = schema.get(key) {
            let choices = choices.iter().filter_map(Value::as_object);
            let mut kinds: Vec<_> = choices.filter(|choice| !is_null(choice)).map(kind).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let words = words.iter().filter(|word| !word.is_null());
        return words.map(word).collect::<Vec<_>>().join(" | ");
    }
    if let Some(value) = schema.get("const") {
        return word(value);
    }
    let types: Vec<_> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kinds = types.iter().filter(|kind| **kind != "null").map(|kind| match *kind {
        "array" => {
            let items = schema.get("items").and_then(Value::as_object);
            format!("list of {}", items.map_or_else(|| "anything".to_owned(), self::kind))
        }
        "integer" | "number" => range(kind, schema),
        "string" => "text".to_owned(),
        "boolean" => "true | false".to_owned(),
        other => other.to_owned(),
    });
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() { "anything".to_owned() } else { kinds.join(" or ") }
}

fn is_null(schema: &Map<String, Value>) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn range(kind: &str, schema: &Map<String, Value>) -> String {
    // The bound of the type `u32`, which tells a reader nothing.
    let bound =
        |key: &str| schema.get(key).and_then(Value::as_u64).filter(|bound| *bound != u64::from(u32::MAX));
    match (bound("minimum"), bound("maximum")) {
        (Some(low), Some(high)) => format!("{kind} from {low} to {high}"),
        (Some(low), None) => format!("{kind} from {low}"),
        (None, Some(high)) => format!("{kind} up to {high}"),
        (None, None) => kind.to_owned(),
    }
}

/// Returns arguments with the parameters that are required, each with a value of its kind.
fn example(schema: &Map<String, Value>) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let members = required.into_iter().flatten().filter_map(|key| {
        let key = key.as_str()?;
        let schema = schema.get("properties")?.get(key)?.as_object()?;
        Some((key.to_owned(), example_value(key, schema)))
    });
    Value::Object(members.collect()).to_string().replace('\'', "")
}

fn example_value(key: &str, schema: &Map<String, Value>) -> Value {
    for choices in ["anyOf", "oneOf"] {
        if let Some(choice) = schema.get(choices).and_then(|choices| choices.get(0)?.as_object()) {
            return example_value(key, choice);
        }
    }
    if let Some(first) = schema.get("enum").and_then(|words| words.get(0)) {
        return first.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => {
            let items = schema.get("items").and_then(Value::as_object);
            Value::Array(items.map(|items| example_value(key, items)).into_iter().collect())
        }
        Some("object") => serde_json::from_str(&example(schema)).unwrap_or_default(),
        _ if key.contains("path") || key.contains("file") => "README.md".into(),
        _ if key == "command" => "ls -la".into(),
        _ => "…".into(),
    }
}

/// Wraps each paragraph of `text`, and indents it.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    let indented = lines.iter().map(|line| format!("{:indent$}{line}", ""));
    indented.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn tool(schema: Value) -> Tool {
        let Value::Object(schema) = schema else { panic!("an object") };
        Tool::new("edit", "Edits a file. ".repeat(12), Arc::new(schema))
    }

    #[test]
    fn each_parameter_stands_with_its_kind_default_and_meaning_also_within_lists() {
        let help = help(
            &tool(json!({
                "type": "object",
                "required": ["path", "edits"],
                "properties": {
                    "path": {"type": "string", "description": "File to edit."},
                    "edits": {"type": "array", "items": {
                        "type": "object",
                        "required": ["old_string"],
                        "properties": {"old_string": {"type": "string"}, "all": {"type": "boolean", "default": false}},
                    }},
                    "mode": {"type": ["string", "null"], "enum": ["one", "two", null], "default": "one"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 9},
                    "command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                },
            })),
            TerminalColours::OFF,
        );
        for line in [
            "  path  text, required",
            "      File to edit.",
            "  edits[].old_string  text, required",
            "  edits[].all  true | false, default false",
            "  mode  one | two, default \"one\"",
            "  limit  integer from 1 to 9",
            "  command  text or list of text",
        ] {
            assert!(help.lines().any(|found| found == line), "{line}: {help}");
        }
        assert!(help.contains(r#"call edit '{"path":"README.md","edits":[{"old_string":"…"}]}'"#), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
    }

    #[test]
    fn a_tool_without_parameters_says_so() {
        let help = help(&tool(json!({"type": "object"})), TerminalColours::OFF);
        assert!(help.contains("call edit '{}'") && help.ends_with("It takes no parameters."), "{help}");
    }
}
