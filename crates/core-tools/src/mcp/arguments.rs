//! Arguments as a client sends them, brought to the one form that is judged and run.
//!
//! The schema that is listed is the schema that is checked, member by member, so that a range a client is
//! shown is a range that holds, and so that an error can say where it is, what was there, what is allowed,
//! and what the writer probably meant. Keys may be spelt in camelCase; they come out in `snake_case`. A list
//! or an object may be sent as JSON in a string, as models often do.

use super::schema::Schema;
use crate::nearest::nearest;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// What is wrong with a call's arguments: one line a fault, at most 8 of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct InvalidArguments(Vec<String>);

/// More faults than this say no more than the first ones.
const MAX_FAULTS: usize = 8;

/// Brings `arguments` to their canonical form, or says everything that is wrong with them.
///
/// # Errors
///
/// An unknown member, a missing one, one given twice under two spellings, a wrong type, a value outside
/// its range or its set.
pub(crate) fn normalise(
    schema: &Schema,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, InvalidArguments> {
    let mut faults = Vec::new();
    let value = check_object(schema, arguments, "", &mut faults);
    if faults.is_empty() { Ok(value) } else { Err(InvalidArguments(faults)) }
}

fn fault(faults: &mut Vec<String>, text: String) {
    if faults.len() < MAX_FAULTS {
        faults.push(text);
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn check_object(
    schema: &Schema,
    object: Map<String, Value>,
    path: &str,
    faults: &mut Vec<String>,
) -> Map<String, Value> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let mut result = Map::with_capacity(object.len());
    for (key, value) in object {
        let Some((name, property)) = find(properties, &key) else {
            match schema.get("additionalProperties") {
                Some(Value::Object(free)) => {
                    let place = join(path, &key);
                    let value = check(free, value, &place, faults);
                    result.insert(key, value);
                }
                _ => fault(faults, unknown(properties, &key, path)),
            }
            continue;
        };
        let place = join(path, name);
        // A member that may be left out may also be sent as null: several clients fill every member in.
        if value.is_null() && !required(schema).any(|known| known == name) {
            continue;
        }
        let value = match property {
            Value::Object(property) => check(property, value, &place, faults),
            _ => value,
        };
        if result.insert(name.to_owned(), value).is_some() {
            fault(faults, format!("`{place}` is given twice, in two spellings: give it once"));
        }
    }
    for name in required(schema) {
        if !result.contains_key(name) {
            fault(
                faults,
                format!("`{}` is missing: expected {}", join(path, name), expected(properties.get(name))),
            );
        }
    }
    result
}

fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The member that `key` names, as it stands or in camelCase.
fn find<'a>(properties: &'a Map<String, Value>, key: &str) -> Option<(&'a str, &'a Value)> {
    let found = match properties.get_key_value(key) {
        Some(found) => Some(found),
        None if key.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            properties.get_key_value(&snake_case(key))
        }
        None => None,
    };
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

fn unknown(properties: &Map<String, Value>, key: &str, path: &str) -> String {
    let mut text = format!("unknown parameter `{}`", join(path, &shorten(key)));
    if let Some(name) = nearest(key, properties.keys().map(String::as_str)) {
        let _ = write!(text, "; did you mean `{}`?", join(path, name));
    } else if properties.is_empty() {
        text.push_str("; there are none here");
    } else {
        let names: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
        let _ = write!(text, "; known: {}", names.join(", "));
    }
    text
}

fn check(schema: &Schema, value: Value, path: &str, faults: &mut Vec<String>) -> Value {
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        return check_any(choices, value, path, faults);
    }
    let value = whole(schema, wrap(schema, unquote(schema, value)));
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && !is_of(kind, &value)
    {
        fault(faults, format!("`{path}` is {}: expected {}", describe(&value), expected_schema(schema)));
        return value;
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(&value)
    {
        let mut text = format!("`{path}` is {}: expected {}", describe(&value), one_of(allowed));
        if let Some(meant) =
            value.as_str().and_then(|word| nearest(word, allowed.iter().filter_map(Value::as_str)))
        {
            let _ = write!(text, "; did you mean \"{meant}\"?");
        }
        fault(faults, text);
        return value;
    }
    match value {
        Value::Number(ref number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let (low, high) = (bound(schema, "minimum"), bound(schema, "maximum"));
            if low.is_some_and(|low| number < low) || high.is_some_and(|high| number > high) {
                fault(faults, format!("`{path}` is {value}: expected {}", expected_schema(schema)));
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

/// An array or object that was sent as JSON in a string, where the schema wants exactly that. Not where it
/// takes a string too, and not where a list of strings is wanted and that JSON is none: `[0]` is a glob.
fn unquote(schema: &Schema, value: Value) -> Value {
    /// Decoded, JSON may take twenty times its size.
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
        Ok(meant) => meant,
        Err(_) => value,
    }
}

fn is_list_of_strings(schema: &Schema) -> bool {
    schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str) == Some("string")
}

/// One string where a list of strings is expected is a list of one.
fn wrap(schema: &Schema, value: Value) -> Value {
    if value.is_string() && is_list_of_strings(schema) { Value::Array(vec![value]) } else { value }
}

/// `1.0` is a whole number (JSON Schema 2020-12, core §4.2.3), and comes out as `1`.
fn whole(schema: &Schema, value: Value) -> Value {
    /// Beyond, a float does not know whether it is whole.
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

/// The first choice whose type fits is the one that is checked, so that a fault inside it is named.
fn check_any(choices: &[Value], value: Value, path: &str, faults: &mut Vec<String>) -> Value {
    let fitting = choices
        .iter()
        .filter_map(Value::as_object)
        .find(|choice| choice.get("type").and_then(Value::as_str).is_none_or(|kind| is_of(kind, &value)));
    match fitting {
        Some(choice) => check(choice, value, path, faults),
        None => {
            let kinds: Vec<_> = choices.iter().filter_map(Value::as_object).map(expected_schema).collect();
            fault(faults, format!("`{path}` is {}: expected {}", describe(&value), kinds.join(" or ")));
            value
        }
    }
}

fn check_size(
    schema: &Schema,
    (low, high): (&str, &str),
    unit: &str,
    size: usize,
    path: &str,
    faults: &mut Vec<String>,
) {
    let limit = |key| schema.get(key).and_then(Value::as_u64);
    if let Some(low) = limit(low).filter(|low| (size as u64) < *low) {
        fault(faults, format!("`{path}` has {size} {unit}: expected at least {low}"));
    }
    if let Some(high) = limit(high).filter(|high| size as u64 > *high) {
        fault(faults, format!("`{path}` has {size} {unit}: expected at most {high}"));
    }
}

fn bound(schema: &Schema, key: &str) -> Option<f64> {
    schema.get(key).and_then(Value::as_f64)
}

fn is_of(kind: &str, value: &Value) -> bool {
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

fn expected(property: Option<&Value>) -> String {
    property.and_then(Value::as_object).map_or_else(|| "a value".to_owned(), expected_schema)
}

fn expected_schema(schema: &Schema) -> String {
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

fn one_of(allowed: &[Value]) -> String {
    let words: Vec<_> = allowed.iter().map(Value::to_string).collect();
    match words.as_slice() {
        [only] => only.clone(),
        _ => format!("one of {}", words.join(", ")),
    }
}

/// What was given, short enough to read.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the string {:?}", shorten(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "max_count": {"type": "integer", "minimum": 1, "maximum": 100},
                "mode": {"type": "string", "enum": ["overwrite", "create"]},
                "files": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "edits": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"old_string": {"type": "string", "minLength": 1}},
                    "required": ["old_string"],
                    "additionalProperties": false
                }}
            },
            "required": ["path"],
            "additionalProperties": false
        });
        match schema {
            Value::Object(schema) => schema,
            _ => unreachable!(),
        }
    }

    fn run(arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { unreachable!() };
        normalise(&schema(), arguments).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn camel_case_becomes_snake_case_at_every_level() {
        let given = json!({"path": "a", "maxCount": 3, "edits": [{"oldString": "x"}]});
        let expected = json!({"path": "a", "max_count": 3, "edits": [{"old_string": "x"}]});
        assert_eq!(run(given), Ok(expected));
    }

    #[test]
    fn null_for_an_optional_member_is_the_same_as_leaving_it_out() {
        assert_eq!(run(json!({"path": "a", "mode": null})), Ok(json!({"path": "a"})));
        insta::assert_snapshot!(run(json!({"path": null})).unwrap_err(), @"`path` is null: expected a string");
    }

    #[test]
    fn one_string_is_a_list_of_one() {
        let mut schema = schema();
        schema["properties"]["files"] = json!({"type": "array", "items": {"type": "string"}});
        let given = json!({"path": "a", "files": "b"}).as_object().cloned().unwrap();
        assert_eq!(normalise(&schema, given).unwrap()["files"], json!(["b"]));
    }

    #[test]
    fn a_list_or_an_object_may_be_json_in_a_string() {
        let given = json!({"path": "a", "edits": r#" [{"oldString": "x"}]"#, "env": r#"{"A": "b"}"#});
        let expected = json!({"path": "a", "edits": [{"old_string": "x"}], "env": {"A": "b"}});
        assert_eq!(run(given), Ok(expected));
        let mut schema = schema();
        schema["properties"]["files"] = json!({"type": "array", "items": {"type": "string"}});
        let files = |files: &str| {
            let given = json!({"path": "a", "files": files}).as_object().cloned().unwrap();
            normalise(&schema, given).unwrap()["files"].clone()
        };
        assert_eq!(files(r#"["a", "b"]"#), json!(["a", "b"]));
        // What is no JSON, or not what is wanted, is the one string that it is.
        for name in ["[ab].rs", "[0]", r#"["a", 1]"#, r#"{"a": 1}"#, r#"["a"] "b""#] {
            assert_eq!(files(name), json!([name]));
        }
    }

    #[test]
    fn json_in_a_string_is_judged_like_any_other() {
        let given =
            json!({"path": "a", "edits": r#"[{"old_string": ""}, {"new": 1}]"#, "env": r#"{"A": 1}"#});
        insta::assert_snapshot!(run(given).unwrap_err(), @"
        `edits[0].old_string` has 0 characters: expected at least 1
        unknown parameter `edits[1].new`; known: `old_string`
        `edits[1].old_string` is missing: expected a string
        `env.A` is 1: expected a string
        ");
        let given = json!({"path": "a", "edits": r#"{"old_string": "x"}"#, "env": "[]"});
        insta::assert_snapshot!(run(given).unwrap_err(), @r#"
        `edits` is the string "{\"old_string\": \"x\"}": expected an array of objects
        `env` is the string "[]": expected an object
        "#);
        let given = json!({"path": "a", "edits": "[{]", "env": "A=b"});
        insta::assert_snapshot!(run(given).unwrap_err(), @r#"
        `edits` is the string "[{]": expected an array of objects
        `env` is the string "A=b": expected an object
        "#);
    }

    #[test]
    fn json_in_a_string_stays_a_string_where_one_is_wanted() {
        let given = json!({"path": "[1]", "files": r#"["a", "b"]"#});
        assert_eq!(run(given.clone()), Ok(given));
    }

    #[test]
    fn json_in_a_string_past_any_sense_is_not_decoded() {
        let list = format!("[{}0]", "0,".repeat(1 << 20));
        let error = run(json!({"path": "a", "edits": list})).unwrap_err();
        assert!(error.starts_with("`edits` is the string \"[0,0,"), "{error}");
        assert!(error.ends_with("expected an array of objects") && error.len() < 200, "{error}");
    }

    #[test]
    fn keys_of_a_free_object_keep_their_case() {
        let given = json!({"path": "a", "env": {"fooBar": "1", "PATH": "2"}});
        assert_eq!(run(given.clone()), Ok(given));
    }

    #[test]
    fn a_second_spelling_of_a_member_is_refused() {
        insta::assert_snapshot!(run(json!({"path": "a", "max_count": 1, "maxCount": 2})).unwrap_err(), @"`max_count` is given twice, in two spellings: give it once");
        insta::assert_snapshot!(run(json!({"path": "a", "Path": "b"})).unwrap_err(), @"unknown parameter `Path`; did you mean `path`?");
    }

    #[test]
    fn every_fault_is_named_with_its_place_and_what_is_allowed() {
        let given = json!({
            "max_cout": 3, "max_count": 101, "mode": "overwrit", "files": 5, "env": {"A": 1},
            "edits": [{"old_string": ""}, {"new": 1}]
        });
        insta::assert_snapshot!(run(given).unwrap_err(), @r#"
        unknown parameter `max_cout`; did you mean `max_count`?
        `max_count` is 101: expected a whole number from 1 to 100
        `mode` is the string "overwrit": expected one of "overwrite", "create"; did you mean "overwrite"?
        `files` is 5: expected a string or an array of strings
        `env.A` is 1: expected a string
        `edits[0].old_string` has 0 characters: expected at least 1
        unknown parameter `edits[1].new`; known: `old_string`
        `edits[1].old_string` is missing: expected a string
        "#);
    }

    #[test]
    fn a_wrong_type_is_shown_shortened() {
        let long = "x".repeat(500);
        let error = run(json!({"path": "a", "max_count": long})).unwrap_err();
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_float() {
        assert_eq!(run(json!({"path": "a", "max_count": 3.0})), Ok(json!({"path": "a", "max_count": 3})));
        assert!(run(json!({"path": "a", "max_count": u64::MAX})).is_err());
    }

    #[test]
    fn a_fraction_is_not_a_whole_number() {
        insta::assert_snapshot!(run(json!({"path": "a", "max_count": 1.5})).unwrap_err(), @"`max_count` is 1.5: expected a whole number from 1 to 100");
    }
}
