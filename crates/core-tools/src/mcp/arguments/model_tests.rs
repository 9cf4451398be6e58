//! Calls as models write them: other names, other types, other forms.

use super::normalise;
use super::tests::{run, schema};
use serde_json::{Value, json};

/// Brings arguments to the form that a tool with these properties takes.
#[allow(clippy::needless_pass_by_value, reason = "each is made for its call")]
fn run_with(properties: Value, arguments: Value) -> Result<Value, String> {
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else { unreachable!() };
    normalise("tool", &schema, arguments).map(Value::Object).map_err(|error| error.to_string())
}

#[test]
fn numbers_and_booleans_may_be_strings_and_text_may_be_a_number() {
    let properties = json!({
        "count": {"type": "integer", "minimum": 1}, "share": {"type": "number"}, "deep": {"type": "boolean"},
        "word": {"type": "string"}, "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}}, "mode": {"type": "string", "enum": ["a", "b"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}
    });
    let given = json!({
        "count": " 5 ", "share": "0.5", "deep": "True", "word": 404, "env": {"PORT": 8080, "CI": true, "X": 1.5},
        "ids": "[1, 2]", "mode": "A", "either": "7"
    });
    let expected = json!({
        "count": 5, "share": 0.5, "deep": true, "word": "404", "env": {"PORT": "8080", "CI": "true", "X": "1.5"},
        "ids": [1, 2], "mode": "a", "either": 7
    });
    assert_eq!(run_with(properties.clone(), given), Ok(expected));
    assert_eq!(
        run_with(properties.clone(), json!({"ids": 3, "word": ["one"], "either": "x"})),
        Ok(json!({"ids": [3], "word": "one", "either": ["x"]}))
    );
    // What is no number stays what it is, and a number out of range is out of range.
    insta::assert_snapshot!(run_with(properties, json!({
        "count": "0", "share": "half", "deep": "yes", "word": true, "ids": "[[1]]", "mode": "c", "either": {}
    })).unwrap_err(), @r#"
    `count` is 0: expected a whole number of at least 1
    `share` is the string "half": expected a number
    `deep` is the string "yes": expected true or false
    `word` is true: expected a string
    `ids[0]` is an array: expected a whole number
    `mode` is the string "c": expected one of "a", "b"
    `either` is an object: expected a whole number or an array of strings
    "#);
}

#[test]
fn one_object_is_a_list_of_one_also_as_json() {
    let expected = json!({"path": "a", "edits": [{"old_string": "x"}]});
    for edits in [json!({"oldString": "x"}), json!(r#"{"old_str": "x"}"#)] {
        assert_eq!(run(json!({"path": "a", "edits": edits})), Ok(expected.clone()));
    }
}

#[test]
fn a_list_of_texts_or_objects_takes_both_in_every_form() {
    let properties = json!({"paths": {"type": "array", "items": {"anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {
            "path": {"type": "string"}, "offset": {"type": "integer"}, "limit": {"type": "integer"}
        }, "required": ["path"], "additionalProperties": false}
    ]}}});
    let expected = json!({"paths": ["a", {"path": "b", "offset": 3, "limit": 4}]});
    for paths in [
        json!(["a", {"file_path": "b", "start_line": 3, "end_line": "6"}]),
        json!(r#"["a", {"filePath": "b", "startLine": 3, "endLine": 6}]"#),
    ] {
        assert_eq!(run_with(properties.clone(), json!({"files": paths})), Ok(expected.clone()));
    }
    assert_eq!(run_with(properties, json!({"paths": "[a].rs"})), Ok(json!({"paths": ["[a].rs"]})));
}

#[test]
fn another_word_for_a_parameter_is_taken_where_it_can_mean_one_thing() {
    let text = || json!({"type": "string"});
    for (properties, given, expected) in [
        (json!({"path": text()}), json!({"filePath": "a"}), json!({"path": "a"})),
        (json!({"path": text()}), json!({"file-name": "a"}), json!({"path": "a"})),
        (json!({"path": text()}), json!({"dir": "a"}), json!({"path": "a"})),
        (
            json!({"command": text(), "working_directory": text()}),
            json!({"cmd": "ls", "cwd": "src"}),
            json!({"command": "ls", "working_directory": "src"}),
        ),
        (json!({"repository_path": text()}), json!({"path": "a"}), json!({"repository_path": "a"})),
        (
            json!({"source": text(), "destination": text()}),
            json!({"from": "a", "to": "b"}),
            json!({"source": "a", "destination": "b"}),
        ),
        (json!({"pattern": text()}), json!({"query": "x"}), json!({"pattern": "x"})),
        (
            json!({"pattern": text(), "include": {"type": "array", "items": text()}}),
            json!({"regex": "x", "glob": "*.rs"}),
            json!({"pattern": "x", "include": ["*.rs"]}),
        ),
        (json!({"pattern": text()}), json!({"glob": "*.rs"}), json!({"pattern": "*.rs"})),
        (
            json!({"pattern": text(), "include": {"type": "array", "items": text()}}),
            json!({"pattern": "x", "files": ["src"]}),
            json!({"pattern": "x", "include": ["src"]}),
        ),
        (
            json!({"revision": text(), "staged": {"type": "boolean"}}),
            json!({"commit": "HEAD", "cached": "true"}),
            json!({"revision": "HEAD", "staged": true}),
        ),
        (
            json!({"old_string": text(), "new_string": text()}),
            json!({"oldText": "a", "new_str": "b"}),
            json!({"old_string": "a", "new_string": "b"}),
        ),
        (json!({"content": text()}), json!({"file_text": "a"}), json!({"content": "a"})),
        (json!({"max_count": {"type": "integer"}}), json!({"limit": "3"}), json!({"max_count": 3})),
        (json!({"case": text()}), json!({"-i": true}), json!({"case": "insensitive"})),
        (json!({"case": text()}), json!({"case_sensitive": true}), json!({"case": "sensitive"})),
        (json!({"literal": {"type": "boolean"}}), json!({"use_regex": true}), json!({"literal": false})),
        (json!({"pattern": text(), "path": text()}), json!({"-n": true, "recursive": true}), json!({})),
        (
            json!({"timeout_ms": {"type": "integer"}}),
            json!({"timeout": 120_000}),
            json!({"timeout_ms": 120_000}),
        ),
        (json!({"wait_ms": {"type": "integer"}}), json!({"waitSeconds": 1.5}), json!({"wait_ms": 1500})),
        (
            json!({"depth": {"type": "integer", "maximum": 10}, "path": text()}),
            json!({"recursive": true}),
            json!({"depth": 10}),
        ),
        (
            json!({"expr": {"type": "string", "alias": ["expression"]}}),
            json!({"expression": "a"}),
            json!({"expr": "a"}),
        ),
    ] {
        assert_eq!(run_with(properties, given.clone()), Ok(expected), "{given}");
    }
}

#[test]
fn another_word_takes_nothing_from_a_parameter_that_the_tool_has() {
    let properties = json!({
        "path": {"type": "string"}, "query": {"type": "string"}, "pattern": {"type": "string"},
        "description": {"type": "string"}, "start_line": {"type": "integer"}, "offset": {"type": "integer"},
        "limit": {"type": "integer"}
    });
    let given = json!({"query": "a", "description": "b", "start_line": 2});
    assert_eq!(run_with(properties.clone(), given.clone()), Ok(given));
    insta::assert_snapshot!(
        run_with(properties, json!({"path": "a", "file_path": "b"})).unwrap_err(),
        @"`path` is given twice, under two names: give it once"
    );
}

#[test]
fn a_word_that_can_mean_two_things_is_named_with_a_corrected_call() {
    let properties = json!({"project_path": {"type": "string"}, "test_path": {"type": "string"}});
    insta::assert_snapshot!(run_with(properties, json!({"path": "tests/a.py"})).unwrap_err(), @r#"
    unknown parameter `path`; it may mean `test_path` or `project_path`
    corrected call: {"test_path":"tests/a.py"}
    "#);
    let properties = json!({"timeout_ms": {"type": "integer"}});
    insta::assert_snapshot!(run_with(properties, json!({"timeout": "60"})).unwrap_err(), @r#"
    unknown parameter `timeout`; `timeout_ms` takes milliseconds
    corrected call: {"timeout_ms":60000}
    "#);
}

#[test]
fn a_corrected_call_is_shown_only_if_it_would_run() {
    insta::assert_snapshot!(run(json!({"path": "a", "edits": [{"old_strin": "x"}], "max_cout": "3"})).unwrap_err(), @r#"
    unknown parameter `edits[0].old_strin`; did you mean `edits[0].old_string`?
    `edits[0].old_string` is missing: expected a string
    unknown parameter `max_cout`; did you mean `max_count`?
    corrected call: {"path":"a","edits":[{"old_string":"x"}],"max_count":3}
    "#);
    for given in [
        json!({"path": "a", "max_cout": 0}),
        json!({"path": "a", "max_cout": 1, "verbose": true}),
        json!({"max_cout": 1}),
        json!({"path": "x".repeat(1000), "max_cout": 1}),
    ] {
        let error = run(given).unwrap_err();
        assert!(!error.contains("corrected") && error.len() < 300, "{error}");
    }
}

#[test]
fn a_note_to_the_user_is_passed_over_where_no_parameter_has_its_name() {
    let given = json!({"path": "a", "description": "Reads a", "explanation": "to know it"});
    assert_eq!(run(given), Ok(json!({"path": "a"})));
    assert!(run(json!({"path": "a", "description": {"a": 1}})).is_err());
    assert!(run(json!({"path": "a", "description": "x".repeat(20_000)})).is_err());
}

#[test]
fn keys_that_differ_in_nothing_but_case_are_refused_in_every_alphabet() {
    for (one, other) in [("path", "PATH"), ("filePath", "filepath"), ("\u{212a}", "k"), ("ß", "SS")] {
        let error = run(json!({"path": "a", one: "b", other: "c"})).unwrap_err();
        assert!(error.contains("differ in nothing but case"), "{error}");
    }
    // In a free object they are names of the caller's.
    let given = json!({"path": "a", "env": {"http_proxy": "1", "HTTP_PROXY": "2"}});
    assert_eq!(run(given.clone()), Ok(given));
}

#[test]
fn a_range_of_lines_becomes_a_first_line_and_a_number_of_lines() {
    let lines = |given: Value| {
        let number = json!({"type": "integer"});
        run_with(json!({"path": {"type": "string"}, "offset": number, "limit": number}), given)
    };
    for (given, expected) in [
        (json!({"start_line": 10, "end_line": 12}), json!({"offset": 10, "limit": 3})),
        (json!({"startLine": "10"}), json!({"offset": 10})),
        (json!({"end_line": 5}), json!({"limit": 5})),
        (json!({"offset": 3, "end_line": 5}), json!({"offset": 3, "limit": 3})),
        (json!({"view_range": [4, 4]}), json!({"offset": 4, "limit": 1})),
        (json!({"view_range": [4, -1]}), json!({"offset": 4})),
    ] {
        assert_eq!(lines(given.clone()), Ok(expected), "{given}");
    }
    insta::assert_snapshot!(lines(json!({"start_line": 10, "end_line": 2})).unwrap_err(), @"`end_line` is 2, and the first line 10: expected a line from there on");
    insta::assert_snapshot!(lines(json!({"start_line": "x"})).unwrap_err(), @r#"`start_line` is the string "x": expected the number of a line"#);
    insta::assert_snapshot!(lines(json!({"start_line": 1, "offset": 2})).unwrap_err(), @"`start_line` and `offset` say the same: give `offset` alone");
    insta::assert_snapshot!(lines(json!({"start_line": 1, "end_line": 2, "limit": 9})).unwrap_err(), @"`end_line` and `limit` say the same: give `limit` alone");
    for given in [
        json!({"view_range": 3}),
        json!({"view_range": [1, 2], "start_line": 1}),
        json!({"end_line": i64::MIN}),
    ] {
        assert!(lines(given.clone()).is_err(), "{given}");
    }
    assert!(lines(json!({"start_line": i64::MIN, "end_line": i64::MAX})).is_err());
}

#[test]
fn arguments_beside_a_program_are_one_command() {
    let command = |given: Value| {
        let words = json!({"type": "array", "items": {"type": "string"}});
        run_with(json!({"command": {"anyOf": [{"type": "string"}, words]}}), given)
    };
    for (given, expected) in [
        (json!({"command": "ls", "args": ["-l", "a b"]}), json!({"command": ["ls", "-l", "a b"]})),
        (json!({"cmd": "ls -l", "args": "src"}), json!({"command": "ls -l src"})),
        (json!({"command": ["git"], "args": ["log", 5]}), json!({"command": ["git", "log", "5"]})),
        (json!({"command": "ls -l", "args": []}), json!({"command": "ls -l"})),
    ] {
        assert_eq!(command(given.clone()), Ok(expected), "{given}");
    }
    insta::assert_snapshot!(command(json!({"command": "npm run", "args": ["a b"]})).unwrap_err(), @"`args` does not go with this `command`: give `command` as an array of the program and its arguments");
    insta::assert_snapshot!(command(json!({"args": ["ls"]})).unwrap_err(), @"`args` stands alone: `command` is an array of the program and its arguments");
}

#[test]
fn the_background_is_another_tool() {
    let mut schema = schema();
    schema["properties"] = json!({"command": {"type": "string"}, "timeout_ms": {"type": "integer"}});
    schema["required"] = json!(["command"]);
    let call = |tool: &str, given: Value| normalise(tool, &schema, given.as_object().cloned().unwrap());
    let wanted = json!({"cmd": "serve", "run_in_background": true, "timeout_ms": 5});
    let error = call("run_command", wanted.clone()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`run_in_background` is true, and this tool waits until its program has ended"
    );
    let (other, arguments) = *error.other_tool.unwrap();
    assert_eq!((other, Value::Object(arguments)), ("start_command", json!({"command": "serve"})));
    let expected = json!({"command": "serve", "timeout_ms": 5});
    assert_eq!(call("start_command", wanted).map(Value::Object), Ok(expected));
    let not_wanted = json!({"command": "serve", "background": "false"});
    assert_eq!(call("run_command", not_wanted.clone()).map(Value::Object), Ok(json!({"command": "serve"})));
    assert!(call("start_command", not_wanted).is_err());
}

proptest::proptest! {
    #[test]
    fn no_arguments_make_it_panic_and_what_comes_out_has_listed_names_alone(
        keys in proptest::collection::vec("[a-zA-Z_-]{1,12}|start_line|end_line|view_range|args|cmd|timeout|file_path|recursive", 0..6),
        number in proptest::num::i64::ANY, text in ".{0,12}", kind in 0..6_u8,
    ) {
        let value = match kind {
            0 => json!(number),
            1 => json!(text),
            2 => json!([number, text]),
            3 => json!({text: number}),
            4 => json!(number.to_string()),
            _ => json!(f64::from_bits(number.unsigned_abs())),
        };
        let number = json!({"type": "integer"});
        let properties = json!({
            "path": {"type": "string"}, "offset": number, "limit": number, "timeout_ms": number,
            "command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "depth": {"type": "integer", "maximum": 9}
        });
        let given = keys.into_iter().map(|key| (key, value.clone())).collect();
        if let Ok(Value::Object(canonical)) = run_with(properties.clone(), Value::Object(given)) {
            for key in canonical.keys() {
                proptest::prop_assert!(properties.get(key).is_some(), "{key}");
            }
        }
    }
}
