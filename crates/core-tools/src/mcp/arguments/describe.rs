//! The words of faults: where it is, what was given, what is expected.

use super::units::bare_time;
use crate::mcp::schema::JsonSchemaObject;
use did_you_mean::nearest;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The path of a member: `edits[0].old_string`.
pub(super) fn member_path(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Reports a member that may be any of several.
pub(super) fn ambiguous_member(names: &[&str], key: &str, path: &str) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", member_path(path, name))).collect();
    format!("unknown parameter `{}`; it may mean {}", member_path(path, &shorten(key)), names.join(" or "))
}

/// Reports a member that no property has, with the nearest name.
pub(super) fn unknown_member(
    properties: &Map<String, Value>,
    key: &str,
    value: &Value,
    path: &str,
) -> String {
    let mut text = format!("unknown parameter `{}`", member_path(path, &shorten(key)));
    // A unit is checked before the nearest name: `timeout` is near `timeout_ms`, but its value is in doubt as well.
    if let Some((name, _)) = bare_time(properties, key, value) {
        let _ = write!(text, "; `{}` takes milliseconds", member_path(path, name));
    } else if let Some(name) = nearest(key, properties.keys().map(String::as_str)) {
        let _ = write!(text, "; did you mean `{}`?", member_path(path, name));
    } else if properties.is_empty() {
        text.push_str("; there are none here");
    } else {
        let names: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
        let _ = write!(text, "; known: {}", names.join(", "));
    }
    text
}

/// Describes what a property takes.
pub(super) fn expected(property: Option<&Value>) -> String {
    property.and_then(Value::as_object).map_or_else(|| "a value".to_owned(), expected_schema)
}

/// Describes what a schema takes.
pub(super) fn expected_schema(schema: &JsonSchemaObject) -> String {
    // The allowed words say more than the type `string`, which an enumeration has as well.
    if let Some(Value::Array(allowed)) = schema.get("enum") {
        return one_of(allowed);
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        let kinds: Vec<_> = choices.iter().filter_map(Value::as_object).map(expected_schema).collect();
        return kinds.join(" or ");
    }
    let range = match (schema.get("minimum"), schema.get("maximum")) {
        (Some(low), Some(high)) => format!(" from {low} to {high}"),
        (Some(low), None) => format!(" of at least {low}"),
        (None, Some(high)) => format!(" of at most {high}"),
        (None, None) => String::new(),
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "a string".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => format!("a whole number{range}"),
        Some("number") => format!("a number{range}"),
        Some("object") => "an object".to_owned(),
        Some("array") => {
            match schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str) {
                Some("string") => "an array of strings".to_owned(),
                Some("object") => "an array of objects".to_owned(),
                _ => "an array".to_owned(),
            }
        }
        _ => "a value".to_owned(),
    }
}

/// Lists the values that are allowed.
pub(super) fn one_of(allowed: &[Value]) -> String {
    let words: Vec<_> = allowed.iter().map(Value::to_string).collect();
    match words.as_slice() {
        [only] => only.clone(),
        _ => format!("one of {}", words.join(", ")),
    }
}

/// Describes what was given, short enough to read.
pub(super) fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the string {:?}", shorten(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    // A wrong value may be a whole file. Its beginning is enough to recognize it.
    const MAX_CHARACTERS: usize = 60;
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARACTERS).chain("…".chars()).collect()
}
