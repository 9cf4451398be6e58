//! Spellings that mean the same, brought to the one that the schema has: camelCase, JSON in a string, one string for a
//! list, `1.0`.

use crate::mcp::schema::{ALIAS, JsonSchemaObject};
use serde_json::{Map, Value};

/// Returns `value` in the form that `schema` takes, where there is no doubt that this is meant.
pub(super) fn coerce(schema: &JsonSchemaObject, value: Value) -> Value {
    to_integer(schema, to_list(schema, decode_json_text(schema, value)))
}

/// Finds the property that `key` names, as it stands, in camelCase, or by its other name.
pub(super) fn find_property<'a>(
    properties: &'a Map<String, Value>,
    key: &str,
) -> Option<(&'a str, &'a Value)> {
    let found = match properties.get_key_value(key) {
        Some(found) => Some(found),
        None if key.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            properties.get_key_value(&snake_case(key))
        }
        None => None,
    };
    let found = found.or_else(|| {
        properties.iter().find(|(_, value)| value.get(ALIAS).and_then(Value::as_str) == Some(key))
    });
    found.map(|(name, property)| (name.as_str(), property))
}

/// `maxCount` → `max_count`. Only names that start with a small letter are camelCase: `Path` stays a
/// misspelling, so that no second spelling of a judged name slips in.
fn snake_case(key: &str) -> String {
    if key.starts_with(|first: char| first.is_ascii_uppercase()) {
        return key.to_owned();
    }
    let mut name = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// Decodes an array or object that was sent as JSON in a string, where the schema takes exactly that. Not where it
/// takes a string too, and not where it takes a list of strings and the JSON is none: `[0]` is a glob.
fn decode_json_text(schema: &JsonSchemaObject, value: Value) -> Value {
    /// Beyond this it stays a string: decoded, JSON may take twenty times its size.
    const MAX_BYTES: usize = 1 << 20;
    let Value::String(text) = &value else { return value };
    let opening = match schema.get("type").and_then(Value::as_str) {
        Some("array") => '[',
        Some("object") => '{',
        _ => return value,
    };
    if text.len() > MAX_BYTES || !text.trim_start().starts_with(opening) {
        return value;
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) if is_list_of_strings(schema) && !items.iter().all(Value::is_string) => value,
        Ok(decoded) => decoded,
        Err(_) => value,
    }
}

fn is_list_of_strings(schema: &JsonSchemaObject) -> bool {
    schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str) == Some("string")
}

/// Makes one string a list of one where a list of strings is expected.
fn to_list(schema: &JsonSchemaObject, value: Value) -> Value {
    if value.is_string() && is_list_of_strings(schema) { Value::Array(vec![value]) } else { value }
}

/// Makes `1.0` `1` where an integer is expected: it is one (JSON Schema 2020-12, core §4.2.3).
fn to_integer(schema: &JsonSchemaObject, value: Value) -> Value {
    /// 2^53: beyond it not every integer has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.as_f64() {
        Some(number)
            if value.is_f64()
                && schema.get("type").and_then(Value::as_str) == Some("integer")
                && number.fract() == 0.0
                && number.abs() < EXACT =>
        {
            #[allow(clippy::cast_possible_truncation, reason = "whole, and within the exact range")]
            let number = number as i64;
            number.into()
        }
        _ => value,
    }
}
