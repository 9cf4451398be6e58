//! Prompts, resources and completions of the example `everything`: the policy holds for them at list and at call.

use integration_tests::{Era, Wire, everything};
use serde_json::{Value, json};
use std::process::Command;

const CAPABILITIES: &str = r#"{
    "elicitation": {}, "sampling": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}
}"#;

fn connect(role: &str, era: Era) -> Wire {
    let mut command = Command::new(everything());
    command.args(["--role", role]);
    Wire::connect_as(command, era, serde_json::from_str(CAPABILITIES).unwrap())
}

fn names(answer: &Value, list: &str) -> Vec<String> {
    let entries = answer["result"][list].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns an error without what names the request.
fn error(answer: &Value, named: &str) -> String {
    assert!(answer["error"].is_object(), "{answer}");
    answer["error"].to_string().replace(named, "…")
}

#[test]
fn a_role_is_offered_and_given_what_its_policy_allows_and_the_rest_is_not_there() {
    for era in Era::BOTH {
        let (mut all, mut reader) = (connect("all", era), connect("reader", era));
        let list = |wire: &mut Wire, method: &str, list: &str| names(&wire.request(method, json!({})), list);
        let prompts = list(&mut all, "prompts/list", "prompts");
        assert!(prompts.len() > 4, "{prompts:?}");
        assert_eq!(list(&mut reader, "prompts/list", "prompts"), Vec::<String>::new());
        assert_eq!(
            list(&mut reader, "resources/list", "resources"),
            ["static-text", "static-binary", "watched-resource"]
        );
        assert_eq!(list(&mut reader, "resources/templates/list", "resourceTemplates"), ["template-data"]);
        // What is hidden is answered as what never was.
        for prompt in prompts {
            if prompt == "test_input_required_result_prompt" {
                // Asks the user first.
                continue;
            }
            let got = all.request("prompts/get", json!({"name": prompt}));
            let needs_arguments =
                got["error"]["message"].as_str().is_some_and(|text| text.contains("is missing"));
            assert!(got["result"].is_object() || needs_arguments, "{era:?} {prompt}: {got}");
            let hidden = reader.request("prompts/get", json!({"name": prompt}));
            let unknown = reader.request("prompts/get", json!({"name": "no_such"}));
            assert_eq!(error(&hidden, &prompt), error(&unknown, "no_such"), "{era:?}");
            let complete = |name: &str| {
                let reference = json!({"type": "ref/prompt", "name": name});
                json!({"ref": reference, "argument": {"name": "arg1", "value": "te"}})
            };
            let hidden = reader.request("completion/complete", complete(&prompt));
            let unknown = reader.request("completion/complete", complete("no_such"));
            assert_eq!(error(&hidden, &prompt), error(&unknown, "no_such"), "{era:?}");
        }
        let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
        let argument = json!({"name": "arg1", "value": "par"});
        let completed = all.request("completion/complete", json!({"ref": reference, "argument": argument}));
        assert_eq!(
            completed["result"]["completion"]["values"],
            json!(["paris", "park", "party"]),
            "{completed}"
        );
        let read = |wire: &mut Wire, uri: &str| wire.request("resources/read", json!({"uri": uri}));
        let data = read(&mut reader, "test://template/7/data");
        assert!(data["result"]["contents"][0]["text"].as_str().unwrap().contains("ID: 7"), "{data}");
        let code = if era == Era::Modern { -32602 } else { -32002 };
        let missing = read(&mut reader, "test://no-such");
        assert_eq!(
            (&missing["error"]["code"], &missing["error"]["data"]["uri"]),
            (&json!(code), &json!("test://no-such"))
        );
        // A prompt or resource is no tool, under whatever name.
        for name in ["mcp/prompts/test_simple_prompt", "mcp/resources/static-text", "test_sampling"] {
            let hidden = reader.request("tools/call", json!({"name": name, "arguments": {"prompt": "x"}}));
            let unknown = reader.request("tools/call", json!({"name": "zzz", "arguments": {"prompt": "x"}}));
            assert_eq!(error(&hidden, name), error(&unknown, "zzz"), "{era:?}");
        }
    }
}

#[test]
fn a_client_is_told_of_changed_lists_and_of_resources_that_it_watches() {
    let methods = |messages: &[Value]| -> Vec<String> {
        messages.iter().filter_map(|message| message["method"].as_str()).map(str::to_owned).collect()
    };
    let mut wire = connect("all", Era::Initialize("2025-11-25"));
    assert_eq!(
        wire.request("resources/subscribe", json!({"uri": "test://watched-resource"}))["result"],
        json!({})
    );
    assert!(wire.request("resources/subscribe", json!({"uri": "test://no-such"}))["error"].is_object());
    for (tool, told) in [
        ("test_update_resource", "notifications/resources/updated"),
        ("test_trigger_tool_change", "notifications/tools/list_changed"),
        ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
    ] {
        let id = wire.ask("tools/call", json!({"name": tool, "arguments": {}}));
        // The notification and the answer come in either order.
        let mut seen = Vec::new();
        while !(methods(&seen).iter().any(|method| method == told)
            && seen.iter().any(|message| message["id"] == id))
        {
            seen.push(wire.receive());
        }
    }
    let mut wire = connect("all", Era::Modern);
    let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]});
    let wanted = ["notifications/prompts/list_changed", "notifications/resources/updated"];
    let mut told = Vec::new();
    // The changes follow the acknowledgement at once, each time for a subscription of their own.
    for _ in 0..20 {
        let listening = wire.ask("subscriptions/listen", json!({"notifications": filter}));
        while wire.receive()["method"] != "notifications/subscriptions/acknowledged" {}
        for tool in ["test_trigger_tool_change", "test_update_resource", "test_trigger_prompt_change"] {
            wire.ask("tools/call", json!({"name": tool, "arguments": {}}));
        }
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let message = wire.receive();
            let subscription = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            if *subscription == json!(listening) {
                missing.retain(|method| message["method"] != *method);
            }
            told.extend(methods(&[message]));
        }
    }
    // What was not asked for is not told.
    assert!(told.iter().all(|method| wanted.contains(&method.as_str())), "{told:?}");
}

#[test]
fn a_task_is_answered_cancelled_and_unknown_to_a_client_that_has_not_begun_it() {
    let mut wire = connect("all", Era::Modern);
    let begin = |wire: &mut Wire, tool: &str, arguments: Value| {
        let result = wire.call(tool, arguments);
        assert_eq!(result["resultType"], "task", "{result}");
        result["taskId"].as_str().unwrap().to_owned()
    };
    let state =
        |wire: &mut Wire, id: &str| wire.request("tasks/get", json!({"taskId": id}))["result"].clone();
    let id = begin(&mut wire, "confirm_delete", json!({"filename": "a.txt"}));
    let asked = loop {
        let state = state(&mut wire, &id);
        if state["status"] == "input_required" {
            break state;
        }
    };
    assert_eq!(asked["inputRequests"]["confirm"]["method"], "elicitation/create", "{asked}");
    let answer = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    wire.request("tasks/update", json!({"taskId": id, "inputResponses": answer}));
    let done = loop {
        let state = state(&mut wire, &id);
        if state["status"] != "working" {
            break state;
        }
    };
    assert_eq!(done["result"]["content"][0]["text"], "a.txt was deleted", "{done}");
    let id = begin(&mut wire, "slow_compute", json!({"seconds": 500}));
    wire.request("tasks/cancel", json!({"taskId": id}));
    let ended = loop {
        let state = state(&mut wire, &id);
        if state["status"] != "working" {
            break state;
        }
    };
    assert_eq!(ended["status"], "cancelled", "{ended}");
    for method in ["tasks/get", "tasks/cancel"] {
        let unknown = wire.request(method, json!({"taskId": "0"}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
}

#[test]
fn log_messages_are_sent_to_a_client_that_asks_for_them_alone() {
    let logged = |wire: &mut Wire| {
        let others = wire.others();
        others.iter().filter(|message| message["method"] == "notifications/message").count()
    };
    let mut wire = connect("all", Era::Initialize("2025-11-25"));
    wire.text("test_logging_tool", json!({}));
    assert_eq!(logged(&mut wire), 0);
    wire.request("logging/setLevel", json!({"level": "debug"}));
    wire.text("test_logging_tool", json!({}));
    assert_eq!(logged(&mut wire), 1);
    wire.request("logging/setLevel", json!({"level": "error"}));
    wire.text("test_logging_tool", json!({}));
    assert_eq!(logged(&mut wire), 0);
}
