//! Values that mean the same, brought to the type that the schema has: JSON in a string, numbers and booleans in
//! strings, one item for a list, `1.0`.

use crate::mcp::schema::JsonSchemaObject;
use serde_json::Value;

/// Returns `value` in the form that `schema` takes, where there is no doubt that this is meant.
pub(super) fn coerce(schema: &JsonSchemaObject, value: Value) -> Value {
    match (type_of(schema), value) {
        // JSON text is decoded first. Otherwise a list that came as text would become the one item of another list.
        (Some("array"), value) => to_list(schema, decode_json_text(schema, value)),
        (Some("object"), value) => decode_json_text(schema, value),
        (Some("integer"), value) => as_integer(&value).map_or(value, Value::from),
        (Some("number"), value) => to_number(value),
        (Some("boolean"), value) => as_boolean(&value).map_or(value, Value::from),
        (Some("string"), value) => to_text(schema, value),
        (_, value) => value,
    }
}

fn type_of(schema: &JsonSchemaObject) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

/// Decodes an array or object that was sent as JSON in a string, where the schema takes exactly that. Not where it
/// takes a string too, and not where it takes a list of strings and the JSON is none: `[0]` is a glob.
fn decode_json_text(schema: &JsonSchemaObject, value: Value) -> Value {
    /// Beyond this it stays a string: decoded, JSON may take twenty times its size.
    const MAX_BYTES: usize = 1 << 20;
    let Value::String(text) = &value else { return value };
    if text.len() > MAX_BYTES || !text.trim_start().starts_with(['[', '{']) {
        return value;
    }
    match (type_of(schema), serde_json::from_str(text)) {
        (Some("array"), Ok(Value::Array(items))) => {
            match items_take_strings(schema) && !items.iter().all(|item| items_take(schema, item)) {
                true => value,
                false => Value::Array(items),
            }
        }
        (Some("array"), Ok(decoded @ Value::Object(_))) if items_take(schema, &decoded) => decoded,
        (Some("object"), Ok(decoded @ Value::Object(_))) => decoded,
        _ => value,
    }
}

/// Returns true if the items of a list may have the type of `item`, as they are declared.
fn items_take(schema: &JsonSchemaObject, item: &Value) -> bool {
    let kind = match item {
        Value::String(_) => "string",
        Value::Object(_) => "object",
        Value::Number(_) => "integer",
        _ => return false,
    };
    let Some(items) = schema.get("items") else { return false };
    let choices = items.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = std::iter::once(items).chain(choices).filter_map(|choice| choice.get("type"));
    kinds.any(|other| other == kind || (kind == "integer" && other == "number"))
}

fn items_take_strings(schema: &JsonSchemaObject) -> bool {
    items_take(schema, &Value::String(String::new()))
}

/// Makes one item a list of one, where the items have its type.
fn to_list(schema: &JsonSchemaObject, value: Value) -> Value {
    if items_take(schema, &value) { Value::Array(vec![value]) } else { value }
}

/// Returns the integer that a value is: a number, one with a fraction of nothing (`1.0`, JSON Schema 2020-12, core
/// §4.2.3), or one of these in a string.
pub(super) fn as_integer(value: &Value) -> Option<i64> {
    /// 2^53: beyond it not every integer has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let number = number.as_f64()?;
            #[allow(clippy::cast_possible_truncation, reason = "whole, and within the exact range")]
            (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn to_number(value: Value) -> Value {
    let parsed = match &value {
        // The parser of JSON, because `f64::from_str` also accepts `NaN` and `inf`, which JSON cannot carry.
        Value::String(text) => serde_json::from_str::<serde_json::Number>(text.trim()).ok(),
        _ => None,
    };
    parsed.map_or(value, Value::Number)
}

/// Returns the boolean that a value is, also as the word in a string: Python writes `True`.
pub(super) fn as_boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(boolean) => Some(*boolean),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Makes text of a whole number and of a list of one text. A word of an enumeration may be written in any case.
fn to_text(schema: &JsonSchemaObject, value: Value) -> Value {
    let value = match value {
        Value::Array(mut items) if items.len() == 1 && items.iter().all(Value::is_string) => {
            items.pop().unwrap_or_default()
        }
        other => other,
    };
    match (&value, schema.get("enum").and_then(Value::as_array)) {
        (Value::Number(number), None) if number.is_i64() || number.is_u64() => {
            Value::String(number.to_string())
        }
        (Value::String(word), Some(allowed)) if !allowed.contains(&value) => {
            let is_same =
                |other: &&Value| other.as_str().is_some_and(|other| other.eq_ignore_ascii_case(word));
            let mut same = allowed.iter().filter(is_same);
            // If two allowed words differ only in case, it is not known which one is meant.
            match (same.next(), same.next()) {
                (Some(meant), None) => meant.clone(),
                _ => value,
            }
        }
        _ => value,
    }
}
