//! The check of arguments against a schema.

use super::coerce::{coerce, find_property};
use super::describe::{expected, expected_schema, given, member_path, one_of, unknown_member};
use super::faults::{ArgumentFaults, InvalidArguments};
use crate::mcp::schema::JsonSchemaObject;
use did_you_mean::nearest;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Brings `arguments` to their canonical form.
///
/// # Errors
///
/// All that is wrong with them: unknown members, missing ones, one given under two spellings, wrong types, values
/// outside their range or their set.
pub(crate) fn normalise(
    schema: &JsonSchemaObject,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, InvalidArguments> {
    let mut faults = ArgumentFaults::default();
    let value = check_object(schema, arguments, "", &mut faults);
    faults.into_result(value)
}

fn check_object(
    schema: &JsonSchemaObject,
    object: Map<String, Value>,
    path: &str,
    faults: &mut ArgumentFaults,
) -> Map<String, Value> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let mut result = Map::with_capacity(object.len());
    for (key, value) in object {
        let Some((name, property)) = find_property(properties, &key) else {
            match schema.get("additionalProperties") {
                Some(Value::Object(any_member)) => {
                    let location = member_path(path, &key);
                    let value = check(any_member, value, &location, faults);
                    result.insert(key, value);
                }
                _ => faults.push(unknown_member(properties, &key, path)),
            }
            continue;
        };
        let location = member_path(path, name);
        // A member that may be left out may also be sent as null: several clients fill every member in.
        if value.is_null() && !required(schema).any(|known| known == name) {
            continue;
        }
        let value = match property {
            Value::Object(property) => check(property, value, &location, faults),
            _ => value,
        };
        if result.insert(name.to_owned(), value).is_some() {
            faults.push(format!("`{location}` is given twice, in two spellings: give it once"));
        }
    }
    for name in required(schema) {
        if !result.contains_key(name) {
            faults.push(format!(
                "`{}` is missing: expected {}",
                member_path(path, name),
                expected(properties.get(name))
            ));
        }
    }
    result
}

fn required(schema: &JsonSchemaObject) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn check(schema: &JsonSchemaObject, value: Value, path: &str, faults: &mut ArgumentFaults) -> Value {
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        return check_any(choices, value, path, faults);
    }
    let value = coerce(schema, value);
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && !has_type(kind, &value)
    {
        faults.push(format!("`{path}` is {}: expected {}", given(&value), expected_schema(schema)));
        return value;
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(&value)
    {
        let mut text = format!("`{path}` is {}: expected {}", given(&value), one_of(allowed));
        if let Some(suggestion) =
            value.as_str().and_then(|word| nearest(word, allowed.iter().filter_map(Value::as_str)))
        {
            let _ = write!(text, "; did you mean \"{suggestion}\"?");
        }
        faults.push(text);
        return value;
    }
    match value {
        Value::Number(ref number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let (low, high) = (bound(schema, "minimum"), bound(schema, "maximum"));
            if low.is_some_and(|low| number < low) || high.is_some_and(|high| number > high) {
                faults.push(format!("`{path}` is {value}: expected {}", expected_schema(schema)));
            }
            value
        }
        Value::String(ref text) => {
            // Counted in characters, as JSON Schema does.
            check_size(schema, ("minLength", "maxLength"), "characters", text.chars().count(), path, faults);
            value
        }
        Value::Array(items) => {
            check_size(schema, ("minItems", "maxItems"), "items", items.len(), path, faults);
            match schema.get("items") {
                Some(Value::Object(item)) => items
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| check(item, value, &format!("{path}[{index}]"), faults))
                    .collect(),
                _ => Value::Array(items),
            }
        }
        Value::Object(object) => Value::Object(check_object(schema, object, path, faults)),
        other => other,
    }
}

/// Checks the value against the first choice whose type fits, so that a fault inside it is named.
fn check_any(choices: &[Value], value: Value, path: &str, faults: &mut ArgumentFaults) -> Value {
    let fitting = choices
        .iter()
        .filter_map(Value::as_object)
        .find(|choice| choice.get("type").and_then(Value::as_str).is_none_or(|kind| has_type(kind, &value)));
    match fitting {
        Some(choice) => check(choice, value, path, faults),
        None => {
            let kinds: Vec<_> = choices.iter().filter_map(Value::as_object).map(expected_schema).collect();
            faults.push(format!("`{path}` is {}: expected {}", given(&value), kinds.join(" or ")));
            value
        }
    }
}

fn check_size(
    schema: &JsonSchemaObject,
    (low, high): (&str, &str),
    unit: &str,
    size: usize,
    path: &str,
    faults: &mut ArgumentFaults,
) {
    let limit = |key| schema.get(key).and_then(Value::as_u64);
    if let Some(low) = limit(low).filter(|low| (size as u64) < *low) {
        faults.push(format!("`{path}` has {size} {unit}: expected at least {low}"));
    }
    if let Some(high) = limit(high).filter(|high| size as u64 > *high) {
        faults.push(format!("`{path}` has {size} {unit}: expected at most {high}"));
    }
}

fn bound(schema: &JsonSchemaObject, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64(),
        _ => true,
    }
}
