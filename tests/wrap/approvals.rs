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

/// Makes a call, answers the question about it, and returns the result.
fn answered(wire: &mut Wire, era: Era, path: &str, answer: Value) -> Value {
    let mut params = json!({"name": "echo", "arguments": {"path": path}});
    let id = wire.ask("tools/call", params.clone());
    match era {
        Era::Initialize(_) => {
            let request = wire.receive();
            assert_eq!(request["method"], "elicitation/create", "{request}");
            check_form(&request["params"]);
            wire.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": answer}));
            wire.answer(id)["result"].clone()
        }
        Era::Modern => {
            let result = wire.answer(id)["result"].clone();
            assert_eq!(result["resultType"], "input_required", "{result}");
            check_form(&result["inputRequests"]["approval"]["params"]);
            params["requestState"] = result["requestState"].clone();
            params["inputResponses"] = json!({"approval": answer});
            wire.request("tools/call", params)["result"].clone()
        }
    }
}

fn check_form(form: &Value) {
    assert_eq!(form["requestedSchema"]["properties"]["decision"]["enum"][0], "allow once", "{form}");
    assert!(form["message"].as_str().unwrap().contains("asks to call echo"), "{form}");
}

fn decision(word: &str) -> Value {
    json!({"action": "accept", "content": {"decision": word, "reason": "not today"}})
}

#[test]
fn a_client_that_shows_forms_asks_its_own_user() {
    for era in Era::BOTH {
        let setup = asking();
        let mut wire = Wire::connect_as(setup.command(), era, json!({ "elicitation": {} }));
        wire.text("echo", json!({"path": "docs"}));
        let sent = setup.calls("echo");
        let text = |result: &Value| result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        for (answer, reason) in [
            (decision("deny"), "denied this call, because: not today"),
            (json!({"action": "decline"}), "denied this call"),
            (json!({"action": "cancel"}), "closed without a decision"),
            (decision("Allow once"), "without a decision"),
            (json!({"action": "accept"}), "without a decision"),
        ] {
            let result = answered(&mut wire, era, "src", answer);
            assert!(result["isError"] == true && text(&result).contains(reason), "{era:?} {result}");
        }
        assert_eq!((setup.calls("echo"), waiting(&setup).len()), (sent, 0), "{era:?}");
        assert_ne!(answered(&mut wire, era, "src", decision("allow once"))["isError"], true);
        assert_eq!(setup.calls("echo"), sent + 1);
        // Once is once; for the session the same call runs again, and no other.
        assert_ne!(answered(&mut wire, era, "src", decision("allow for this session"))["isError"], true);
        wire.text("echo", json!({"path": "src"}));
        assert_eq!(setup.calls("echo"), sent + 3);
        assert_eq!(answered(&mut wire, era, "lib", decision("deny"))["isError"], true);
    }
}

#[test]
fn an_answer_of_the_client_lets_no_other_call_run_and_none_twice() {
    let setup = asking();
    let mut wire = Wire::connect_as(setup.command(), Era::Modern, json!({ "elicitation": {} }));
    let call = |path: &str| json!({"name": "echo", "arguments": {"path": path}});
    let asked = wire.request("tools/call", call("src"))["result"].clone();
    let resumed = |path: &str| {
        let mut params = call(path);
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({"approval": decision("allow once")});
        params
    };
    let result = wire.request("tools/call", resumed("lib"))["result"].clone();
    assert!(result["content"][0]["text"].as_str().unwrap().contains("another call"), "{result}");
    // The state was used up.
    let result = wire.request("tools/call", resumed("src"))["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert_eq!(setup.calls("echo"), 0);
}

#[test]
fn the_client_is_told_that_a_question_is_not_needed_any_more() {
    let setup = asking();
    let mut command = setup.command();
    command.env("CORETOOLS_POLICY_APPROVAL_TIMEOUT_MS", "1500");
    let mut wire =
        Wire::connect_as(command, Era::Initialize("2025-11-25"), json!({ "elicitation": {"form": {}} }));
    let id = ask(&mut wire, "src");
    let question = wire.receive();
    let text = wire.answer(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("nobody answered in time"), "{text}");
    let told = wire.others();
    let cancelled = told.iter().find(|message| message["method"] == "notifications/cancelled");
    assert_eq!(cancelled.unwrap()["params"]["requestId"], question["id"], "{told:?}");
    // An answer that comes too late lets nothing run.
    wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": decision("allow once")}));
    wire.text("echo", json!({"path": "docs"}));
    assert_eq!(setup.calls("echo"), 1);
}
