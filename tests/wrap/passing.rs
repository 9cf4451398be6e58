//! Messages that may pass arrive as they were meant.

use crate::{LEGACY, call, names, setup};
use integration_tests::{Era, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn all_pages_of_the_list_come_as_one_with_what_nobody_knows() {
    for era in Era::all() {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        let result = wire.request("tools/list", json!({}))["result"].clone();
        let tools = result["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 9);
        assert_eq!(tools[0]["x-new"], json!([100.0]));
        assert_eq!(result["x-future"], json!({"kept": true}));
        assert!(result.get("nextCursor").is_none());
        assert_eq!(result.get("cacheScope"), (era == Era::Modern).then_some(&json!("private")));
        let answer = wire.request("tools/list", json!({"cursor": "3"}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[test]
fn ids_come_back_as_they_were_sent() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    for id in
        [r#""text""#, r#""1""#, "0", "-5", "123456789012345678901234567890", r#""\"quoted\" \\ \u00e9""#]
    {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{}}}}}}"#
        );
        wire.send_bytes(format!("{line}\n").as_bytes());
        let answer = wire.receive();
        // Beyond 64 bits the test's own parser rounds, alike on both sides.
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).unwrap(), "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], "{}");
    }
}

#[test]
fn many_calls_at_once_each_get_their_own_answer() {
    for era in Era::BOTH {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        let asked: Vec<(i64, usize)> = (0..200)
            .map(|n| (call(&mut wire, "echo", json!({"n": n, "fill": "é\n".repeat(n * 20)})), n))
            .collect();
        for (id, n) in asked {
            let answer = wire.answer(id);
            assert_eq!(answer["result"]["structuredContent"]["n"], n);
            assert_eq!(answer["result"]["structuredContent"]["fill"], "é\n".repeat(n * 20));
        }
    }
}

#[test]
fn a_large_call_and_its_large_answer_pass() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    let big = "0123456789abcdef".repeat(300_000);
    let result = wire.call("echo", json!({"big": big}));
    assert_eq!(result["structuredContent"]["big"], big);
}

#[test]
fn requests_of_the_server_pass_and_their_answers_find_the_way_back() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        let id = call(&mut wire, "ask", json!({"method": method}));
        let asked = wire.receive();
        assert_eq!((&asked["method"], &asked["params"]), (&json!(method), &json!({"from": "server"})));
        // The server's own id is its own affair.
        assert_ne!(asked["id"], "of-the-server");
        wire.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": method}}));
        let answer = wire.answer(id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"answer": method}));
    }
    // A ping is about the connection, which is this one.
    assert_eq!(wire.text("ask", json!({"method": "ping"})), "{}");
    assert_eq!(wire.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server_under_its_own_id_and_has_no_answer() {
    for era in Era::BOTH {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        wire.text("echo", json!({}));
        let id = call(&mut wire, "sleep", json!({"seconds": 0.3}));
        wire.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
        wait_until(Duration::from_secs(20), "the server hears of it", || {
            setup.asked().contains(&"notifications/cancelled".to_owned())
        });
        wire.text("echo", json!({}));
        assert!(wire.others().is_empty());
    }
}

#[test]
fn who_sees_every_tool_has_the_rest_too() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    assert_eq!(wire.request("prompts/list", json!({}))["result"]["prompts"][0]["name"], "p");
    assert_eq!(wire.request("resources/list", json!({}))["result"]["resources"][0]["uri"], "x://y");
    assert_eq!(names(&mut wire).len(), 9);
}

#[test]
fn the_server_gets_the_environment_but_for_what_configures_the_proxy() {
    let setup = setup(&[]);
    let mut command = setup.project.server();
    command.env("CORETOOLS_LOG", "warn").env("MINE", "kept").args(["wrap", "--", "sh", "-c"]);
    command.arg("env > environment; exec sleep 60");
    let mut wire = integration_tests::Wire::start(command);
    wait_until(Duration::from_secs(20), "the server runs", || {
        std::fs::read_to_string(setup.project.join("environment")).is_ok_and(|text| text.contains("MINE"))
    });
    let environment = setup.project.read("environment");
    assert!(environment.contains("MINE=kept") && environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("CORETOOLS_"), "{environment}");
    wire.close_input();
    wire.wait(Duration::from_secs(5));
}
