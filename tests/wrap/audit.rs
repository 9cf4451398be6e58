//! The records of calls in the audit.

use crate::{LEGACY, call, setup};
use integration_tests::{Era, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Tool, decision, outcome.
fn told(record: &Value) -> (&str, &str, &str) {
    let text = |name: &str| record[name].as_str().unwrap_or_default();
    (text("tool"), text("decision"), text("outcome"))
}

const POLICY: &str = r#"
version = 1
external_tools = ["echo", "secret", "sleep", "die"]
[roles.dev]
allow = ["*"]
deny = ["secret"]
[[roles.dev.require]]
id = "E"
tools = ["echo"]
additional_arguments = true
arguments = { n = { max = 9, optional = true } }
"#;

#[test]
fn every_call_and_every_refusal_is_a_line_and_no_line_has_a_value_of_an_argument() {
    for era in Era::BOTH {
        let setup = setup(&["--policy", "roles.toml", "--role", "dev", "--audit", "audit.jsonl"]);
        let schema = json!({"type": "object", "properties": {"text": {}, "n": {}, "seconds": {}}});
        let tool = |name: &str| json!({"name": name, "inputSchema": schema});
        let setup =
            setup.offering(&json!([tool("echo"), tool("secret"), tool("sleep"), tool("die"), tool("ask")]));
        setup.project.write("roles.toml", POLICY);
        let mut wire = setup.connect(era);
        wire.text("echo", json!({"text": "hunter2", "n": 3, "hunter3": ["hunter4"]}));
        for (tool, arguments) in [
            ("echo", json!({"text": "hunter2", "n": 10})),
            ("secret", json!({"text": "hunter2"})),
            ("nothing", json!({"text": "hunter2"})),
            ("die", json!({"text": "hunter2"})),
        ] {
            wire.request("tools/call", json!({"name": tool, "arguments": arguments}));
        }
        wire.request("tools/call", json!({"name": "echo", "arguments": ["hunter2"]}));
        wire.text("echo", json!({}));
        let id = call(&mut wire, "sleep", json!({"seconds": 0.3}));
        wait_until(Duration::from_secs(20), "the call has arrived", || setup.calls("sleep") == 1);
        wire.notify("notifications/cancelled", json!({"requestId": id}));
        call(&mut wire, "sleep", json!({"seconds": 600}));
        wait_until(Duration::from_secs(20), "the call has arrived", || setup.calls("sleep") == 2);
        wire.close_input();
        wire.wait(Duration::from_secs(5));

        let text = setup.project.read("audit.jsonl");
        assert!(!text.contains("hunter"), "{text}");
        let lines = records(&text);
        assert_eq!(
            lines.iter().map(told).collect::<Vec<_>>(),
            [
                ("echo", "allowed", "ok"),
                ("echo", "refused", "not_run"),
                ("secret", "hidden", "not_run"),
                ("nothing", "unknown", "not_run"),
                ("die", "allowed", "failed"),
                ("echo", "invalid", "not_run"),
                ("echo", "allowed", "ok"),
                ("sleep", "allowed", "failed"),
                ("sleep", "allowed", "failed"),
            ]
        );
        assert_eq!(lines[0]["arguments"], "text:7c n:number (unknown):1[]");
        assert!(lines.iter().all(|line| line["role"] == "dev" && line["event"] == "call"), "{text}");
        let rule = |line: usize| lines[line]["rule"].as_str().unwrap().to_owned();
        assert!(rule(0).starts_with("dev: allow `*` (") && rule(1).starts_with("dev: require `E` ("));
        assert!(rule(2).starts_with("dev: deny `secret` ("), "{}", rule(2));
        assert!(lines[7]["duration_us"].as_u64().unwrap() > 0);
        assert!(lines[0]["bytes_in"].as_u64().unwrap() > 20 && lines[0]["bytes_out"].as_u64().unwrap() > 50);
    }
}

#[test]
fn where_no_call_may_run_unrecorded_its_start_is_recorded_before_it_is_sent() {
    let setup = setup(&["--audit", "audit.jsonl"]);
    let mut command = setup.command();
    command.env("CORETOOLS_POLICY_AUDIT_WHEN_FULL", "refuse");
    let mut wire = integration_tests::Wire::connect(command, LEGACY);
    wire.text("echo", json!({}));
    call(&mut wire, "sleep", json!({"seconds": 600}));
    wait_until(Duration::from_secs(20), "the call has arrived", || setup.calls("sleep") == 1);
    let lines = records(&setup.project.read("audit.jsonl"));
    let events: Vec<(&str, &str)> =
        lines.iter().map(|line| (line["event"].as_str().unwrap(), line["tool"].as_str().unwrap())).collect();
    assert_eq!(events, [("start", "echo"), ("call", "echo"), ("start", "sleep")]);
}
