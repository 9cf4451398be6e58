//! The check of arguments against a schema.

use super::background::{SHARED_PARAMETERS, WantsBackground, take_flag};
use super::coerce::coerce;
use super::correct::corrected;
use super::describe::{
    ambiguous_member, expected, expected_schema, given, member_path, one_of, unknown_member,
};
use super::faults::{ArgumentFaults, InvalidArguments};
use super::rewrite::rewrite;
use super::synonyms::{ArgumentKeyMeaning, keys_equal_but_for_case, meaning};
use crate::mcp::schema::JsonSchemaObject;
use did_you_mean::nearest;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Brings the `arguments` of a call of `tool` to their canonical form.
///
/// # Errors
///
/// All that is wrong with them: unknown members, missing ones, one given under two names, wrong types, values
/// outside their range or their set. Where it can be told which call was meant, the error has it.
pub(crate) fn normalise(
    tool: &str,
    schema: &JsonSchemaObject,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, InvalidArguments> {
    // Taken out first: the flag is no parameter of this tool, and would be an unknown member.
    let wants_background = take_flag(tool, schema, &mut arguments);
    // Kept only for a call that has unknown members, which the error may then name rightly.
    let original = has_other_names(schema, &arguments).then(|| arguments.clone());
    let mut faults = ArgumentFaults::default();
    let mut value = check_object(schema, arguments, "", &mut faults);
    match (faults.into_error(), wants_background) {
        (None, None) => Ok(value),
        (None, Some(WantsBackground { flag, tool })) => {
            let fault = format!("`{flag}` is true, and this tool waits until its program has ended");
            let mut error = InvalidArguments::of(fault);
            value.retain(|name, _| SHARED_PARAMETERS.contains(&name.as_str()));
            error.other_tool = Some(Box::new((tool, value)));
            Err(error)
        }
        (Some(mut error), _) => {
            error.corrected = original.and_then(|original| valid_correction(schema, &original)).map(Box::new);
            Err(error)
        }
    }
}

/// Returns the call that was probably meant, if nothing is wrong with it.
fn valid_correction(schema: &JsonSchemaObject, original: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut faults = ArgumentFaults::default();
    let value = check_object(schema, corrected(schema, original)?, "", &mut faults);
    faults.into_error().is_none().then_some(value)
}

/// Returns true if an argument, or a member of one, stands under a name that its object does not list.
fn has_other_names(schema: &JsonSchemaObject, object: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    object.iter().any(|(key, value)| match properties.get(key) {
        None => true,
        Some(property) => {
            let item = property.get("items").and_then(Value::as_object);
            let objects = value.as_array().into_iter().flatten().filter_map(Value::as_object);
            item.is_some_and(|item| objects.into_iter().any(|object| has_other_names(item, object)))
        }
    })
}

fn check_object(
    schema: &JsonSchemaObject,
    object: Map<String, Value>,
    path: &str,
    faults: &mut ArgumentFaults,
) -> Map<String, Value> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for (one, other) in keys_equal_but_for_case(schema, &object) {
        faults.push(format!("`{one}` and `{other}` differ in nothing but case: give one of them"));
    }
    let object = rewrite(properties, object, path, faults);
    let mut result = Map::with_capacity(object.len());
    for (key, value) in object {
        let (name, property) = match meaning(properties, &key, &value) {
            ArgumentKeyMeaning::Property(name, property) => (name, property),
            ArgumentKeyMeaning::Ambiguous(names) => {
                faults.push(ambiguous_member(&names, &key, path));
                continue;
            }
            other => {
                match (schema.get("additionalProperties"), other) {
                    (Some(Value::Object(any_member)), _) => {
                        let location = member_path(path, &key);
                        let value = check_free_member(any_member, value, &location, faults);
                        result.insert(key, value);
                    }
                    (_, ArgumentKeyMeaning::Note) => {}
                    _ => faults.push(unknown_member(properties, &key, &value, path)),
                }
                continue;
            }
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
            faults.push(format!("`{location}` is given twice, under two names: give it once"));
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

/// Checks a member of an object whose members have names of the caller's choice. Of a variable of an environment
/// everybody writes `1` and `true` without quotes.
fn check_free_member(
    schema: &JsonSchemaObject,
    value: Value,
    path: &str,
    faults: &mut ArgumentFaults,
) -> Value {
    let is_text = schema.get("type").and_then(Value::as_str) == Some("string");
    match value {
        Value::Bool(_) | Value::Number(_) if is_text => Value::String(value.to_string()),
        _ => check(schema, value, path, faults),
    }
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
        // Any member of any type: nothing is known of them here.
        Value::Object(object) if schema.get("additionalProperties") == Some(&Value::Bool(true)) => {
            Value::Object(object)
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
    if let Some(choice) = fitting {
        return check(choice, value, path, faults);
    }
    // The first choice that takes it in another form.
    let coerced = choices.iter().filter_map(Value::as_object).find_map(|choice| {
        let kind = choice.get("type").and_then(Value::as_str)?;
        let coerced = coerce(choice, value.clone());
        has_type(kind, &coerced).then_some((choice, coerced))
    });
    match coerced {
        Some((choice, coerced)) => check(choice, coerced, path, faults),
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
