//! Lines that are no messages are answered or ignored as JSON-RPC 2.0 says, and never end the server.

use crate::connect;
use integration_tests::{Era, Wire, peak_memory_kib, serve};
use serde_json::{Value, json};
use std::time::Duration;

/// The newest version that has `ping`, so that a ping proves that the server goes on.
const ERA: Era = Era::Initialize("2025-11-25");

fn answers_ping(wire: &mut Wire) -> bool {
    wire.request("ping", json!({}))["result"] == json!({})
}

/// Returns the answer to one line.
fn answer_to(line: &[u8]) -> Value {
    let (_project, mut wire) = connect(ERA);
    wire.send_bytes(line);
    wire.send_bytes(b"\n");
    let answer = wire.receive();
    assert!(answers_ping(&mut wire), "after {:?}", String::from_utf8_lossy(line));
    answer
}

#[test]
fn what_is_not_json_is_a_parse_error_with_a_null_id() {
    for line in [
        &b"nonsense"[..],
        b"{\"jsonrpc\": \"2.0\"",
        b"{'jsonrpc': '2.0'}",
        b"Content-Length: 17\r",
        b"\0",
        b"\xff\xfe{\x00}",
    ] {
        let answer = answer_to(line);
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
        assert_eq!(answer.get("id"), Some(&Value::Null), "{answer}");
    }
}

#[test]
fn json_nested_deeper_than_any_message_is_refused() {
    let answer = answer_to("[".repeat(200_000).as_bytes());
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
}

#[test]
fn on_2026_07_28_an_error_without_a_request_has_no_id() {
    let (_project, mut wire) = connect(Era::Modern);
    wire.request("tools/list", json!({}));
    wire.send_bytes(b"nonsense\n");
    let answer = wire.receive();
    assert_eq!((&answer["error"]["code"], answer.get("id")), (&json!(-32700), None), "{answer}");
}

#[test]
fn a_wrong_shape_is_an_invalid_request_under_its_own_id() {
    for (line, id) in [
        (r#"{"jsonrpc":"2.0","id":7}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":"seven","method":5}"#, json!("seven")),
        (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, json!(7)),
        (r#"{"id":7,"method":"ping"}"#, json!(7)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, json!(null)),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, json!(null)),
        ("5", json!(null)),
        ("\"ping\"", json!(null)),
        ("null", json!(null)),
        ("{}", json!(null)),
    ] {
        let answer = answer_to(line.as_bytes());
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
        assert_eq!(answer.get("id"), Some(&id), "{line}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap_or_default().is_empty());
    }
}

#[test]
fn parameters_that_are_no_object_are_invalid_params_of_whichever_method() {
    for method in ["tools/call", "tools/list", "ping", "initialize", "no/such"] {
        for params in ["[1]", "[]", "\"x\"", "5", "true"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
            let answer = answer_to(line.as_bytes());
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32602)), "{answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(method) && message.contains("object"), "{answer}");
        }
    }
}

#[test]
fn blank_lines_and_notifications_that_nobody_knows_are_ignored() {
    let (_project, mut wire) = connect(ERA);
    wire.send_bytes(b"\n\r\n   \n\t\n\n");
    wire.send_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no_such\",\"params\":[1]}\n");
    wire.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{\"what\":1}}\n");
    assert!(wire.is_silent_for(Duration::from_millis(150)));
    assert!(answers_ping(&mut wire));
}

#[test]
fn lines_may_end_as_on_windows_and_begin_with_a_byte_order_mark() {
    let (_project, mut wire) = connect(ERA);
    wire.send_bytes(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r\n");
    assert_eq!(wire.receive(), json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
}

#[test]
fn ids_come_back_as_they_were() {
    let (_project, mut wire) = connect(ERA);
    for id in [json!("a"), json!(""), json!("17"), json!(0), json!(-1), json!(9_007_199_254_740_993_i64)] {
        wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(wire.receive(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
}

#[test]
fn a_message_in_many_small_pieces_is_one_message() {
    let (_project, mut wire) = connect(ERA);
    for byte in br#"{"jsonrpc":"2.0","id":"\u00e4","method":"ping"}"# {
        wire.send_bytes(&[*byte]);
    }
    wire.send_bytes(b"\n");
    assert_eq!(wire.receive()["id"], "ä");
}

#[test]
fn a_line_of_100_mib_is_refused_under_its_own_id_in_bounded_memory() {
    let (_project, mut wire) = connect(ERA);
    // The program itself, as mapped from its file, differs by profile and features.
    let before = peak_memory_kib(wire.pid());
    wire.send_bytes(br#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write_file","arguments":{"id":1,"content":""#);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        wire.send_bytes(&piece);
    }
    wire.send_bytes(b"\"}},\"id\":\"big\"}\n");
    let answer = wire.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("big"), &json!(-32600)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("at most 16777216"), "{answer}");
    assert!(answers_ping(&mut wire));
    let grown = peak_memory_kib(wire.pid()) - before;
    assert!(grown < 24 * 1024, "{grown} KiB");
}

#[test]
fn a_long_line_without_an_end_does_not_fill_the_memory() {
    let (_project, mut wire) = connect(ERA);
    let piece = vec![b'['; 1 << 20];
    for _ in 0..100 {
        wire.send_bytes(&piece);
    }
    wire.close_input();
    let answer = wire.receive();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    wire.wait(Duration::from_secs(5));
}

#[test]
fn a_message_just_below_the_limit_is_taken() {
    let (project, mut wire) = connect(ERA);
    let content = "x".repeat(15 << 20);
    let result = wire.call("write_file", json!({"path": "big.txt", "content": content}));
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(project.read("big.txt").len(), 15 << 20);
}

#[test]
fn a_second_request_under_an_id_in_use_is_refused_and_the_first_is_answered() {
    for era in Era::BOTH {
        let (_project, mut wire) = connect(era);
        let slow =
            wire.ask("tools/call", json!({"name": "run_command", "arguments": {"command": "sleep 0.5"}}));
        let mut params = json!({"name": "list_directory", "arguments": {}});
        era.fill(&mut params);
        wire.send(&json!({"jsonrpc": "2.0", "id": slow, "method": "tools/call", "params": params}));
        let refused = wire.receive();
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert_eq!(refused["id"], Value::Null, "the first alone is answered under its id: {refused}");
        let answered = wire.answer(slow);
        assert_eq!(answered["result"]["isError"], false, "{answered}");
    }
}

#[test]
fn an_id_may_be_used_again_once_it_has_been_answered() {
    let (_project, mut wire) = connect(ERA);
    for _ in 0..3 {
        wire.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}));
        assert_eq!(wire.receive()["result"], json!({}));
    }
}

/// Of two members of one name, parsers take the first or the last: neither is taken here.
#[test]
fn a_name_that_comes_twice_is_refused_at_any_depth() {
    let (project, mut wire) = serve([("a.txt", "a"), ("b.txt", "b")], Era::Modern);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    for (id, arguments) in [
        r#"{"path":"a.txt","path":"b.txt"}"#,
        r#"{"path":"a.txt","p\u0061th":"b.txt"}"#,
        r#"{"path":"a.txt","other":{"x":1,"x":2}}"#,
    ]
    .iter()
    .enumerate()
    {
        let id = id + 700;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta},"name":"read_file","arguments":{arguments}}}}}"#
        );
        wire.send_bytes(format!("{call}\n").as_bytes());
        let answer = wire.answer(id as i64);
        assert_eq!(answer["error"]["code"], -32600, "{arguments}: {answer}");
    }
    drop(project);
}
