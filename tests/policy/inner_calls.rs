//! The calls that one call makes: each is judged, limited and recorded as if it had come alone.

use crate::{PolicyFixture, tester};
use integration_tests::{Era, Wire};
use serde_json::{Value, json};

fn call(tool: &str, arguments: Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

fn write(path: &str) -> Value {
    call("write_file", json!({"path": path, "content": "text"}))
}

fn read(path: &str) -> Value {
    call("read_file", json!({"path": path}))
}

const DOCS_ONLY: &str = "allow = [\"*\"]\ndeny = [\"delete_file\"]\n\
                         [[roles.tester.require]]\nid = \"docs-only\"\ntools = [\"write_file\"]\nwrite_within = [\"docs\"]";

#[test]
fn what_the_role_may_not_do_is_refused_and_what_came_before_has_run() {
    for era in Era::BOTH {
        let judged = PolicyFixture::by(&tester(DOCS_ONLY), [("docs/a.txt", "first words")]);
        let mut wire = judged.connect(era);
        let calls = [read("docs/a.txt"), write("src/b"), write("docs/c")];
        let text = wire.failure("call_tools", json!({"calls": calls}));
        assert!(text.contains("first words") && text.contains("==> 2. write_file: failed"), "{text}");
        assert!(text.contains("refused by policy"), "{text}");
        assert!(text.ends_with("failed: 3. write_file\n"), "{text}");
        assert!(!judged.project.join("src").exists() && !judged.project.join("docs/c").exists());
        let text = wire.text("call_tools", json!({"calls": [write("docs/c")]}));
        assert!(text.starts_with("==> 1. write_file (") && judged.project.join("docs/c").exists(), "{text}");
    }
}

#[test]
fn a_hidden_tool_reads_as_one_that_is_not_there() {
    let judged = PolicyFixture::by(&tester(DOCS_ONLY), [("docs/a.txt", "a")]);
    let mut wire = judged.connect(Era::Modern);
    let mut said = |tool: &str| {
        let alone = wire.request("tools/call", json!({"name": tool, "arguments": {"path": "docs/a.txt"}}));
        let alone = alone["error"]["message"].as_str().unwrap().to_owned();
        let text = wire.failure("call_tools", json!({"calls": [call(tool, json!({"path": "docs/a.txt"}))]}));
        assert!(
            text.contains("no tool is called") && alone.contains(text.lines().nth(1).unwrap()),
            "{text} {alone}"
        );
        text.replace(tool, "TOOL").split_once(" s)").unwrap().1.to_owned()
    };
    assert_eq!(said("delete_file").contains("did you mean"), said("delete_fole").contains("did you mean"));
    assert!(judged.project.join("docs/a.txt").exists());
}

#[test]
fn a_role_that_only_reads_may_make_several_calls_and_writes_with_none() {
    let judged = PolicyFixture::by(&tester(""), [("a.txt", "words")]);
    let mut command = judged.project.server();
    command.args(["--role", "readonly"]);
    let mut wire = Wire::connect(command, Era::Modern);
    let calls = [read("a.txt"), write("b.txt"), call("run_command", json!({"command": ["true"]}))];
    let text = wire.text("call_tools", json!({"calls": calls, "keep_going": true}));
    assert!(text.contains("words"), "{text}");
    for hidden in ["2. write_file: failed", "3. run_command: failed", "no tool is called `write_file`"] {
        assert!(text.contains(hidden), "{text}");
    }
    assert!(!judged.project.join("b.txt").exists());
    let tools = wire.request("tools/list", json!({}))["result"]["tools"].take();
    let listed = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "call_tools").unwrap().clone();
    let hints = &listed["annotations"];
    assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(false), &json!(true)), "{hints}");
}

#[test]
fn a_role_of_one_call_at_once_may_use_it_and_each_call_inside_is_counted() {
    let limits = "allow = [\"*\"]\nlimits = { concurrent_calls = 1, calls_per_minute = 3 }";
    let judged = PolicyFixture::by(&tester(limits), [("a.txt", "words")]);
    let mut wire = judged.connect(Era::Modern);
    let text = wire.failure("call_tools", json!({"calls": vec![read("a.txt"); 5]}));
    assert_eq!(text.matches("words").count(), 3, "{text}");
    assert!(text.contains("==> 4. read_file: failed") && text.contains("3 calls in a minute"), "{text}");
    assert!(text.ends_with("failed: 5. read_file\n"), "{text}");
    let said = wire.failure("read_file", json!({"path": "a.txt"}));
    assert!(said.contains("3 calls in a minute"), "{said}");
}

#[test]
fn the_audit_has_a_record_of_each_call_with_its_caller() {
    let judged = PolicyFixture::by(&tester(DOCS_ONLY), [("docs/a.txt", "a")]);
    let audit = judged.outside.join("audit.jsonl");
    let mut command = judged.server();
    command.arg("--audit").arg(&audit);
    let mut wire = Wire::connect(command, Era::Modern);
    let delete = call("delete_file", json!({"path": "docs/a.txt"}));
    let calls =
        [read("docs/a.txt"), write("src/b"), delete, call("no_such_tool", json!({})), write("docs/c")];
    wire.text("call_tools", json!({"calls": calls, "keep_going": true}));
    let inner = json!({"calls": [call("call_tools", json!({"calls": [read("docs/a.txt")]}))]});
    wire.failure("call_tools", inner);
    let text = std::fs::read_to_string(audit).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let recorded: Vec<_> = lines
        .iter()
        .map(|line| {
            assert_eq!(line["role"], "tester", "{line}");
            ["tool", "decision", "outcome"].map(|key| line[key].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        recorded,
        [
            ["read_file", "allowed", "ok"],
            ["write_file", "refused", "not_run"],
            ["delete_file", "hidden", "not_run"],
            ["no_such_tool", "unknown", "not_run"],
            ["write_file", "allowed", "ok"],
            ["call_tools", "allowed", "ok"],
            ["call_tools", "allowed", "failed"],
        ],
        "{text}"
    );
}
