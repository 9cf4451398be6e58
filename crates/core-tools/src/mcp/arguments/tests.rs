//! The canonical form, and the faults that are named instead.

use super::normalise;
use crate::mcp::schema::JsonSchemaObject;
use serde_json::{Value, json};

pub(super) fn schema() -> JsonSchemaObject {
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

pub(super) fn run(arguments: Value) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else { unreachable!() };
    normalise("tool", &schema(), arguments).map(Value::Object).map_err(|error| error.to_string())
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
    assert_eq!(normalise("tool", &schema, given).unwrap()["files"], json!(["b"]));
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
        normalise("tool", &schema, given).unwrap()["files"].clone()
    };
    assert_eq!(files(r#"["a", "b"]"#), json!(["a", "b"]));
    // What is no JSON, or not what is wanted, is the one string that it is.
    for name in ["[ab].rs", "[0]", r#"["a", 1]"#, r#"{"a": 1}"#, r#"["a"] "b""#] {
        assert_eq!(files(name), json!([name]));
    }
}

#[test]
fn json_in_a_string_is_judged_like_any_other() {
    let given = json!({"path": "a", "edits": r#"[{"old_string": ""}, {"new": 1}]"#, "env": r#"{"A": []}"#});
    insta::assert_snapshot!(run(given).unwrap_err(), @"
    `edits[0].old_string` has 0 characters: expected at least 1
    unknown parameter `edits[1].new`; known: `old_string`
    `edits[1].old_string` is missing: expected a string
    `env.A` is an array: expected a string
    ");
    let given = json!({"path": "a", "env": "[]"});
    insta::assert_snapshot!(run(given).unwrap_err(), @r#"`env` is the string "[]": expected an object"#);
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
    insta::assert_snapshot!(run(json!({"path": "a", "max_count": 1, "maxCount": 2})).unwrap_err(), @"`max_count` is given twice, under two names: give it once");
    insta::assert_snapshot!(run(json!({"path": "a", "Path": "b"})).unwrap_err(), @"
    `Path` and `path` differ in nothing but case: give one of them
    unknown parameter `Path`; did you mean `path`?
    ");
}

#[test]
fn every_fault_is_named_with_its_place_and_what_is_allowed() {
    let given = json!({
        "max_cout": 3, "max_count": 101, "mode": "overwrit", "files": true, "env": {"A": []},
        "edits": [{"old_string": ""}, {"new": 1}]
    });
    insta::assert_snapshot!(run(given).unwrap_err(), @r#"
    unknown parameter `max_cout`; did you mean `max_count`?
    `max_count` is 101: expected a whole number from 1 to 100
    `mode` is the string "overwrit": expected one of "overwrite", "create"; did you mean "overwrite"?
    `files` is true: expected a string or an array of strings
    `env.A` is an array: expected a string
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
