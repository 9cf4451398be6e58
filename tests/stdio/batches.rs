//! JSON-RPC arrays: part of 2025-03-26, of no version before or after.

use crate::connect;
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const ERA: Era = Era::Initialize("2025-03-26");

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

fn sleep(id: &str, seconds: &str) -> Value {
    let arguments = json!({"command": ["sleep", seconds]});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "run_command", "arguments": arguments}})
}

/// Sends an array and returns the members of the array it is answered with, by id.
fn answers(wire: &mut Wire, batch: &Value) -> BTreeMap<String, Value> {
    wire.send(batch);
    let answer = wire.receive();
    let members = answer.as_array().unwrap_or_else(|| panic!("no array: {answer}"));
    members.iter().map(|member| (member["id"].to_string(), member.clone())).collect()
}

#[test]
fn an_array_is_answered_with_one_array() {
    let (_project, mut wire) = connect(ERA);
    let answers = answers(
        &mut wire,
        &json!([
            ping(1),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "list", "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
            {"jsonrpc": "2.0", "id": 4, "result": {}},
            {"jsonrpc": "2.0", "id": 5},
            17,
            sleep("slow", "0.1"),
        ]),
    );
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["\"list\"", "\"slow\"", "1", "3", "5", "null"]);
    assert_eq!(answers["1"]["result"], json!({}));
    assert!(answers["\"list\""]["result"]["tools"].is_array());
    assert_eq!(answers["\"slow\""]["result"]["isError"], false);
    assert_eq!(answers["3"]["error"]["code"], -32601);
    assert_eq!(answers["5"]["error"]["code"], -32600);
    assert_eq!(answers["null"]["error"]["code"], -32600);
    assert!(wire.is_silent_for(Duration::from_millis(50)));
}

#[test]
fn one_member_is_an_array_too() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&json!([ping(1)]));
    assert_eq!(wire.receive(), json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]));
}

#[test]
fn an_array_of_notifications_is_not_answered() {
    let (_project, mut wire) = connect(ERA);
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    wire.send(&json!([notification, notification]));
    assert!(wire.is_silent_for(Duration::from_millis(150)));
    assert_eq!(wire.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn an_empty_array_is_an_invalid_request_and_so_is_an_array_in_an_array() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&json!([]));
    let answer = wire.receive();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{answer}");
    wire.send(&json!([[ping(1)], ping(2)]));
    let answer = wire.receive();
    assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
}

#[test]
fn of_two_members_with_one_id_the_first_is_done() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&json!([sleep("twice", "0.1"), {"jsonrpc": "2.0", "id": "twice", "method": "ping"}]));
    let answer = wire.receive();
    let members = answer.as_array().unwrap();
    assert_eq!(members.len(), 2, "{answer}");
    assert_eq!(members.iter().filter(|member| member["error"]["code"] == -32600).count(), 1, "{answer}");
    assert_eq!(members.iter().filter(|member| member["result"]["isError"] == false).count(), 1, "{answer}");
}

#[test]
fn others_are_answered_while_an_array_waits_for_its_slowest() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&json!([ping("quick"), sleep("slow", "1")]));
    wire.send(&ping("other"));
    assert_eq!(wire.receive()["id"], "other");
    wire.send(&json!([ping("another")]));
    assert_eq!(wire.receive()[0]["id"], "another");
    // The order of the answers is the proof: the array comes last.
    let answer = wire.receive();
    assert_eq!(answer.as_array().map(Vec::len), Some(2), "{answer}");
}

#[test]
fn an_array_is_answered_without_the_member_that_was_cancelled() {
    let (_project, mut wire) = connect(ERA);
    wire.send(&json!([ping("quick"), sleep("slow", "30")]));
    assert!(wire.is_silent_for(Duration::from_millis(100)));
    wire.notify("notifications/cancelled", json!({"requestId": "slow"}));
    assert_eq!(wire.receive(), json!([{"jsonrpc": "2.0", "id": "quick", "result": {}}]));
}

#[test]
fn other_versions_refuse_arrays_and_go_on() {
    for era in Era::all().filter(|era| *era != ERA) {
        let (_project, mut wire) = connect(era);
        wire.request("tools/list", json!({}));
        wire.send(&json!([ping(50), ping(51)]));
        let answer = wire.receive();
        assert_eq!(answer["error"]["code"], -32600, "{era:?}: {answer}");
        assert!(wire.request("tools/list", json!({}))["result"]["tools"].is_array());
        assert_eq!(wire.others(), Vec::<Value>::new(), "{era:?}");
    }
}
