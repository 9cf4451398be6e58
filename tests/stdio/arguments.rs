//! Arguments that do not fit are named, with what is allowed and the nearest name.

use crate::connect;
use integration_tests::Era;
use serde_json::{Value, json};

/// Returns the refusal of a call with arguments that do not fit.
fn refusal(tool: &str, arguments: Value) -> String {
    let (project, mut wire) = connect(Era::Initialize("2025-11-25"));
    project.write("a.txt", "one\n");
    wire.failure(tool, arguments)
}

#[test]
fn an_unknown_parameter_is_named_with_the_nearest_there_is_and_the_call_that_was_meant() {
    let text = refusal("read_file", json!({"path": "a.txt", "ofset": 1}));
    assert!(text.contains("`ofset`") && text.contains("`offset`"), "{text}");
    assert!(text.contains("corrected call: {\"path\":\"a.txt\",\"offset\":1}"), "{text}");
    let text =
        refusal("edit_file", json!({"path": "a.txt", "edits": [{"old_strng": "one", "new_string": "1"}]}));
    assert!(text.contains("`edits[0].old_strng`") && text.contains("`edits[0].old_string`"), "{text}");
    let text = refusal("get_diagnostics", json!({"verbose": true}));
    assert!(text.contains("`verbose`"), "{text}");
}

#[test]
fn every_fault_of_one_call_is_named_at_once() {
    let text = refusal("run_command", json!({"comand": "ls", "timeout_ms": 0, "stdin": true}));
    for part in [
        "`comand`",
        "did you mean `command`",
        "`timeout_ms` is 0",
        "from 1 to 600000",
        "`stdin` is true",
        "a string",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
}

#[test]
fn ranges_hold_at_both_ends() {
    for (value, fits) in [(0, false), (1, true), (600_000, true), (600_001, false), (-1, false)] {
        let (_project, mut wire) = connect(Era::Modern);
        let result = wire.call("run_command", json!({"command": ["true"], "timeout_ms": value}));
        // A time limit of 1 ms may well end `true`.
        let refused = result["content"][0]["text"].as_str().unwrap().starts_with("invalid arguments");
        assert_eq!(!refused, fits, "{value}: {result}");
    }
}

#[test]
fn wrong_types_are_named_with_what_was_given_and_what_is_expected() {
    for (arguments, words) in [
        (json!({"path": true}), "`path` is true: expected a string"),
        (json!({"path": ["a.txt", "b.txt"]}), "`path` is an array: expected a string"),
        (json!({"path": null}), "`path` is null: expected a string"),
        (json!({"path": "a.txt", "head": "five"}), "`head` is the string \"five\": expected a whole number"),
        (json!({"path": "a.txt", "head": 1.5}), "`head` is 1.5: expected a whole number"),
        (json!({}), "`path` is missing: expected a string"),
    ] {
        let text = refusal("read_file", arguments.clone());
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[test]
fn camel_case_is_taken_for_snake_case() {
    let (project, mut wire) = connect(Era::Modern);
    project.write("sub/a.txt", "one\n");
    let result = wire.call(
        "run_command",
        json!({"command": ["sh", "-c", "ls"], "workingDirectory": "sub", "timeoutMs": 10_000, "maxOutputBytes": 2000}),
    );
    assert_eq!(result["structuredContent"]["stdout"], "a.txt\n");
    let edits = json!([{"oldString": "one", "newString": "two", "replaceAll": true}]);
    wire.text("edit_file", json!({"path": "sub/a.txt", "edits": edits, "dryRun": false}));
    assert_eq!(project.read("sub/a.txt"), "two\n");
}

#[test]
fn two_spellings_of_one_parameter_are_refused() {
    let text = refusal(
        "run_command",
        json!({"command": ["pwd"], "working_directory": ".", "workingDirectory": ".."}),
    );
    assert!(text.contains("differ in nothing but case") || text.contains("given twice"), "{text}");
}

#[test]
fn null_for_what_may_be_left_out_is_the_same_as_leaving_it_out() {
    let (project, mut wire) = connect(Era::Modern);
    project.write("a.txt", "one\n");
    let arguments = json!({"path": "a.txt", "offset": null, "limit": null, "head": null, "tail": null});
    assert_eq!(wire.text("read_file", arguments), "one\n");
    let arguments = json!({
        "command": ["echo", "x"], "working_directory": null, "timeout_ms": null, "stdin": null, "env": null,
        "max_output_bytes": null
    });
    assert_eq!(wire.call("run_command", arguments)["isError"], false);
}

#[test]
fn environment_variables_keep_their_case() {
    let (_project, mut wire) = connect(Era::Modern);
    let arguments = json!({"command": ["sh", "-c", "echo $myVar"], "env": {"myVar": "kept"}});
    assert_eq!(wire.call("run_command", arguments)["structuredContent"]["stdout"], "kept\n");
}

#[test]
fn an_error_does_not_send_a_big_argument_back() {
    let text = refusal("read_file", json!({"path": "a.txt", "head": "5".repeat(100_000)}));
    assert!(text.len() < 500, "{} bytes", text.len());
    let text = refusal("read_file", json!({"path": "a.txt", "x".repeat(100_000): 1}));
    assert!(text.len() < 500, "{} bytes", text.len());
    let text = refusal("read_file", json!({"path": "x".repeat(100_000)}));
    assert!(text.len() < 500, "{} bytes", text.len());
}

#[test]
fn calls_as_models_write_them_are_understood() {
    let (project, mut wire) = connect(Era::Initialize("2025-11-25"));
    project.write("src/a.txt", "one\ntwo\nthree\n");
    let text = wire.text("read_file", json!({"file_path": "src/a.txt", "start_line": "2", "end_line": 2}));
    assert!(text.contains("two") && !text.contains("three"), "{text}");
    let text =
        wire.text("search_files", json!({"query": "t[wh]", "directory": "src", "glob": "*.txt", "-i": true}));
    assert!(text.contains("two") && text.contains("three"), "{text}");
    let edits = json!([{"oldText": "two", "newText": "2"}]);
    wire.text("edit_file", json!({"filePath": "src/a.txt", "edits": edits, "explanation": "a number"}));
    assert_eq!(project.read("src/a.txt"), "one\n2\nthree\n");
    wire.text("move_file", json!({"from": "src/a.txt", "to": "b.txt"}));
    wire.text("write_file", json!({"filename": "c.txt", "text": "c\n", "description": "Writes c"}));
    assert_eq!(project.read("c.txt"), "c\n");
    let result = wire
        .call("run_command", json!({"cmd": "ls", "args": ["c.txt"], "cwd": ".", "timeout_seconds": "30"}));
    assert_eq!(result["structuredContent"]["stdout"], "c.txt\n", "{result}");
    let result = wire.call("run_command", json!({"command": ["printenv", "N"], "env": {"N": 1}}));
    assert_eq!(result["structuredContent"]["stdout"], "1\n", "{result}");
    let refused = wire.failure("run_command", json!({"command": "sleep 9", "run_in_background": true}));
    assert!(refused.contains("`start_command` does not: {\"command\":\"sleep 9\"}"), "{refused}");
}
