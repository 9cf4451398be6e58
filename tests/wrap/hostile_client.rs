//! A client that misbehaves reaches the server with nothing that was not read and judged.

use crate::{LEGACY, call, problem, setup};
use integration_tests::Era;
use serde_json::json;
use std::time::Duration;

/// Calls of `secret`, each spelt so that some parser would read another tool, or none.
const CALLS: [&str; 14] = [
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","name":"secret"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"secret","name":"echo"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","n\u0061me":"secret"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","Name":"secret"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"NAME":"secret"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","Method":"x","params":{"name":"secret"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/list","params":{},"params":{"name":"secret"},"method":"tools/call"}"#,
    r#"[{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"secret"}}]"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":["secret"]}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":["secret"]}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"secret"},"result":{}}"#,
    "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"params\":{\"name\":\"secret\"}}",
    r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"secret"}} {}"#,
    r#"{"jsonrpc":"2.0","id":ID,"method":"Tools/Call","params":{"name":"secret"}}"#,
];

#[test]
fn no_spelling_of_a_call_reaches_a_hidden_tool() {
    for era in Era::BOTH {
        let setup = setup(&["--hide", "secret"]);
        let mut wire = setup.connect(era);
        assert_eq!(wire.text("echo", json!({})), "{}");
        for (number, line) in CALLS.iter().enumerate() {
            wire.send_bytes(format!("{}\n", line.replace("ID", &(900 + number).to_string())).as_bytes());
            let answer = wire.receive();
            assert!(answer.get("error").is_some(), "{line}: {answer}");
        }
        assert_eq!(wire.text("echo", json!({"still": 1})), r#"{"still": 1}"#);
        assert_eq!((setup.calls("secret"), setup.calls("echo")), (0, 2), "{:?}", setup.asked());
    }
}

#[test]
fn a_method_that_is_in_no_table_is_never_forwarded() {
    for era in Era::BOTH {
        let setup = setup(&[]);
        let mut wire = setup.connect(era);
        wire.text("echo", json!({}));
        let before = setup.asked().len();
        for method in
            ["tools/Call", "tools/call ", "x", "", "sampling/createMessage", "rpc.discover", "tools/delete"]
        {
            let answer = wire.request(method, json!({"name": "secret"}));
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
        wire.notify("notifications/anything", json!({}));
        wire.notify("tools/call", json!({"name": "secret"}));
        wire.text("echo", json!({}));
        assert_eq!(setup.asked()[before..], ["tools/call echo"]);
    }
}

#[test]
fn what_cannot_be_read_is_answered_under_its_id_and_the_session_goes_on() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    for (line, id, code) in [
        ("not json", json!(null), -32700),
        (r#"{"jsonrpc":"2.0","method":"ping","params":{"a":1,"a":2},"id":"late"}"#, json!("late"), -32700),
        (r#"{"jsonrpc":"2.0","id":41,"method":"ping","params":"\ud83d"}"#, json!(41), -32700),
        (r#"{"jsonrpc":"1.0","id":42,"method":"ping"}"#, json!(42), -32600),
        ("[]", json!(null), -32600),
    ] {
        wire.send_bytes(format!("{line}\n").as_bytes());
        let answer = wire.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}: {answer}");
    }
    let long =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"x\":\"{}\",\"id\":43}}\n", "y".repeat(17 << 20));
    wire.send_bytes(long.as_bytes());
    let answer = wire.answer(43);
    assert!(problem(&answer).contains("more than 16777216 bytes"), "{answer}");
    assert_eq!(wire.text("echo", json!({})), "{}");
}

#[test]
fn an_id_that_is_open_is_not_taken_twice() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({}));
    let id = call(&mut wire, "sleep", json!({"seconds": 0.3}));
    wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}}));
    let refused = wire.receive();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(wire.answer(id)["result"]["content"][0]["text"], "slept");
    assert_eq!(setup.calls("echo"), 1);
}

#[test]
fn more_requests_than_may_be_open_are_refused_and_not_sent() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({}));
    let asked: Vec<i64> = (0..1100).map(|_| call(&mut wire, "sleep", json!({"seconds": 600}))).collect();
    let answer = wire.answer(*asked.last().unwrap());
    assert!(problem(&answer).starts_with("not sent: 1024 requests are open"), "{answer}");
    wire.close_input();
    wire.wait(Duration::from_secs(5));
}

#[test]
fn a_number_that_cannot_be_judged_as_it_is_written_is_refused_in_arguments_alone() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    wire.text("echo", json!({}));
    for number in ["18446744073709551616", "-9223372036854775809", "1e999"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{{"name":"echo","arguments":{{"n":[{number}]}}}}}}"#
        );
        wire.send_bytes(format!("{line}\n").as_bytes());
        let answer = wire.answer("n");
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    assert_eq!(setup.calls("echo"), 1);
}

#[test]
fn an_answer_to_nothing_that_the_server_has_asked_is_dropped() {
    let setup = setup(&[]);
    let mut wire = setup.connect(LEGACY);
    for id in [json!(1), json!("of-the-server"), json!(7.0), json!(999)] {
        wire.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"forged": true}}));
    }
    assert_eq!(wire.text("echo", json!({})), "{}");
}
