//! Calls of a wrapped server that a person must approve.

use crate::{WrapSetup, setup};
use integration_tests::{Era, Wire, wait_until};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

const POLICY: &str = r#"
version = 1
external_tools = ["echo", "sleep"]
[roles.asker]
allow = ["echo", "sleep"]
[[roles.asker.require]]
id = "docs-only"
tools = ["echo"]
arguments = { path = { one_of = ["docs"] } }
additional_arguments = true
otherwise = "ask"
"#;

fn asking() -> WrapSetup {
    let setup = setup(&["--policy", "roles.toml", "--role", "asker"]);
    setup.project.write("roles.toml", POLICY);
    setup
}

fn approvals(setup: &WrapSetup, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = setup.project.server();
    let output = command.arg("approvals").args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn waiting(setup: &WrapSetup) -> Vec<Value> {
    let list: Value = serde_json::from_str(&approvals(setup, &["list", "--json"]).1).unwrap();
    list["approvals"].as_array().unwrap().clone()
}

fn wait_for_question(setup: &WrapSetup) -> String {
    wait_until(SOON, "a call waits", || !waiting(setup).is_empty());
    waiting(setup).remove(0)["id"].as_str().unwrap().to_owned()
}

fn ask(wire: &mut Wire, path: &str) -> i64 {
    wire.ask("tools/call", json!({"name": "echo", "arguments": {"path": path}}))
}

#[test]
fn a_call_waits_for_the_operator_and_is_sent_or_not() {
    for era in Era::BOTH {
        let setup = asking();
        let mut wire = setup.connect(era);
        wire.text("echo", json!({"path": "docs"}));
        let sent = setup.calls("echo");
        let id = ask(&mut wire, "src");
        let question = wait_for_question(&setup);
        // Others are not held up, and nothing was sent.
        wire.text("echo", json!({"path": "docs"}));
        assert_eq!(setup.calls("echo"), sent + 1);
        assert_eq!(approvals(&setup, &["allow", &question]).0, Some(0));
        assert_ne!(wire.answer(id)["result"]["isError"], true);
        assert_eq!(setup.calls("echo"), sent + 2);
        assert_eq!(approvals(&setup, &["allow", &question]).0, Some(1), "used once");
        let id = ask(&mut wire, "src");
        let question = wait_for_question(&setup);
        assert_eq!(approvals(&setup, &["deny", &question, "--reason", "not today"]).0, Some(0));
        let text = wire.answer(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains("denied this call, because: not today"), "{text}");
        assert_eq!(setup.calls("echo"), sent + 2);
    }
}

#[test]
fn a_call_that_is_cancelled_or_not_answered_is_not_sent() {
    let setup = asking();
    let mut command = setup.command();
    command.env("CORETOOLS_POLICY_APPROVAL_TIMEOUT_MS", "1500");
    let mut wire = Wire::connect(command, Era::Initialize("2025-11-25"));
    let id = ask(&mut wire, "src");
    wait_for_question(&setup);
    wire.notify("notifications/cancelled", json!({"requestId": id}));
    wait_until(SOON, "the question is taken back", || waiting(&setup).is_empty());
    let text = wire.failure("echo", json!({"path": "lib"}));
    assert!(text.contains("nobody answered in time"), "{text}");
    assert_eq!(setup.calls("echo"), 0);
}
