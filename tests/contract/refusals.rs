//! The words of refusals: a model reads them and acts on them.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

#[test]
fn bad_calls_are_refused_in_the_words_recorded() {
    let project = Project::with([
        ("a.txt", "one\ntwo\none\n"),
        ("folder/b.txt", "b\n"),
        (".env", "GITHUB_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345\n"),
    ]);
    std::fs::write(project.join("binary"), [0, 159, 146, 150, 0, 1, 2]).unwrap();
    std::os::unix::fs::symlink("/etc", project.join("outside")).unwrap();
    std::os::unix::fs::symlink("loop", project.join("loop")).unwrap();
    let edit =
        |old: &str, new: &str| json!({"path": "a.txt", "edits": [{"old_string": old, "new_string": new}]});
    let calls = [
        ("read_file", json!({})),
        ("read_file", json!({"path": "a.text"})),
        ("read_file", json!({"path": "folder"})),
        ("read_file", json!({"path": "folder/none/c.txt"})),
        ("read_file", json!({"path": "a.txt/b"})),
        ("read_file", json!({"path": ""})),
        ("read_file", json!({"path": "a\u{0}b"})),
        ("read_file", json!({"path": "../secret"})),
        ("read_file", json!({"path": "/etc/passwd"})),
        ("read_file", json!({"path": "outside/passwd"})),
        ("read_file", json!({"path": "loop"})),
        ("read_file", json!({"path": "binary"})),
        ("read_file", json!({"path": "a.txt", "offset": 9})),
        ("read_file", json!({"path": "a.txt", "head": 1, "tail": 1})),
        ("read_file", json!({"path": "a.txt", "limit": 0})),
        ("read_file", json!({"path": "a.txt", "lines": 3})),
        ("read_multiple_files", json!({"paths": []})),
        ("read_media_file", json!({"path": "a.txt"})),
        ("write_file", json!({"path": "a.txt", "content": "", "mode": "replace"})),
        ("write_file", json!({"path": "a.txt", "content": "", "mode": "create"})),
        ("write_file", json!({"path": "folder", "content": ""})),
        ("write_file", json!({"path": ".env", "content": "GITHUB_TOKEN=[redacted:github-token]\n"})),
        ("edit_file", edit("three", "3")),
        ("edit_file", edit("one", "1")),
        ("edit_file", edit("two", "two")),
        ("edit_file", edit("", "x")),
        ("edit_file", edit("TWO", "x")),
        ("edit_file", json!({"path": "a.txt", "edits": []})),
        (
            "edit_file",
            json!({"path": ".env", "edits": [{"old_string": "[redacted:github-token]", "new_string": "x"}]}),
        ),
        ("list_directory", json!({"path": "a.txt"})),
        ("list_directory", json!({"depth": 11})),
        ("move_file", json!({"source": "none", "destination": "b.txt"})),
        ("move_file", json!({"source": "a.txt", "destination": "folder/b.txt"})),
        ("move_file", json!({"source": "folder", "destination": "folder/inside"})),
        ("delete_file", json!({"path": "folder"})),
        ("create_directory", json!({"path": "a.txt"})),
        ("run_command", json!({"command": ""})),
        ("run_command", json!({"command": []})),
        ("run_command", json!({"command": true})),
        ("run_command", json!({"command": "ls | wc"})),
        ("run_command", json!({"command": "make > log"})),
        ("run_command", json!({"command": "A=1 make"})),
        ("run_command", json!({"command": "cd folder && ls"})),
        ("run_command", json!({"command": "echo 'open"})),
        ("run_command", json!({"command": ["./a.txt"]})),
        ("run_command", json!({"command": ["folder/"]})),
        ("run_command", json!({"command": ["ls"], "working_directory": "none"})),
        ("run_command", json!({"command": ["ls"], "working_directory": ".."})),
        ("run_command", json!({"command": ["ls"], "timeout_ms": 600_001})),
        ("run_command", json!({"command": ["ls"], "env": {"A": []}})),
        ("run_command", json!({"command": ["ls"], "env": {"A=B": "1"}})),
        ("read_command_output", json!({"id": 7})),
        ("write_command_input", json!({"id": 7, "text": "x"})),
        ("stop_command", json!({"id": -1})),
    ];
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let mut said = String::new();
    for (tool, arguments) in calls {
        let text = wire.failure(tool, arguments.clone());
        said.push_str(&format!("{tool} {arguments}\n    {}\n", text.replace('\n', "\n    ")));
    }
    for request in [
        ("tools/call", json!({"name": "read_fil"})),
        ("tools/call", json!({"name": "frobnicate"})),
        ("tools/call", json!({"name": 5})),
        ("tools/list", json!({"cursor": "x"})),
        ("tools/lists", json!({})),
        ("prompts/list", json!({})),
    ] {
        let answer = wire.request(request.0, request.1.clone());
        let error: &Value = &answer["error"];
        said.push_str(&format!("{} {}\n    {} {}\n", request.0, request.1, error["code"], error["message"]));
    }
    let root = project.path().canonicalize().unwrap().display().to_string();
    insta::assert_snapshot!("refusals", said.replace(&root, "/project"));
}

/// The server answers any argument, briefly, and goes on.
#[test]
fn nonsense_in_any_argument_of_any_tool_is_answered() {
    let project = Project::empty();
    let mut wire = Wire::connect(project.server(), Era::Modern);
    let nonsense = [
        Value::Null,
        json!(1),
        json!(-1),
        json!(1e300),
        json!([]),
        json!({}),
        json!(""),
        json!("x".repeat(1 << 20)),
        json!("a\u{0}b"),
        json!("../../etc/passwd"),
        json!("-rf"),
        json!({"a": [[[[1]]]]}),
        json!([null, "x", 1]),
    ];
    let mut wrong = Vec::new();
    for tool in crate::all() {
        let schema = &tool["inputSchema"];
        let name = crate::name(&tool);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let filled: serde_json::Map<String, Value> =
            required.iter().map(|name| (name.as_str().unwrap().to_owned(), json!("x"))).collect();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        for property in properties.keys().map(String::as_str).chain(["no_such_argument"]) {
            for value in &nonsense {
                let mut arguments = filled.clone();
                arguments.insert(property.to_owned(), value.clone());
                let result = wire.call(name, arguments.into());
                let text = result["content"][0]["text"].as_str().unwrap_or_default();
                if text.contains("panicked") || (result["isError"] == true && text.len() > 20_000) {
                    let start = |text: &str| text.chars().take(40).collect::<String>();
                    let value = start(&value.to_string());
                    wrong.push(format!("{name} {property} {value}: {} bytes: {}", text.len(), start(text)));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    wire.text("list_directory", json!({}));
}
